"""The intake of a subtask that reads a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from processor.contracts.source import Reader
from processor.fault_points import FaultPoint
from processor.ids import CheckpointId, Position, SplitId, StepName
from processor.operators.event_time import EventTimeStamper
from processor.operators.watermarks import SplitWatermarks
from processor.protocol.entries import SourceState
from processor.protocol.messages import CheckpointKind, SubtaskReads
from processor.records.elements import MIN_TIME_MS, Idle, Watermark
from processor.task.subtask import Subtask


def owner_of_split(split: SplitId, parallelism: int) -> int:
    """The subtask that reads a split: stable, so that splits found later do not move the others.

    Numbered parts of one whole (``topic/3``) are dealt out in turn, starting at a place of the topic's own.
    """
    whole, _, number = split.rpartition("/")
    if whole and number.isdigit():
        return (crc32(whole.encode()) + int(number)) % parallelism
    return crc32(split.encode()) % parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeParts:
    """How this source stamps records and makes watermarks."""

    stamper: EventTimeStamper
    watermarks: SplitWatermarks


class SourceIntake:
    """Polls the reader, stamps event time, injects barriers between two polls."""

    elements_per_turn = 1

    def __init__(
        self,
        subtask: Subtask,
        *,
        step: StepName,
        reader: Reader[Any],
        event_time: EventTimeParts | None,
        records_max: int,
        bounded: bool,
        owns: Callable[[SplitId], bool],
        count: Callable[[str, int], None],
        backlog_after_ms: int,
    ) -> None:
        """``bounded``: the source as a whole ends, so a subtask without splits has ended too. ``owns`` tells
        which splits this subtask reads. ``backlog_after_ms``: after finding records at every look for this long
        it reads a backlog."""
        self._subtask = subtask
        self._parts = subtask.parts
        self._step = step
        self._reader = reader
        self._event_time = event_time
        self._records_max = records_max
        self._bounded = bounded
        self._owns = owns
        self._count = count
        self._barriers: dict[CheckpointId, CheckpointKind] = {}
        """Those to put in, several at once when checkpoints overlap."""
        self._backlog_after_ms = backlog_after_ms
        self._caught_up_ms = self._parts.clock.monotonic_ms()
        self._backlog = False
        self._watermark_ms = MIN_TIME_MS
        self._idle = False
        self._held = False
        self._ended_splits: set[SplitId] = set()

    def restore(self, splits: Mapping[SplitId, Position], largest_ms: Mapping[SplitId, int]) -> None:
        """The splits this subtask starts with, with the largest event time seen in each (R27)."""
        self._begin(splits, largest_ms)

    def assign(self, step: StepName, splits: Mapping[SplitId, Position]) -> None:
        if step != self._step:
            return
        known = self._reader.positions()
        self._begin(
            {split: place for split, place in splits.items() if self._owns(split) and split not in known}, {}
        )

    def _begin(self, splits: Mapping[SplitId, Position], largest_ms: Mapping[SplitId, int]) -> None:
        if not splits:
            return
        if self._event_time is not None:
            now_ms = self._parts.clock.monotonic_ms()
            for split in sorted(splits):
                self._event_time.watermarks.assign(split, now_ms, largest_ms.get(split))
        self._reader.assign(splits)

    def positions(self) -> Mapping[SplitId, Position]:
        return self._reader.positions()

    def step(self, *, pressed: bool) -> bool:
        if self._barriers:
            oldest = min(self._barriers)
            self._cut(oldest, self._barriers.pop(oldest))
            return True
        if self._subtask.ended:
            return False
        if pressed or not self._parts.outputs.ready():
            self._held = True
            self._parts.back_pressure.full(self._parts.clock.monotonic_ms())
            return False
        if self._held:
            self._held = False
            now_ms = self._parts.clock.monotonic_ms()
            self._parts.back_pressure.open(now_ms)
            if self._event_time is not None:
                self._event_time.watermarks.resumed(now_ms)
        self._parts.faults(FaultPoint.POLL_BEFORE_PROCESS)
        polled = self._reader.poll(self._records_max, 0)
        self._look_for_backlog(bool(polled))
        if polled:
            self._count("records_in", sum(len(batch) for _, batch in polled))
        for split, batch in polled:
            if self._event_time is None:
                self._parts.chain.on_batch(0, batch)
                continue
            stamped = self._event_time.stamper.stamp(batch)
            if stamped is not None:
                now_ms = self._parts.clock.monotonic_ms()
                self._event_time.watermarks.saw(split, max(stamped.timestamps), now_ms)
                self._parts.chain.on_batch(0, stamped)
        told = self._tell_time()
        return self._end_if_read() or bool(polled) or told

    def _look_for_backlog(self, found: bool) -> None:
        """Whoever has had something to read at every look for some time is behind (A3)."""
        now_ms = self._parts.clock.monotonic_ms()
        if not found:
            self._caught_up_ms = now_ms
        backlog = now_ms - self._caught_up_ms >= self._backlog_after_ms
        if backlog is not self._backlog:
            self._backlog = backlog
            self._parts.report(
                SubtaskReads(attempt=self._parts.attempt, subtask=self._parts.id, backlog=backlog)
            )

    def _tell_time(self) -> bool:
        """Pass on event time; a source without event time is idle for good, so that it holds nobody back."""
        time_ms: int | None = None
        if self._event_time is not None:
            time_ms = self._event_time.watermarks.advance(self._parts.clock.monotonic_ms())
        if time_ms is None:
            if self._idle:
                return False
            self._idle = True
            self._parts.outputs.mark(Idle())
            return True
        if time_ms <= self._watermark_ms and not self._idle:
            return False
        if time_ms == MIN_TIME_MS:
            return False
        self._idle = False
        self._watermark_ms = time_ms
        self._parts.chain.on_watermark(time_ms)
        self._parts.outputs.mark(Watermark(time_ms))
        return True

    def _end_if_read(self) -> bool:
        if not self._bounded:
            return False
        positions = self._reader.positions()
        for split, position in positions.items():
            if position.at_end and split not in self._ended_splits:
                self._ended_splits.add(split)
                if self._event_time is not None:
                    self._event_time.watermarks.ended(split)
        if len(self._ended_splits) < len(positions):
            return False
        self._subtask.end()
        return True

    def inject(self, checkpoint: CheckpointId, kind: CheckpointKind) -> None:
        self._barriers[checkpoint] = kind

    def aborted(self, checkpoint: CheckpointId) -> None:
        self._barriers = {c: kind for c, kind in self._barriers.items() if c > checkpoint}

    def _cut(self, checkpoint: CheckpointId, kind: CheckpointKind) -> None:
        """Positions of the next records, then the barrier, between two polls (A8)."""
        if kind is CheckpointKind.DRAIN and not self._subtask.ended:
            self._subtask.end()  # so that the barrier comes behind all that event time still brings out (R24)
        watermarks = self._event_time.watermarks.largest() if self._event_time is not None else {}
        state = SourceState(
            step=self._step, positions=dict(self._reader.positions()), watermarks=dict(watermarks)
        )
        self._parts.faults(FaultPoint.POSITIONS_TAKEN)
        self._subtask.cut(
            checkpoint,
            kind,
            alignment_ms=0,
            sources=(state,),
            backlog=self._backlog,
        )
        self._parts.faults(FaultPoint.BARRIER_INJECTED)

    def close(self) -> None:
        self._reader.close()
