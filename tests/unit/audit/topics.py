"""Topics as lists, read as an audit reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from processor.contracts.topic_reader import TopicChunk
from processor.ids import SplitId

Record = tuple[bytes | None, bytes | None]


@dataclass(slots=True, kw_only=True)
class ListedTopics:
    """Each topic is a list of partitions, each a list of (key, value)."""

    topics: Mapping[str, Sequence[Sequence[Record]]]
    first: Mapping[str, int] = field(default_factory=dict)
    """First offset kept, by split."""
    open: dict[str, int] = field(default_factory=dict)
    """Records of open transactions at the end, by split."""
    chunk_records: int = 2

    def splits(self, target: str) -> tuple[SplitId, ...]:
        return tuple(SplitId(f"{target}/{number}") for number in range(len(self.topics[target])))

    def starts(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {split: self.first.get(split, 0) for split in splits}

    def committed_ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {split: len(self._partition(split)) - self.open.get(split, 0) for split in splits}

    def ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {split: len(self._partition(split)) for split in splits}

    def read(
        self, ends: Mapping[SplitId, int], starts: Mapping[SplitId, int] | None = None
    ) -> Iterator[TopicChunk]:
        for split, end in ends.items():
            records = self._partition(split)
            start = (starts or {}).get(split, 0)
            for at in range(start, end, self.chunk_records):
                some = records[at : min(end, at + self.chunk_records)]
                yield TopicChunk(
                    split=split,
                    offsets=range(at, at + len(some)),
                    keys=[key for key, _ in some],
                    values=[value for _, value in some],
                    headers=[None] * len(some),
                    timestamps=[0] * len(some),
                )

    def close(self) -> None:
        return None

    def _partition(self, split: SplitId) -> Sequence[Record]:
        topic, _, number = split.rpartition("/")
        return self.topics[topic][int(number)]
