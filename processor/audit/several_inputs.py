"""The input of a job that reads in several steps, possibly from several systems, as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from processor.contracts.topic_reader import TopicChunk, TopicReader
from processor.errors import JobError
from processor.ids import SplitId, StepName
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry


class SeveralInputs:
    """A TopicReader of the splits that checkpoints know; each is read by the reader of its step.

    Raises JobError when two steps read one split: its position would be that of either.
    """

    def __init__(self, readers: Mapping[StepName, TopicReader], log: LogView) -> None:
        self._readers = dict(readers)
        self._step_of: dict[SplitId, StepName] = {}
        checkpoints = [entry for entry in log.entries if isinstance(entry, CheckpointEntry)]
        for source in (s for entry in checkpoints for subtask in entry.subtasks for s in subtask.sources):
            for split in source.positions:
                step = self._step_of.setdefault(split, source.step)
                if step != source.step:
                    raise JobError(
                        f"'{split}' is read by the steps '{step}' and '{source.step}', so the input of the job as a "
                        "whole is not known.",
                        remedy="Name one of the steps by source=... in the audit.",
                    )

    def splits(self, target: str) -> tuple[SplitId, ...]:
        return tuple(split for split in sorted(self._step_of) if split.rpartition("/")[0] == target)

    def starts(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return self._asked(splits, lambda reader, mine: reader.starts(mine))

    def committed_ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return self._asked(splits, lambda reader, mine: reader.committed_ends(mine))

    def ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return self._asked(splits, lambda reader, mine: reader.ends(mine))

    def read(
        self, ends: Mapping[SplitId, int], starts: Mapping[SplitId, int] | None = None
    ) -> Iterator[TopicChunk]:
        for reader, mine in self._by_reader(tuple(ends)):
            first = None if starts is None else {split: starts[split] for split in mine if split in starts}
            yield from reader.read({split: ends[split] for split in mine}, first)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()

    def _asked(
        self,
        splits: Sequence[SplitId],
        ask: Callable[[TopicReader, Sequence[SplitId]], Mapping[SplitId, int]],
    ) -> Mapping[SplitId, int]:
        found: dict[SplitId, int] = {}
        for reader, mine in self._by_reader(splits):
            found.update(ask(reader, mine))
        return found

    def _by_reader(self, splits: Sequence[SplitId]) -> Iterator[tuple[TopicReader, Sequence[SplitId]]]:
        for step, reader in self._readers.items():
            mine = [split for split in splits if self._step_of[split] == step]
            if mine:
                yield reader, mine
