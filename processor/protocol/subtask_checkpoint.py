"""The part one subtask has in checkpoints: which barriers it still takes, and whether it has stopped."""

from __future__ import annotations

from processor.ids import NO_CHECKPOINT, CheckpointId
from processor.invariant import invariant


class SubtaskCheckpoint:
    """Remembers the highest checkpoint that was cut or aborted here: a barrier at or below is late (R26)."""

    def __init__(self) -> None:
        self._over = NO_CHECKPOINT
        self._stopped_by: CheckpointId | None = None

    @property
    def stopped(self) -> bool:
        """After the cut of a stop no element and no timer runs (R24)."""
        return self._stopped_by is not None

    def accepts(self, checkpoint: CheckpointId) -> bool:
        return checkpoint > self._over

    def cut(self, checkpoint: CheckpointId, *, stop: bool) -> None:
        invariant(checkpoint > self._over, "a subtask cuts a checkpoint once, and none that was aborted")
        self._over = checkpoint
        if stop:
            self._stopped_by = checkpoint

    def aborted(self, checkpoint: CheckpointId) -> None:
        self._over = max(self._over, checkpoint)

    def resumed(self, checkpoint: CheckpointId) -> None:
        """The stop that began with this checkpoint failed before its decision: go on (R24)."""
        if self._stopped_by == checkpoint:
            self._stopped_by = None
