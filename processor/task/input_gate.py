"""Where elements enter a subtask: picks the next one, aligns barriers, takes the minimum of watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from processor.contracts.channel import ChannelReceiver
from processor.ids import CheckpointId
from processor.invariant import invariant
from processor.protocol.alignment import BarrierAlignment, Cut, Drop, Wait
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import (
    MAX_TIME_MS,
    MIN_TIME_MS,
    Barrier,
    EndOfInput,
    Idle,
    Watermark,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """A batch for one input of the chain's first operator."""

    input: int
    batch: Batch[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """The event time of all inputs together has advanced."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class AllIdle:
    """No input advances event time any more, for now."""


@dataclass(frozen=True, slots=True)
class AllEnded:
    """Nothing follows on any input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """The barrier of a checkpoint arrived on every channel: cut now."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    alignment_ms: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """The element was consumed, and there is nothing to do about it."""


GateEvent = Records | EventTime | AllIdle | AllEnded | Aligned | Nothing


class InputGate:
    """All channels into one subtask; ``next`` takes at most one element.

    Channels are read in turn, so that a full one does not starve the others. Event time is the minimum over
    channels that are neither idle nor ended; it never goes back.
    """

    def __init__(self, channels: Sequence[tuple[int, ChannelReceiver]]) -> None:
        """``channels``: each with the input of the chain's first operator it belongs to."""
        invariant(len(channels) > 0, "a subtask that is no source has inputs")
        self._channels = tuple(channels)
        self._alignment = BarrierAlignment(len(channels))
        self._watermarks = [MIN_TIME_MS] * len(channels)
        self._silent = [False] * len(channels)
        self._ended = [False] * len(channels)
        self._time_ms = MIN_TIME_MS
        self._told_idle = False
        self._turn = 0
        self._aligning_since_ms = 0

    @property
    def time_ms(self) -> int:
        return self._time_ms

    @property
    def ended(self) -> bool:
        return all(self._ended)

    def over(self, checkpoint: CheckpointId) -> None:
        """The checkpoint is aborted: channels that wait for it run again."""
        self._alignment.over(checkpoint)

    def next(self, now_ms: int) -> GateEvent | None:
        """The next element's meaning; None when no channel has anything to give. ``now_ms`` is monotonic."""
        channels = len(self._channels)
        for step in range(channels):
            index = (self._turn + step) % channels
            receiver = self._channels[index][1]
            if receiver.peek() is not None and not self._alignment.blocked(index):
                self._turn = (index + 1) % channels
                return self._take(index, now_ms)
        return None

    def _take(self, index: int, now_ms: int) -> GateEvent:
        input, receiver = self._channels[index]
        element = receiver.take()
        match element:
            case Batch():
                # A silent channel stays so: a source without event time sends records and never a watermark.
                return Records(input=input, batch=element)
            case Watermark(time_ms=time_ms):
                self._silent[index] = False
                if time_ms > self._watermarks[index]:
                    self._watermarks[index] = time_ms
                return self._advance()
            case Idle():
                self._silent[index] = True
                return self._advance()
            case EndOfInput():
                self._ended[index] = True
                return AllEnded() if all(self._ended) else self._advance()
            case Barrier():
                return self._barrier(index, element, now_ms)
            case _:
                assert_never(element)

    def _barrier(self, index: int, barrier: Barrier, now_ms: int) -> GateEvent:
        before = self._alignment.aligning
        step = self._alignment.barrier(index, barrier.checkpoint, barrier.kind)
        match step:
            case Wait():
                if before != barrier.checkpoint:
                    self._aligning_since_ms = now_ms
                return Nothing()
            case Drop():
                return Nothing()
            case Cut(checkpoint=checkpoint, kind=kind):
                since = self._aligning_since_ms if before == barrier.checkpoint else now_ms
                return Aligned(checkpoint=checkpoint, kind=kind, alignment_ms=now_ms - since)
            case _:
                assert_never(step)

    def _advance(self) -> GateEvent:
        active = [
            time_ms
            for time_ms, silent, ended in zip(self._watermarks, self._silent, self._ended, strict=True)
            if not silent and not ended
        ]
        if not active:
            if self._told_idle or all(self._ended):
                return Nothing()
            self._told_idle = True
            return AllIdle()
        slowest = min(active)
        if slowest > self._time_ms or (self._told_idle and self._time_ms > MIN_TIME_MS):
            # After a silence the time is told again, so that who waits below knows that we are back.
            self._told_idle = False
            self._time_ms = max(self._time_ms, slowest)
            return EventTime(time_ms=min(self._time_ms, MAX_TIME_MS))
        return Nothing()
