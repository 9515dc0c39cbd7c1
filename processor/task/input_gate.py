"""Where elements enter a subtask: picks the next one, aligns barriers, takes the minimum of watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from processor.contracts.channel import ChannelReceiver
from processor.ids import CheckpointId, EdgeName
from processor.invariant import invariant
from processor.protocol.alignment import Announced, BarrierAlignment, Cut, Drop, Wait
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
from processor.storage.channel_file import ChannelHead
from processor.task.in_flight import Overtaken, in_front


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
class CutNow:
    """The barrier of a checkpoint is on every channel: cut now."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    alignment_ms: int
    overtaken: bool = False
    in_flight: tuple[Overtaken, ...] = ()
    """The channels on which it overtook records, each as it stands."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The element was consumed, and there is nothing to do about it."""


GateEvent = Records | EventTime | AllIdle | AllEnded | CutNow | Nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class InputChannel:
    """One channel into a subtask, and how a restored checkpoint left it."""

    input: int
    """Which input of the chain's first operator it belongs to."""
    receiver: ChannelReceiver
    edge: EdgeName | None = None
    """The edge, if barriers may overtake the records on it."""
    producer: int = 0
    """Index of the subtask that sends on it."""
    watermark_ms: int = MIN_TIME_MS
    """Event time it had told at the cut."""
    silent: bool = False
    """It held nobody back then."""
    adopted: int = 0
    """So many elements at its front were in flight under another layout: on whatever channel they are now, what
    follows them may come by any other, so they are taken before anything new of any channel."""


class InputGate:
    """All channels into one subtask; ``next`` takes at most one element.

    Channels are read in turn, so that a full one does not starve the others. Event time is the minimum over
    channels that are neither idle nor ended; it never goes back.
    """

    def __init__(self, channels: Sequence[InputChannel], *, alignment_timeout_ms: int | None = None) -> None:
        """``alignment_timeout_ms``: how long barriers align before they overtake; None: they never do."""
        invariant(len(channels) > 0, "a subtask that is no source has inputs")
        self._channels = tuple(channels)
        self._alignment = BarrierAlignment(
            [channel.edge is not None for channel in channels], alignment_timeout_ms
        )
        self._overtakes = alignment_timeout_ms is not None
        self._watermarks = [channel.watermark_ms for channel in channels]
        self._silent = [channel.silent for channel in channels]
        self._ended = [False] * len(channels)
        self._adopted = [channel.adopted for channel in channels]
        self._adopting = any(self._adopted)
        self._time_ms = MIN_TIME_MS
        self._told_idle = False
        self._turn = 0

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
            receiver = self._channels[index].receiver
            if receiver.peek() is None or self._alignment.blocked(index):
                continue
            if self._adopting and not self._adopted[index]:
                continue
            self._turn = (index + 1) % channels
            return self._take(index, now_ms)
        return None

    def overtake(self, now_ms: int) -> CutNow | None:
        """The cut of a checkpoint whose barriers overtake what is in front of them; None: none does now.

        Costs nothing while no barrier is on its way, and works under back-pressure: nothing is processed.
        """
        if not self._overtakes or not any(channel.receiver.barriers() for channel in self._channels):
            return None
        if self._adopting:  # else the next restore could not tell them from what followed them
            return None
        on_their_way = [self._on_its_way(index) for index in range(len(self._channels))]
        cut = self._alignment.overtake([self._announced(*found) for found in on_their_way], now_ms)
        if cut is None:
            return None
        in_flight: list[Overtaken] = []
        for index, (channel, barrier) in enumerate(on_their_way):
            elements = () if barrier is None else in_front(channel.receiver.overtake(barrier))
            if channel.edge is not None:
                head = self._head(index)
                in_flight.append(Overtaken(edge=channel.edge, head=head, elements=elements))
        return CutNow(
            checkpoint=cut.checkpoint,
            kind=cut.kind,
            alignment_ms=cut.alignment_ms,
            overtaken=True,
            in_flight=tuple(in_flight),
        )

    def _on_its_way(self, index: int) -> tuple[InputChannel, Barrier | None]:
        channel = self._channels[index]
        if self._alignment.blocked(index):
            return channel, None
        alive = (b for b in channel.receiver.barriers() if not self._alignment.late(b.checkpoint))
        return channel, next(alive, None)

    def _announced(self, channel: InputChannel, barrier: Barrier | None) -> Announced | None:
        if barrier is None:
            return None
        return Announced(
            checkpoint=barrier.checkpoint,
            kind=barrier.kind,
            overtakes=barrier.overtakes,
            next=channel.receiver.peek() is barrier,
        )

    def _head(self, index: int) -> ChannelHead:
        watermark_ms = self._watermarks[index]
        over = self._ended[index] or watermark_ms >= MAX_TIME_MS
        return ChannelHead(
            producer=self._channels[index].producer,
            watermark_ms=None if over or watermark_ms == MIN_TIME_MS else watermark_ms,
            silent=self._silent[index] or over,
        )

    def _take(self, index: int, now_ms: int) -> GateEvent:
        channel = self._channels[index]
        element = channel.receiver.take()
        if self._adopting:
            self._adopted[index] -= 1
            self._adopting = any(self._adopted)
        match element:
            case Batch():
                # A silent channel stays so: a source without event time sends records and never a watermark.
                return Records(input=channel.input, batch=element)
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
        step = self._alignment.barrier(
            index, barrier.checkpoint, barrier.kind, now_ms, overtakes=barrier.overtakes
        )
        match step:
            case Wait() | Drop():
                return Nothing()
            case Cut(checkpoint=checkpoint, kind=kind, alignment_ms=alignment_ms):
                return CutNow(checkpoint=checkpoint, kind=kind, alignment_ms=alignment_ms)
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
