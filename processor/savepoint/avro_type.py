"""How values of one type stand in an Avro file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Convert: TypeAlias = Callable[[Any], Any]

NAMESPACE: Final = "processor.state"
"""Of the records that values are made of."""


@dataclass(frozen=True, slots=True)
class AvroType:
    """Without a conversion they are taken, or come, as they are."""

    schema: Any
    """As JSON has it."""
    write: Convert | None = None
    """From a plain value."""
    read: Convert | None = None
    """To a plain value."""


def array_of(item: AvroType) -> AvroType:
    write, read = item.write, item.read
    return AvroType(
        {"type": "array", "items": item.schema},
        None if write is None else lambda found: [write(each) for each in found],
        None if read is None else lambda found: [read(each) for each in found],
    )


def each_value(value: AvroType) -> tuple[Convert | None, Convert | None]:
    def of(convert: Convert | None) -> Convert | None:
        if convert is None:
            return None
        return lambda found: {key: convert(each) for key, each in found.items()}

    return of(value.write), of(value.read)
