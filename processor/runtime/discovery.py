"""Finds the splits of sources: where a fresh job starts, and partitions that were added later (A7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from processor.contracts.executor import Executor
from processor.contracts.source import Enumerator
from processor.ids import Position, SplitId, StepName, SubtaskId
from processor.plan.execution import Chain
from processor.protocol.entries import CheckpointEntry, SourceState, SubtaskSnapshot
from processor.runtime.restoring import restored_source
from processor.task.source_intake import owner_of_split
from processor.telemetry.log import Log

Found = Callable[[StepName, Mapping[SplitId, Position]], None]


class Discovery:
    """The enumerators of a job's sources. One discovery of a source runs at a time, in the background."""

    def __init__(
        self,
        enumerators: Mapping[StepName, tuple[Enumerator, Chain]],
        *,
        executor: Executor,
        interval_ms: int,
        found: Found,
        log: Log,
    ) -> None:
        self._enumerators = dict(enumerators)
        self._executor = executor
        self._interval_ms = interval_ms
        self._found = found
        self._log = log
        self._known: dict[StepName, dict[SplitId, Position]] = {}
        self._bounded: set[StepName] = set()
        self._added: dict[StepName, dict[SplitId, Position]] = {}
        self._next_ms: int | None = None
        self._running: set[StepName] = set()

    def first_snapshots(self) -> tuple[SubtaskSnapshot, ...]:
        """Resolved start positions, as the snapshot that the first checkpoint is made of (R4)."""
        snapshots: list[SubtaskSnapshot] = []
        for step, (enumerator, chain) in self._enumerators.items():
            start = enumerator.start()
            for index in range(chain.parallelism):
                positions = {
                    split: position
                    for split, position in sorted(start.items())
                    if owner_of_split(split, chain.parallelism) == index
                }
                snapshots.append(
                    SubtaskSnapshot(
                        subtask=SubtaskId(chain.name, index),
                        sources=(SourceState(step=step, positions=positions),),
                    )
                )
        return tuple(snapshots)

    def restored(self, entry: CheckpointEntry) -> None:
        """Check that the splits of the checkpoint are still what they were. Raises PositionLost."""
        for step, (enumerator, _) in self._enumerators.items():
            source = restored_source(entry, step)
            if not any(state.step == step for subtask in entry.subtasks for state in subtask.sources):
                # A source that was added to the job: it begins where it was told to, not at the earliest.
                self._added[step] = dict(enumerator.start())
                self._known[step] = dict(self._added[step])
                continue
            self._known[step] = dict(source.positions)
            if source.bounded:
                self._bounded.add(step)
            enumerator.check(source.positions)

    def deployed(self) -> None:
        """The subtasks are there: give them the splits of sources that the checkpoint did not know."""
        for step, splits in self._added.items():
            self._found(step, splits)
        self._added.clear()

    def next_ms(self) -> int | None:
        return self._next_ms

    def tick(self, now_ms: int) -> None:
        """Look for new splits, when it is time to. A bounded source has the splits it began with."""
        if self._next_ms is not None and now_ms < self._next_ms:
            return
        first = self._next_ms is None
        self._next_ms = now_ms + self._interval_ms
        if first:
            return
        for step, (enumerator, _) in self._enumerators.items():
            if step not in self._bounded and step not in self._running:
                self._discover(step, enumerator)

    def _discover(self, step: StepName, enumerator: Enumerator) -> None:
        known = dict(self._known[step])
        self._running.add(step)

        def done(new: Mapping[SplitId, Position]) -> None:
            self._running.discard(step)
            if new:
                self._known[step].update(new)
                self._log.info("found new partitions", step=step, partitions=", ".join(sorted(new)))
                self._found(step, new)

        def failed(error: BaseException) -> None:
            # The next look may succeed; a source that is gone for good is noticed by its readers.
            self._running.discard(step)
            self._log.warning("could not look for new partitions", step=step, error=error)

        self._executor.submit(_lane(step), lambda: enumerator.discover(known), done, failed)

    def published(self, entry: CheckpointEntry) -> None:
        """Tell lag tools how far the published checkpoint has come."""
        for step, (enumerator, _) in self._enumerators.items():
            positions = restored_source(entry, step).positions
            self._tell(step, enumerator, positions)

    def _tell(self, step: StepName, enumerator: Enumerator, positions: Mapping[SplitId, Position]) -> None:
        def failed(error: BaseException) -> None:
            self._log.debug("could not write group offsets", step=step, error=error)

        self._executor.submit(_lane(step), lambda: enumerator.published(positions), lambda _: None, failed)

    def close(self) -> None:
        for enumerator, _ in self._enumerators.values():
            enumerator.close()


def _lane(step: StepName) -> str:
    """An enumerator is asked one thing at a time."""
    return f"source {step}"
