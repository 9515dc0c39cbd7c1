"""The part one subtask has in checkpoints: what was cut, what is being written, what may be acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

from processor.ids import NO_CHECKPOINT, CheckpointId
from processor.invariant import invariant


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Its checkpoint is over: what was written stays undecided and goes along with the next one (R9)."""

    checkpoint: CheckpointId


class SubtaskCheckpoint:
    """Tracks cuts and completions of one subtask. Completions end in the order of their cuts."""

    def __init__(self) -> None:
        self._cut = NO_CHECKPOINT
        self._writing: list[CheckpointId] = []
        self._aborted: set[CheckpointId] = set()
        self.stopped = False
        """After the cut of a stop no element and no timer runs (R24)."""

    @property
    def writing(self) -> tuple[CheckpointId, ...]:
        return tuple(self._writing)

    def accepts(self, checkpoint: CheckpointId) -> bool:
        """Whether a source may inject this barrier: one at or below the highest cut or aborted is late (R26)."""
        return checkpoint > self._cut and checkpoint not in self._aborted

    def cut(self, checkpoint: CheckpointId, *, stop: bool) -> None:
        invariant(checkpoint > self._cut, "cuts of a subtask grow")
        self._cut = checkpoint
        self._writing.append(checkpoint)
        self.stopped = stop

    def written(self, checkpoint: CheckpointId) -> Acknowledge | Forget:
        invariant(bool(self._writing) and self._writing[0] == checkpoint, "completions end in order")
        self._writing.pop(0)
        if checkpoint in self._aborted:
            self._aborted.discard(checkpoint)
            return Forget(checkpoint=checkpoint)
        return Acknowledge(checkpoint=checkpoint)

    def aborted(self, checkpoint: CheckpointId) -> None:
        if checkpoint > self._cut:
            self._cut = checkpoint
        elif checkpoint in self._writing:
            self._aborted.add(checkpoint)

    def resumed(self) -> None:
        self.stopped = False
