"""Which inputs of one subtask must wait for the barrier of which checkpoint (A9, R26)."""

from __future__ import annotations

from dataclasses import dataclass

from processor.ids import NO_CHECKPOINT, CheckpointId
from processor.invariant import invariant
from processor.protocol.messages import CheckpointKind


@dataclass(frozen=True, slots=True)
class Wait:
    """The channel waits; other channels have yet to deliver the barrier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The barrier is here on every channel: cut now, then all channels run again."""

    checkpoint: CheckpointId
    kind: CheckpointKind


@dataclass(frozen=True, slots=True)
class Drop:
    """A late barrier: its checkpoint was cut or aborted here already (R26)."""


AlignmentStep = Wait | Cut | Drop


class BarrierAlignment:
    """Blocks channels that delivered a barrier until all have; remembers what is over.

    One checkpoint aligns at a time. A barrier of a newer one gives the older one up: its coordinator has
    given it up before it injected the newer.
    """

    def __init__(self, channels: int) -> None:
        self._channels = channels
        self._blocked: set[int] = set()
        self._aligning: CheckpointId | None = None
        self._highest_over = NO_CHECKPOINT

    @property
    def aligning(self) -> CheckpointId | None:
        return self._aligning

    def blocked(self, channel: int) -> bool:
        return channel in self._blocked

    def barrier(self, channel: int, checkpoint: CheckpointId, kind: CheckpointKind) -> AlignmentStep:
        """Block the channel; when it is the last, return Cut and unblock all."""
        invariant(channel not in self._blocked, "a blocked channel delivers nothing")
        if checkpoint <= self._highest_over:
            return Drop()
        if self._aligning is not None and checkpoint < self._aligning:
            return Drop()
        if self._aligning is not None and checkpoint > self._aligning:
            self.over(self._aligning)
        self._aligning = checkpoint
        self._blocked.add(channel)
        if len(self._blocked) < self._channels:
            return Wait()
        self.over(checkpoint)
        return Cut(checkpoint=checkpoint, kind=kind)

    def over(self, checkpoint: CheckpointId) -> None:
        """The checkpoint was cut or aborted here: its barriers, however late, mean nothing any more."""
        if checkpoint > self._highest_over:
            self._highest_over = checkpoint
        if self._aligning is not None and self._aligning <= self._highest_over:
            self._aligning = None
            self._blocked.clear()
