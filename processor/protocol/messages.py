"""What coordinator and workers say to each other. Every message names its attempt; replies name their request.

Orders go to workers, reports come back. Links may delay, double or lose them, and a message of another attempt
is never acted on (R21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from processor.ids import Attempt, CheckpointId, Marker, Position, PublisherId, SplitId, StepName, SubtaskId
from processor.protocol.entries import OutboxFile, SubtaskSnapshot


class CheckpointKind(StrEnum):
    PERIODIC = "periodic"
    MANUAL = "manual"
    SAVEPOINT = "savepoint"
    STOP = "stop"
    """After its barrier nothing runs any more (R24)."""
    LAST = "last"
    """All inputs of a bounded job have ended."""

    @property
    def stops(self) -> bool:
        """Whether nothing runs any more behind its barrier."""
        return self in (CheckpointKind.STOP, CheckpointKind.LAST)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgementMetrics:
    """How long the parts of one subtask's snapshot took, in milliseconds, and how much it wrote."""

    alignment_ms: int = 0
    synchronous_ms: int = 0
    asynchronous_ms: int = 0
    bytes: int = 0


# --- orders: coordinator to worker


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectBarrier:
    attempt: Attempt
    checkpoint: CheckpointId
    kind: CheckpointKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortCheckpoint:
    attempt: Attempt
    checkpoint: CheckpointId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSources:
    """A stop failed before its decision: go on (R24)."""

    attempt: Attempt
    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What one identity has to publish of one decided checkpoint."""

    publisher: PublisherId
    outboxes: tuple[OutboxFile, ...]
    expected: Marker

    @property
    def rows(self) -> int:
        return sum(outbox.rows for outbox in self.outboxes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDecided:
    """The entry is taken: drop what it decided from the undecided outboxes, and publish."""

    attempt: Attempt
    checkpoint: CheckpointId
    publications: tuple[Publication, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshMarkers:
    """Write these markers again as they are: their identities have been idle (R14)."""

    attempt: Attempt
    markers: tuple[tuple[PublisherId, Marker], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCompleted:
    """Decided, and published everywhere."""

    attempt: Attempt
    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignSplits:
    attempt: Attempt
    step: StepName
    splits: Mapping[SplitId, Position]


Order = (
    InjectBarrier
    | AbortCheckpoint
    | ResumeSources
    | CheckpointDecided
    | CheckpointCompleted
    | RefreshMarkers
    | AssignSplits
)


# --- reports: worker to coordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskRunning:
    attempt: Attempt
    subtask: SubtaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskEnded:
    """All inputs of the subtask have ended; it stays to take part in checkpoints."""

    attempt: Attempt
    subtask: SubtaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskPressed:
    """An outbox or a cache is full: a checkpoint is wanted at once (R9)."""

    attempt: Attempt
    subtask: SubtaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    attempt: Attempt
    checkpoint: CheckpointId
    snapshot: SubtaskSnapshot
    metrics: AcknowledgementMetrics = field(default_factory=AcknowledgementMetrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    attempt: Attempt
    checkpoint: CheckpointId
    subtask: SubtaskId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationDone:
    """All rows of the identity are out, under this marker."""

    attempt: Attempt
    checkpoint: CheckpointId
    publisher: PublisherId
    marker: Marker


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationUnanswered:
    """The outside system did not answer within the deadline; nothing is known, nothing is lost."""

    attempt: Attempt
    checkpoint: CheckpointId
    publisher: PublisherId
    reason: str


Report = (
    SubtaskRunning
    | SubtaskEnded
    | SubtaskPressed
    | Acknowledged
    | Declined
    | PublicationDone
    | PublicationUnanswered
)
