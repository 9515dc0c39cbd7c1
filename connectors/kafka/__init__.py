"""The Kafka connector: topics as sources and sinks, and the brokers to develop and test against."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.kafka.bounds import (
        Earliest,
        FromGroup,
        FromOffsets,
        FromTime,
        Latest,
        Start,
        Until,
        UntilEnd,
        UntilOffsets,
        UntilTime,
    )
    from connectors.kafka.sink import KafkaSink
    from connectors.kafka.source import KafkaSource

__all__ = [
    "Earliest",
    "FromGroup",
    "FromOffsets",
    "FromTime",
    "KafkaSink",
    "KafkaSource",
    "Latest",
    "Start",
    "Until",
    "UntilEnd",
    "UntilOffsets",
    "UntilTime",
]

_BOUNDS = "connectors.kafka.bounds"
_HOMES = {
    "KafkaSink": "connectors.kafka.sink",
    "KafkaSource": "connectors.kafka.source",
}


def __getattr__(name: str) -> object:
    """Imported when first used, so that a command that needs no Kafka stays quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, _BOUNDS)), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
