"""One checkpoint on its way from its barriers to its decision (A6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from processor.ids import CheckpointId, FileRef, SubtaskId
from processor.invariant import invariant
from processor.protocol.entries import SubtaskSnapshot
from processor.protocol.messages import AcknowledgementMetrics, CheckpointKind


class Collected(StrEnum):
    """What an acknowledgement did (A15)."""

    COUNTED = "counted"
    COMPLETE = "complete"
    DOUBLE = "double"
    UNKNOWN_SUBTASK = "unknown-subtask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who asked for a checkpoint, and for what. ``number`` names it in answers; 0 is the clock."""

    kind: CheckpointKind
    number: int = 0
    savepoint: str = ""


class PendingCheckpoint:
    """Collects one acknowledgement from every subtask of its plan; ends exactly once."""

    def __init__(
        self,
        *,
        checkpoint: CheckpointId,
        request: Request,
        must_acknowledge: frozenset[SubtaskId],
        triggered_ms: int,
        expires_ms: int,
    ) -> None:
        self.checkpoint = checkpoint
        self.request = request
        self.triggered_ms = triggered_ms
        self.expires_ms = expires_ms
        self._missing = set(must_acknowledge)
        self._known = must_acknowledge
        self._snapshots: dict[SubtaskId, SubtaskSnapshot] = {}
        self.metrics: dict[SubtaskId, AcknowledgementMetrics] = {}

    @property
    def missing(self) -> tuple[SubtaskId, ...]:
        return tuple(sorted(self._missing))

    @property
    def complete(self) -> bool:
        return not self._missing

    def collect(self, snapshot: SubtaskSnapshot, metrics: AcknowledgementMetrics) -> Collected:
        subtask = snapshot.subtask
        if subtask not in self._known:
            return Collected.UNKNOWN_SUBTASK
        if subtask not in self._missing:
            return Collected.DOUBLE
        self._missing.discard(subtask)
        self._snapshots[subtask] = snapshot
        self.metrics[subtask] = metrics
        return Collected.COUNTED if self._missing else Collected.COMPLETE

    def snapshots(self) -> tuple[SubtaskSnapshot, ...]:
        invariant(not self._missing, "only a complete checkpoint has snapshots to decide")
        return tuple(self._snapshots[subtask] for subtask in sorted(self._snapshots))

    def state_files(self) -> tuple[FileRef, ...]:
        """State files acknowledged so far: garbage if this checkpoint is given up. Outboxes are not: they
        are listed again by the next acknowledgement (R9)."""
        return tuple(state.file for snapshot in self._snapshots.values() for state in snapshot.keyed)
