"""From what a step emitted while it walked over a batch to batches that can travel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, TypeVar

from processor.operators.operator import Collector
from processor.records.batch import Batch

W = TypeVar("W")

EMIT_RECORDS_MAX = 4_096
"""Records of one emitted batch; a step that makes more of one batch emits several."""


def origins(marks: Sequence[int]) -> list[int]:
    """For each emitted value the index of the record that gave it.

    ``marks[i]`` is how many values had been emitted when record ``i`` was done.
    """
    indexes: list[int] = []
    start = 0
    for index, stop in enumerate(marks):
        if stop == start + 1:
            indexes.append(index)
        elif stop > start:
            indexes.extend(repeat(index, stop - start))
        start = stop
    return indexes


def one_each(marks: Sequence[int], records: int) -> bool:
    """Whether every record gave exactly one value, the common case, in which columns can be shared."""
    return (
        len(marks) == records
        and (records == 0 or marks[-1] == records)
        and marks == list(range(1, records + 1))
    )


def emit_for(
    origin: Batch[Any], indexes: Sequence[int] | None, values: list[W], out: Collector[W], headers: bool
) -> None:
    """Emit ``values``, each with key, timestamp and place of the record it came from, and with its headers if
    ``headers``. ``indexes`` None: one value for each record, in order. Nothing happens without values.
    """
    if not values:
        return
    if indexes is None:
        whole = Batch(
            values=values,
            timestamps=origin.timestamps,
            keys=origin.keys,
            headers=origin.headers if headers else None,
            split=origin.split,
            offsets=origin.offsets,
        )
    else:
        timestamps, keys, offsets = origin.timestamps, origin.keys, origin.offsets
        kept = origin.headers if headers else None
        whole = Batch(
            values=values,
            timestamps=[timestamps[i] for i in indexes],
            keys=None if keys is None else [keys[i] for i in indexes],
            headers=None if kept is None else [kept[i] for i in indexes],
            split=origin.split,
            offsets=None if offsets is None else [offsets[i] for i in indexes],
        )
    emit_in_pieces(whole, out)


def emit_in_pieces(batch: Batch[W], out: Collector[W]) -> None:
    """Emit a batch of any length but zero, in batches of at most EMIT_RECORDS_MAX."""
    if len(batch) <= EMIT_RECORDS_MAX:
        out.emit(batch)
        return
    for start in range(0, len(batch), EMIT_RECORDS_MAX):
        out.emit(batch.slice(start, start + EMIT_RECORDS_MAX))
