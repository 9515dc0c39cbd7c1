"""What the client library raises becomes the engine's error, however it is wrapped."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.client_failures import ClientFailures
from connectors.kafka.errors import error_for
from processor.errors import ProcessorError


def fenced() -> KafkaException:
    return KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


def test_a_fatal_error_that_callbacks_stumbled_over_is_told_as_itself() -> None:
    """Seen on a real broker: fenced during a flush, with a logger set, the client raises SystemError."""
    plain = error_for("_FENCED", "fenced", doing="flushing", cluster="main")
    torn = SystemError("a method returned a result with an exception set")
    torn.__cause__ = fenced()
    with pytest.raises(type(plain)) as told, ClientFailures("main").within("flushing"):
        raise torn
    assert isinstance(told.value, ProcessorError)


def test_a_system_error_of_something_else_is_not_touched() -> None:
    with pytest.raises(SystemError), ClientFailures("main").within("flushing"):
        raise SystemError("something else")
