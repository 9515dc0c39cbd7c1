"""The states of one checkpoint and how one follows another (A6, A14)."""

from __future__ import annotations

from enum import StrEnum

from processor.invariant import invariant


class CheckpointStatus(StrEnum):
    PREPARING = "preparing"
    """Who takes part on the coordinator's side is asked; no barrier is out yet (A7)."""
    PENDING = "pending"
    """Barriers are out; acknowledgements come in."""
    COMPLETE = "complete"
    """All are in; it waits until the one before is published (R13)."""
    DECIDING = "deciding"
    PUBLISHING = "publishing"
    """Decided, and on its way out."""
    COMPLETED = "completed"
    """Decided, published, recorded."""
    GIVEN_UP = "given-up"
    LEFT = "left"
    """The attempt ended first. What was decided of it the next attempt publishes."""


_FOLLOWS: dict[CheckpointStatus, frozenset[CheckpointStatus]] = {
    CheckpointStatus.PREPARING: frozenset(
        {CheckpointStatus.PENDING, CheckpointStatus.GIVEN_UP, CheckpointStatus.LEFT}
    ),
    CheckpointStatus.PENDING: frozenset(
        {CheckpointStatus.COMPLETE, CheckpointStatus.GIVEN_UP, CheckpointStatus.LEFT}
    ),
    CheckpointStatus.COMPLETE: frozenset({CheckpointStatus.DECIDING, CheckpointStatus.LEFT}),
    CheckpointStatus.DECIDING: frozenset({CheckpointStatus.PUBLISHING, CheckpointStatus.LEFT}),
    CheckpointStatus.PUBLISHING: frozenset({CheckpointStatus.COMPLETED, CheckpointStatus.LEFT}),
    CheckpointStatus.COMPLETED: frozenset(),
    CheckpointStatus.GIVEN_UP: frozenset(),
    CheckpointStatus.LEFT: frozenset(),
}


class CheckpointState:
    """Where one checkpoint is. What is not in the table can't happen, so it ends exactly once."""

    def __init__(self) -> None:
        self.status = CheckpointStatus.PREPARING

    def to(self, status: CheckpointStatus) -> None:
        invariant(status in _FOLLOWS[self.status], f"a {self.status} checkpoint does not become {status}")
        self.status = status

    @property
    def over(self) -> bool:
        return not _FOLLOWS[self.status]
