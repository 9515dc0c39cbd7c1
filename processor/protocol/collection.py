"""Checkpoints on their way from their trigger to being complete: several at once (A6, A13, A15).

Subtasks cut in the order of ids, and messages come in any order. So a newer one may be complete before an older
one: then the older one is over, for it could only be decided behind what it would go back from. An older one is
over as well when a newer one is given up: every subtask drops barriers at or below one that it saw aborted (R26).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from processor.ids import Attempt, CheckpointId
from processor.protocol.checkpoint_status import CheckpointStatus
from processor.protocol.coordinator_messages import Action, Broadcast, Condemn, TellParticipants
from processor.protocol.failure_manager import GivenUp
from processor.protocol.messages import AbortCheckpoint, Acknowledged
from processor.protocol.pending_checkpoint import PendingCheckpoint

REMEMBERED_MAX = 256
"""Given-up checkpoints whose late acknowledgements still condemn what they list; a later attempt sweeps the
rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A checkpoint that was given up, and what is to be done about it."""

    pending: PendingCheckpoint
    why: GivenUp
    reason: str
    actions: tuple[Action, ...]


class Collection:
    """The checkpoints that are prepared or collected, by id."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._pending: dict[CheckpointId, PendingCheckpoint] = {}
        self._given_up: deque[CheckpointId] = deque(maxlen=REMEMBERED_MAX)

    def __len__(self) -> int:
        return len(self._pending)

    def all(self) -> tuple[PendingCheckpoint, ...]:
        """Oldest first."""
        return tuple(self._pending.values())

    @property
    def preparing(self) -> bool:
        """Whether one is not yet out: barriers go out in the order of ids, so the next one waits."""
        return any(p.state.status is CheckpointStatus.PREPARING for p in self._pending.values())

    def begin(self, pending: PendingCheckpoint) -> None:
        self._pending[pending.checkpoint] = pending

    def of(self, checkpoint: CheckpointId) -> PendingCheckpoint | None:
        return self._pending.get(checkpoint)

    def late(self, event: Acknowledged) -> tuple[Action, ...]:
        """Of a checkpoint that is no longer collected: if it was given up, its state files are garbage; its
        outboxes are listed again by the next one (R9)."""
        if event.checkpoint not in self._given_up:
            return ()
        return (Condemn(files=event.snapshot.state_files()),)

    def complete(self, pending: PendingCheckpoint) -> tuple[Dropped, ...]:
        """It has all its acknowledgements; what is dropped with it."""
        del self._pending[pending.checkpoint]
        return self._drop_older(pending.checkpoint, f"checkpoint {pending.checkpoint} was complete before it")

    def give_up(self, pending: PendingCheckpoint, why: GivenUp, reason: str) -> tuple[Dropped, ...]:
        """The checkpoint and the older ones, oldest first; it comes last."""
        del self._pending[pending.checkpoint]
        older = self._drop_older(pending.checkpoint, f"checkpoint {pending.checkpoint} was given up")
        return (*older, self._drop(pending, why, reason))

    def expired(self, now_ms: int) -> PendingCheckpoint | None:
        """The oldest whose time has passed."""
        return next((p for p in self._pending.values() if now_ms >= p.expires_ms), None)

    def next_ms(self) -> int | None:
        return min((p.expires_ms for p in self._pending.values()), default=None)

    def _drop_older(self, than: CheckpointId, reason: str) -> tuple[Dropped, ...]:
        older = [pending for pending in self._pending.values() if pending.checkpoint < than]
        for pending in older:
            del self._pending[pending.checkpoint]
        return tuple(self._drop(pending, GivenUp.SUBSUMED, reason) for pending in older)

    def _drop(self, pending: PendingCheckpoint, why: GivenUp, reason: str) -> Dropped:
        checkpoint = pending.checkpoint
        prepared = pending.state.status is not CheckpointStatus.PREPARING
        pending.state.to(CheckpointStatus.GIVEN_UP)
        self._given_up.append(checkpoint)
        actions: tuple[Action, ...] = ()
        if prepared:
            abort = AbortCheckpoint(attempt=self._attempt, checkpoint=checkpoint, reason=reason)
            actions = (Broadcast(order=abort), Condemn(files=pending.state_files()))
        actions += (TellParticipants(checkpoint=checkpoint, completed=False),)
        return Dropped(pending=pending, why=why, reason=reason, actions=actions)
