"""Finds the splits of sources: where a fresh job starts, and partitions that were added later (A7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from processor.contracts.executor import Executor
from processor.contracts.source import Enumerator
from processor.ids import Position, SplitId, StepName, SubtaskId
from processor.plan.execution import Chain
from processor.protocol.entries import CheckpointEntry, ParticipantState, SourceState, SubtaskSnapshot
from processor.runtime.restoring import bounded, restored_source
from processor.task.source_intake import owner_of_split
from processor.telemetry.log import Log

Found = Callable[[StepName, Mapping[SplitId, Position]], None]

_splits = msgspec.json.Decoder(dict[SplitId, Position])


class Discovery:
    """The enumerators of a job's sources. One discovery of a source runs at a time, in the background.

    A split that was found is handed out again and again until a published checkpoint has its position: the order
    may be lost, and readers take it once. Until then it is part of every checkpoint all the same, with the place
    where it begins: looked for again after a restart, it might begin behind records that are gone by then.
    """

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
        self._unconfirmed: dict[StepName, dict[SplitId, Position]] = {}
        """Found, and in no published checkpoint's positions yet."""
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

    def restored(self, entry: CheckpointEntry, kept: Mapping[str, bytes]) -> None:
        """Check that the splits of the checkpoint are still what they were. ``kept``: what participants have in
        it, by name. Raises PositionLost."""
        for step, (enumerator, chain) in self._enumerators.items():
            source = restored_source(entry, step)
            data = kept.get(participant_name(step))
            found = {} if data is None else _splits.decode(data)
            read = any(state.step == step for subtask in entry.subtasks for state in subtask.sources)
            if not read and data is None:
                # A source that was added to the job: it begins where it was told to, not at the earliest.
                found = dict(enumerator.start())
            self._unconfirmed[step] = {s: at for s, at in found.items() if s not in source.positions}
            self._known[step] = {**self._unconfirmed[step], **source.positions}
            read_by = chain.steps[0].source
            assert read_by is not None
            if bounded(read_by, self._known[step]):
                self._bounded.add(step)
            if read or data is not None:
                enumerator.check(self._known[step])

    def unconfirmed(self) -> dict[StepName, Mapping[SplitId, Position]]:
        """By source, splits that are in no position of the checkpoint: its readers begin with them too."""
        return {step: dict(splits) for step, splits in self._unconfirmed.items()}

    def deployed(self) -> None:
        """The subtasks are there: give them the splits that are in no position of the checkpoint."""
        for step, splits in self._unconfirmed.items():
            if splits:
                self._found(step, dict(splits))

    def take(self) -> tuple[ParticipantState, ...]:
        """The enumerators' part in a checkpoint that begins now (A7): what readers may not have yet. They are
        told of it again before its barrier."""
        self.deployed()
        return tuple(
            ParticipantState(name=participant_name(step), data=msgspec.json.encode(splits))
            for step, splits in self._unconfirmed.items()
            if splits
        )

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
                self._unconfirmed[step].update(new)
                self._log.info("found new partitions", step=step, partitions=", ".join(sorted(new)))
                self._found(step, new)

        def failed(error: BaseException) -> None:
            # The next look may succeed; a source that is gone for good is noticed by its readers.
            self._running.discard(step)
            self._log.warning("could not look for new partitions", step=step, error=error)

        self._executor.submit(participant_name(step), lambda: enumerator.discover(known), done, failed)

    def published(self, entry: CheckpointEntry) -> None:
        """Tell lag tools how far the published checkpoint has come."""
        for step, (enumerator, _) in self._enumerators.items():
            positions = restored_source(entry, step).positions
            unconfirmed = self._unconfirmed[step]
            for split in unconfirmed.keys() & positions.keys():
                del unconfirmed[split]
            self._tell(step, enumerator, positions)

    def _tell(self, step: StepName, enumerator: Enumerator, positions: Mapping[SplitId, Position]) -> None:
        def failed(error: BaseException) -> None:
            self._log.debug("could not write group offsets", step=step, error=error)

        self._executor.submit(
            participant_name(step), lambda: enumerator.published(positions), lambda _: None, failed
        )

    def close(self) -> None:
        for enumerator, _ in self._enumerators.values():
            enumerator.close()


def participant_name(step: StepName) -> str:
    """An enumerator is asked one thing at a time."""
    return f"source {step}"
