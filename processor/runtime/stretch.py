"""A stretch of history: the sources of a job end at given positions, where the job stops.

It stops, and is not drained: what waits for event time goes on waiting, as it did then, so that state and output at
the end are what they were when the job came by for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from processor.contracts.job_control import JobControl, Outcome
from processor.contracts.source import Enumerator, Reader, Source, SourceContext
from processor.ids import JobName, Position, SplitId, StepName
from processor.plan.graph import JobGraph
from processor.protocol.entries import CheckpointEntry
from processor.records.batch import Batch

Ends = Mapping[StepName, Mapping[SplitId, int]]
"""Of each source step, where each of its splits ends: before this offset."""


class Stretch:
    """What the readers of one process have yet to read. Used by the thread of the job."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self._left = {(step, split) for step, splits in ends.items() for split in splits}
        self._control: JobControl | None = None
        self._asked = False

    @property
    def reads(self) -> frozenset[str]:
        """What is read, as splits name it: a topic for Kafka's ``topic/partition``."""
        return frozenset(split.rpartition("/")[0] for splits in self.ends.values() for split in splits)

    def of(self, graph: JobGraph, name: JobName) -> JobGraph:
        """The job over this stretch, under another name, as copies of a job are to run (R2)."""
        steps = {
            step.name: replace(step, source=_Bounded(step.source, step.name, self))
            if step.source is not None
            else step
            for step in graph.steps.values()
        }
        return replace(graph, name=name, steps=steps)

    def controlled_by(self, control: JobControl) -> None:
        """Whom to ask to stop."""
        self._control = control

    def moved(self, step: StepName, positions: Mapping[SplitId, Position]) -> None:
        """Where a reader stands; the first to find everybody at the end asks the job to stop."""
        for split, position in positions.items():
            if position.next >= self.ends[step][split]:
                self._left.discard((step, split))
            else:  # of an attempt that begins anew before where another one was
                self._left.add((step, split))
        if not self._left and not self._asked and self._control is not None:
            self._asked = True
            self._control.stop(None, self._answered)

    def _answered(self, outcome: Outcome) -> None:
        # Refused before its decision: sources go on (R24), and ask again.
        self._asked = outcome.checkpoint is not None or not outcome.refused


def positions_in(entry: CheckpointEntry) -> Mapping[StepName, Mapping[SplitId, int]]:
    """Where each split of each source step stands in a checkpoint."""
    found: dict[StepName, dict[SplitId, int]] = {}
    for subtask in entry.subtasks:
        for source in subtask.sources:
            splits = {split: position.next for split, position in source.positions.items()}
            found.setdefault(source.step, {}).update(splits)
    return found


def at_its_end(entry: CheckpointEntry, ends: Ends) -> bool:
    """Whether a checkpoint holds all of a stretch."""
    found = positions_in(entry)
    return all(
        found.get(step, {}).get(split, -1) >= end
        for step, splits in ends.items()
        for split, end in splits.items()
    )


class _Bounded:
    """A source whose splits end early, and that finds no others. For the engine it has no end."""

    bounded = False

    def __init__(self, source: Source[Any], step: StepName, stretch: Stretch) -> None:
        self._source = source
        self._step = step
        self._stretch = stretch

    def value_type(self) -> type[Any] | None:
        return self._source.value_type()

    def check(self, context: SourceContext) -> None:
        self._source.check(context)

    def enumerator(self, context: SourceContext) -> Enumerator:
        return _Known(self._source.enumerator(context))

    def reader(self, context: SourceContext) -> Reader[Any]:
        return _BoundedReader(self._source.reader(context), self._step, self._stretch)


class _Known:
    """Splits are those of the checkpoint, and nobody is told how far they were read: others read on from there."""

    def __init__(self, inner: Enumerator) -> None:
        self._inner = inner

    def start(self) -> Mapping[SplitId, Position]:
        return self._inner.start()

    def check(self, known: Mapping[SplitId, Position]) -> None:
        self._inner.check(known)

    def discover(self, known: Mapping[SplitId, Position]) -> Mapping[SplitId, Position]:
        return {}

    def published(self, positions: Mapping[SplitId, Position]) -> None:
        return None

    def close(self) -> None:
        self._inner.close()


class _BoundedReader:
    def __init__(self, inner: Reader[Any], step: StepName, stretch: Stretch) -> None:
        self._inner = inner
        self._step = step
        self._stretch = stretch

    def assign(self, splits: Mapping[SplitId, Position]) -> None:
        ends = self._stretch.ends[self._step]
        self._inner.assign({split: replace(position, end=ends[split]) for split, position in splits.items()})

    def pause(self, splits: frozenset[SplitId]) -> None:
        self._inner.pause(splits)

    def poll(self, records_max: int, wait_ms: int) -> Sequence[tuple[SplitId, Batch[Any]]]:
        found = self._inner.poll(records_max, wait_ms)
        if not found:
            self._stretch.moved(self._step, self._inner.positions())
        return found

    def positions(self) -> Mapping[SplitId, Position]:
        return {split: replace(position, end=None) for split, position in self._inner.positions().items()}

    def close(self) -> None:
        self._inner.close()
