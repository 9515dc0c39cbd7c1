"""Reading a whole topic for an audit: apart from the sources, so that their faults do not hide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from processor.ids import SplitId

RawHeaders = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChunk:
    """Some records of one split, in order, as bytes; parallel columns of equal length."""

    split: SplitId
    offsets: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[RawHeaders | None]
    timestamps: Sequence[int]


class TopicReader(Protocol):
    """Reads what a read_committed reader can see. Used by one thread."""

    def splits(self, target: str) -> tuple[SplitId, ...]:
        """The splits of a topic, sorted. Raises ExternalRefusal when there is no such topic."""
        ...

    def starts(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        """The first offset that is kept of each."""
        ...

    def committed_ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        """After the last record that can be seen now: the last stable offset."""
        ...

    def ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        """After everything written, of open transactions too."""
        ...

    def read(
        self, ends: Mapping[SplitId, int], starts: Mapping[SplitId, int] | None = None
    ) -> Iterator[TopicChunk]:
        """Every committed record from ``starts`` (without them, the first kept one) to before ``ends``, each
        split in order.

        Raises Unavailable when nothing comes for too long.
        """
        ...

    def close(self) -> None: ...
