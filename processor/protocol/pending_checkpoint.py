"""One checkpoint on its way from its barriers to its decision (A6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from processor.ids import CheckpointId, FileRef, SubtaskId
from processor.invariant import invariant
from processor.protocol.checkpoint_status import CheckpointState, CheckpointStatus
from processor.protocol.entries import ParticipantState, SubtaskSnapshot
from processor.protocol.messages import Acknowledged, CheckpointKind
from processor.protocol.subtask_states import CheckpointPlan


class Collected(StrEnum):
    """What an acknowledgement did (A15)."""

    COUNTED = "counted"
    COMPLETE = "complete"
    DOUBLE = "double"
    UNKNOWN_SUBTASK = "unknown-subtask"
    OUTDATED = "outdated"
    """It may list files that are condemned by now (R22)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who asked for a checkpoint, and for what. ``number`` names it in answers; 0 is the clock."""

    kind: CheckpointKind
    number: int = 0
    savepoint: str = ""
    """The directory to write a savepoint into; "": none is asked for."""
    native: bool = False
    """It is a copy of the backend's own files, and not in the canonical format."""


class PendingCheckpoint:
    """Collects one acknowledgement from every subtask of its plan; ends exactly once."""

    def __init__(
        self,
        *,
        checkpoint: CheckpointId,
        request: Request,
        plan: CheckpointPlan,
        base: CheckpointId,
        expires_ms: int,
    ) -> None:
        """``base``: the newest decided checkpoint when it was triggered; no snapshot builds on an older one."""
        self.checkpoint = checkpoint
        self.request = request
        self.plan = plan
        self.base = base
        self.expires_ms = expires_ms
        self.state = CheckpointState()
        self.participants: tuple[ParticipantState, ...] = ()
        self._missing = set(plan.must_acknowledge)
        self._snapshots: dict[SubtaskId, SubtaskSnapshot] = {}

    @property
    def missing(self) -> tuple[SubtaskId, ...]:
        return tuple(sorted(self._missing))

    def prepared(self, participants: tuple[ParticipantState, ...]) -> None:
        """The coordinator's side has taken part; barriers may go out."""
        self.state.to(CheckpointStatus.PENDING)
        self.participants = participants

    def collect(self, event: Acknowledged) -> Collected:
        subtask = event.snapshot.subtask
        if subtask not in self.plan.must_acknowledge:
            return Collected.UNKNOWN_SUBTASK
        if subtask not in self._missing:
            return Collected.DOUBLE
        self._missing.discard(subtask)
        self._snapshots[subtask] = event.snapshot
        if event.built_on is not None and event.built_on < self.base:
            return Collected.OUTDATED
        if self._missing:
            return Collected.COUNTED
        self.state.to(CheckpointStatus.COMPLETE)
        return Collected.COMPLETE

    def snapshots(self) -> tuple[SubtaskSnapshot, ...]:
        invariant(not self._missing, "only a complete checkpoint has snapshots to decide")
        return tuple(self._snapshots[subtask] for subtask in sorted(self._snapshots))

    def state_files(self) -> tuple[FileRef, ...]:
        """State files acknowledged so far: garbage if this checkpoint is given up. Outboxes are not: they
        are listed again by the next acknowledgement (R9)."""
        return tuple(file for snapshot in self._snapshots.values() for file in snapshot.state_files())
