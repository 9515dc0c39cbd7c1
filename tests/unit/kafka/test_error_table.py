"""Every error of Kafka becomes one of the engine's, with a remedy where a person can do something."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from connectors.kafka.errors import TABLE, Meaning, entry_of, error_for
from processor.errors import (
    ExternalRefusal,
    PositionLost,
    ProcessorError,
    Response,
    Retriable,
    TooLarge,
    Unavailable,
)

CODES = range(-199, 130)


def test_every_name_of_the_table_is_one_of_the_clients() -> None:
    names = {KafkaError(code).name() for code in CODES}
    assert set(TABLE) - names == set()


@pytest.mark.parametrize("code", CODES)
def test_no_error_is_left_without_an_answer(code: int) -> None:
    error = error_for(KafkaError(code).name(), "said so", doing="trying", cluster="west")
    assert isinstance(error, ProcessorError)
    assert error.response is not Response.CRASH
    assert "'west'" in str(error)
    assert "trying" in str(error)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_what_is_refused_for_good_has_a_remedy(name: str) -> None:
    entry = entry_of(name)
    if entry.meaning in (Meaning.REFUSED, Meaning.ROW, Meaning.SILENCE):
        assert entry.remedy


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_FENCED", Retriable),
        ("PRODUCER_FENCED", Retriable),
        ("INVALID_PRODUCER_EPOCH", Retriable),
        ("CONCURRENT_TRANSACTIONS", Retriable),
        ("NOT_COORDINATOR", Retriable),
        ("NOT_ENOUGH_REPLICAS", Retriable),
        ("_TIMED_OUT", Unavailable),
        ("_ALL_BROKERS_DOWN", Unavailable),
        ("TOPIC_AUTHORIZATION_FAILED", ExternalRefusal),
        ("SASL_AUTHENTICATION_FAILED", ExternalRefusal),
        ("INVALID_TRANSACTION_TIMEOUT", ExternalRefusal),
        ("MSG_SIZE_TOO_LARGE", TooLarge),
        ("_AUTO_OFFSET_RESET", PositionLost),
    ],
)
def test_what_an_error_means(name: str, kind: type[ProcessorError]) -> None:
    assert type(error_for(name, "", doing="x", cluster="main")) is kind
