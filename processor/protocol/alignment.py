"""Which inputs of one subtask must wait for the barrier of which checkpoint, and when barriers may overtake
what is in front of them (A9, A10, R26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from processor.ids import NO_CHECKPOINT, CheckpointId
from processor.invariant import invariant
from processor.protocol.messages import CheckpointKind


@dataclass(frozen=True, slots=True)
class Wait:
    """The channel waits; other channels have yet to deliver the barrier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The barrier is on every channel: cut now, then all channels run again."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    alignment_ms: int
    """Since the barrier was first seen on any channel."""
    overtaken: bool = False
    """On some channels records may be in front of it: they become part of the checkpoint."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A late barrier: its checkpoint was cut or aborted here already (R26)."""


AlignmentStep = Wait | Cut | Drop


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """The oldest barrier on its way on a channel that is not late."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    overtakes: bool
    """Its sender did not wait until it was aligned."""
    next: bool
    """Nothing is in front of it."""


class BarrierAlignment:
    """Blocks channels that delivered a barrier until all have; remembers what is over.

    Checkpoints align one after another, in the order of their numbers, however many are under way: a channel
    delivers barriers in order, so one that shows a newer barrier first will never show the older one, and the
    older checkpoint is over here.

    A barrier overtakes at once on all channels or on none, and only when it is on its way on each. So a cut has
    one moment, what was in front of the barriers at that moment is all that belongs to the checkpoint beside
    the state, and nothing of two checkpoints can be mixed.
    """

    def __init__(self, overtakable: Sequence[bool], timeout_ms: int | None = None) -> None:
        """``overtakable``: for each channel whether barriers may overtake on it. ``timeout_ms``: how long a
        checkpoint aligns before they do; None: they never do."""
        self._overtakable = tuple(overtakable)
        self._timeout_ms = timeout_ms
        self._blocked: set[int] = set()
        self._aligning: CheckpointId | None = None
        self._since_ms = 0
        self._overtaking = False
        """Somebody in front has not waited for the checkpoint that aligns."""
        self._highest_over = NO_CHECKPOINT

    @property
    def aligning(self) -> CheckpointId | None:
        return self._aligning

    def blocked(self, channel: int) -> bool:
        return channel in self._blocked

    def late(self, checkpoint: CheckpointId) -> bool:
        """Whether its barriers mean nothing any more."""
        return checkpoint <= self._highest_over

    def barrier(
        self,
        channel: int,
        checkpoint: CheckpointId,
        kind: CheckpointKind,
        now_ms: int,
        *,
        overtakes: bool = False,
    ) -> AlignmentStep:
        """The barrier's turn has come: block the channel; when it is the last, return Cut and unblock all."""
        invariant(channel not in self._blocked, "a blocked channel delivers nothing")
        if not self._seen(checkpoint, overtakes, now_ms):
            return Drop()
        self._blocked.add(channel)
        if len(self._blocked) < len(self._overtakable):
            return Wait()
        return self._cut(checkpoint, kind, now_ms, overtaken=False)

    def overtake(self, announced: Sequence[Announced | None], now_ms: int) -> Cut | None:
        """Whether barriers overtake now: they are on their way on every channel, on those that may not be
        overtaken it is their turn, and the checkpoint has had its time to align.

        ``announced``: for every channel that is not blocked what is on its way; else None.
        """
        if self._timeout_ms is None:
            return None
        for barrier in announced:
            if barrier is not None:
                self._seen(barrier.checkpoint, barrier.overtakes, now_ms)
        kind: CheckpointKind | None = None
        for channel, barrier in enumerate(announced):
            if channel in self._blocked:
                continue
            if barrier is None or barrier.checkpoint != self._aligning:
                return None
            if not (barrier.next or self._overtakable[channel]):
                return None
            kind = barrier.kind
        if kind is None or self._aligning is None or not kind.may_overtake:
            return None
        if not self._overtaking and now_ms - self._since_ms < self._timeout_ms:
            return None
        return self._cut(self._aligning, kind, now_ms, overtaken=True)

    def over(self, checkpoint: CheckpointId) -> None:
        """The checkpoint was cut or aborted here: its barriers, however late, mean nothing any more."""
        if checkpoint > self._highest_over:
            self._highest_over = checkpoint
        if self._aligning is not None and self._aligning <= self._highest_over:
            self._aligning = None
            self._overtaking = False
            self._blocked.clear()

    def _seen(self, checkpoint: CheckpointId, overtakes: bool, now_ms: int) -> bool:
        """A barrier of the checkpoint is here or on its way; False when it is late."""
        if self.late(checkpoint) or (self._aligning is not None and checkpoint < self._aligning):
            return False
        if self._aligning is not None and checkpoint > self._aligning:
            self.over(self._aligning)
        if self._aligning is None:
            self._aligning = checkpoint
            self._since_ms = now_ms
        self._overtaking = self._overtaking or overtakes
        return True

    def _cut(self, checkpoint: CheckpointId, kind: CheckpointKind, now_ms: int, *, overtaken: bool) -> Cut:
        alignment_ms = now_ms - self._since_ms
        self.over(checkpoint)
        return Cut(checkpoint=checkpoint, kind=kind, alignment_ms=alignment_ms, overtaken=overtaken)
