"""Rows: output of a sink as bytes, in columns, ready for the outbox and for the outside system (R16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from processor.records.batch import Headers


@dataclass(slots=True, kw_only=True)
class RowBlock:
    """Rows of one topic (or table), in order, as parallel columns of equal length.

    A column that no row needs is None as a whole. Numbers of rows are implicit: the place over all blocks
    of the decided outboxes of one publisher, from 0.
    """

    topic: str
    values: Sequence[bytes | None]
    """None is a tombstone; ``b""`` is an empty value."""
    keys: Sequence[bytes | None] | None = None
    timestamps: Sequence[int] | None = None
    """Milliseconds; None lets the outside system choose."""
    headers: Sequence[Headers] | None = None
    partitions: Sequence[int | None] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> RowBlock:
        return RowBlock(
            topic=self.topic,
            values=self.values[start:stop],
            keys=None if self.keys is None else self.keys[start:stop],
            timestamps=None if self.timestamps is None else self.timestamps[start:stop],
            headers=None if self.headers is None else self.headers[start:stop],
            partitions=None if self.partitions is None else self.partitions[start:stop],
        )
