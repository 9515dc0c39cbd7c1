"""A simulated broker says no."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class BrokerRefusal(Exception):
    """A request was answered with an error; ``name`` as the table in ``errors.py`` spells it."""

    def __init__(self, name: str, text: str = "") -> None:
        super().__init__(name)
        self.name = name
        self.text = text or TEXTS.get(name, "the simulated broker says no")


TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CONCURRENT_TRANSACTIONS": "the transaction before is still being ended",
        "GROUP_ID_NOT_FOUND": "the group id does not exist",
        "INVALID_PRODUCER_EPOCH": "a newer producer has taken over",
        "INVALID_PRODUCER_ID_MAPPING": "the transactional id has another producer id",
        "INVALID_RECORD": "a record was not valid for its topic",
        "INVALID_TIMESTAMP": "a timestamp is outside the topic's window",
        "INVALID_TRANSACTION_TIMEOUT": "the brokers' transaction.max.timeout.ms is lower",
        "INVALID_TXN_STATE": "the transaction is not open, or ends otherwise",
        "MSG_SIZE_TOO_LARGE": "a batch is larger than the topic's max.message.bytes",
        "OFFSET_METADATA_TOO_LARGE": "the metadata of an offset is too large",
        "OUT_OF_ORDER_SEQUENCE_NUMBER": "rows before these are missing",
        "TOPIC_ALREADY_EXISTS": "the topic is there already",
        "TOPIC_AUTHORIZATION_FAILED": "there is no right to do this with the topic",
        "UNKNOWN_TOPIC_OR_PART": "the topic or partition is not there",
        "UNSTABLE_OFFSET_COMMIT": "a transaction that would change these offsets is open",
    }
)
