"""What coordinator and workers say to each other. Every message names its attempt; replies name their request.

Orders go to workers, reports come back. Links may delay, double or lose them, and a message of another attempt
is never acted on (R21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from processor.ids import (
    NO_CHECKPOINT,
    Attempt,
    CheckpointId,
    Marker,
    Position,
    PublisherId,
    SplitId,
    StepName,
    SubtaskId,
)
from processor.protocol.entries import OutboxFile, SubtaskSnapshot


class CheckpointKind(StrEnum):
    PERIODIC = "periodic"
    MANUAL = "manual"
    FULL = "full"
    """By hand, and it lists no file that an earlier one wrote."""
    SAVEPOINT = "savepoint"
    STOP = "stop"
    """After its barrier nothing runs any more (R24)."""
    DRAIN = "drain"
    """A stop before whose barrier all sources end, so that everything that waits for event time comes out (R24)."""
    LAST = "last"
    """All inputs of a bounded job have ended."""
    RESCALE = "rescale"
    """A stop from which the next attempt goes on at once, at another parallelism (D5)."""

    @property
    def stops(self) -> bool:
        """Whether nothing runs any more behind its barrier."""
        return self.ends_job or self is CheckpointKind.RESCALE

    @property
    def ends_job(self) -> bool:
        """Whether the job has ended when it is published, in whichever attempt that is (R24)."""
        return self in (CheckpointKind.STOP, CheckpointKind.DRAIN, CheckpointKind.LAST)

    @property
    def ends_input(self) -> bool:
        """Whether nothing is left to read behind it: the job has finished, and does not go on from there."""
        return self in (CheckpointKind.DRAIN, CheckpointKind.LAST)

    @property
    def may_overtake(self) -> bool:
        """Whether its barriers may overtake data: what is kept for long, or ends the job, is always aligned (R27)."""
        return self in (CheckpointKind.PERIODIC, CheckpointKind.MANUAL, CheckpointKind.FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgementMetrics:
    """How long the parts of one subtask's snapshot took, in milliseconds, and how much it wrote."""

    start_delay_ms: int = 0
    """From hearing of the checkpoint to its first barrier here, by this subtask's own clock; 0 when the order
    was lost on its way here."""
    alignment_ms: int = 0
    """From the first sight of its barrier on any channel to the cut."""
    synchronous_ms: int = 0
    asynchronous_ms: int = 0
    state_bytes: int = 0
    """Of all files of keyed state that the snapshot lists, those of checkpoints before included."""
    new_state_bytes: int = 0
    """Of those that were written for it."""
    outbox_bytes: int = 0
    """Of all outboxes that it lists."""
    overtaken: bool = False
    """The barrier overtook what was in front of it: the subtask did not wait until it was aligned (A10)."""
    channel_records: int = 0
    """In flight when they were overtaken."""
    channel_bytes: int = 0
    """Of the files that hold them."""
    files: int = 0
    """All that it lists."""

    @property
    def bytes(self) -> int:
        """Of everything that it lists."""
        return self.state_bytes + self.channel_bytes + self.outbox_bytes


# --- orders: coordinator to worker


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectBarrier:
    attempt: Attempt
    checkpoint: CheckpointId
    kind: CheckpointKind
    decided: CheckpointId = NO_CHECKPOINT
    """The newest decided one: who has missed the news of it learns it here, and its snapshot builds on nothing
    older (R22)."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldSources:
    """An outbox or a cache of a subtask is full: sources of other workers hold still too, until a checkpoint from
    this one on is decided or given up (R9). Who has it itself looks, and needs no order."""

    attempt: Attempt
    subtask: SubtaskId
    until: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRunning:
    """Every subtask of the attempt is known to run: nobody need say so again."""

    attempt: Attempt


Order = (
    AllRunning
    | InjectBarrier
    | AbortCheckpoint
    | ResumeSources
    | HoldSources
    | CheckpointDecided
    | CheckpointCompleted
    | RefreshMarkers
    | AssignSplits
)


# --- reports: worker to coordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskRunning:
    """Said again until ``AllRunning`` comes: without it the attempt would wait out its time for starting."""

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
class SubtaskReads:
    """Whether a source's subtask reads a backlog. Told at every change and with every acknowledgement: losing
    it costs one checkpoint's pace (A3)."""

    attempt: Attempt
    subtask: SubtaskId
    backlog: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    attempt: Attempt
    checkpoint: CheckpointId
    snapshot: SubtaskSnapshot
    built_on: CheckpointId | None = None
    """The newest checkpoint that the subtask knew to be decided at its cut, whose files it may list again;
    None: none."""
    backlog: bool = False
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
    | SubtaskReads
    | Acknowledged
    | Declined
    | PublicationDone
    | PublicationUnanswered
)
