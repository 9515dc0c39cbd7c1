"""The states of one checkpoint and how one follows another (A6, A14)."""

from __future__ import annotations

from enum import StrEnum

from processor.protocol.state_table import State, StateTable


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


_CHECKPOINT = StateTable(
    "checkpoint",
    CheckpointStatus.PREPARING,
    {
        CheckpointStatus.PREPARING: (
            CheckpointStatus.PENDING,
            CheckpointStatus.GIVEN_UP,
            CheckpointStatus.LEFT,
        ),
        CheckpointStatus.PENDING: (
            CheckpointStatus.COMPLETE,
            CheckpointStatus.GIVEN_UP,
            CheckpointStatus.LEFT,
        ),
        CheckpointStatus.COMPLETE: (CheckpointStatus.DECIDING, CheckpointStatus.LEFT),
        CheckpointStatus.DECIDING: (CheckpointStatus.PUBLISHING, CheckpointStatus.LEFT),
        CheckpointStatus.PUBLISHING: (CheckpointStatus.COMPLETED, CheckpointStatus.LEFT),
        CheckpointStatus.COMPLETED: (),
        CheckpointStatus.GIVEN_UP: (),
        CheckpointStatus.LEFT: (),
    },
)


class CheckpointState(State[CheckpointStatus]):
    """Where one checkpoint is. Its ends have nothing behind them, so it ends exactly once."""

    def __init__(self) -> None:
        super().__init__(_CHECKPOINT)
