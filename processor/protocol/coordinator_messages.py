"""What happens to a coordinator (events) and what it wants done (actions). One driver performs the actions."""

from __future__ import annotations

from dataclasses import dataclass

from processor.ids import CheckpointId, FileRef, Marker, PublisherId
from processor.protocol.entries import ParticipantState, SubtaskSnapshot
from processor.protocol.messages import Order, Report
from processor.protocol.pending_checkpoint import Request

# --- events beside the workers' reports


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantsReady:
    """Everybody on the coordinator's side has taken part (A7)."""

    checkpoint: CheckpointId
    states: tuple[ParticipantState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantFailed:
    checkpoint: CheckpointId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTaken:
    """The entry holds its place: the checkpoint is decided."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLost:
    """Somebody else holds the place: a newer attempt has sealed the log (R1)."""

    checkpoint: CheckpointId
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionUnknown:
    """The outcome could not be read back before the deadline (R6)."""

    checkpoint: CheckpointId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRecorded:
    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointCopied:
    """``failure`` is empty when the copy is whole."""

    checkpoint: CheckpointId
    request: Request
    failure: str = ""


Event = (
    Tick
    | Requested
    | ParticipantsReady
    | ParticipantFailed
    | DecisionTaken
    | DecisionLost
    | DecisionUnknown
    | PublishedRecorded
    | SavepointCopied
    | Report
)

# --- actions


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast:
    """Send an order to every worker; each acts on the part that is its own."""

    order: Order


@dataclass(frozen=True, slots=True, kw_only=True)
class AskParticipants:
    """Let everybody on the coordinator's side take part in a checkpoint, before its barriers go out (A7)."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class TellParticipants:
    """A checkpoint that they took part in is completed, or was given up."""

    checkpoint: CheckpointId
    completed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """Take the next place of the decision log with this content (R5)."""

    checkpoint: CheckpointId
    parent: CheckpointId
    subtasks: tuple[SubtaskSnapshot, ...]
    expected: tuple[tuple[PublisherId, Marker], ...]
    participants: tuple[ParticipantState, ...]
    needed_from: CheckpointId
    """Checkpoints that are still collected may list files of this decided one and of newer ones: none of them
    may be condemned, though it is no longer kept (R22)."""
    savepoint: str
    native: bool
    stop: bool
    drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPublished:
    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class Retain:
    """Forget what no rule keeps now that this checkpoint is completed (R7)."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemn:
    """Files that no checkpoint will name; the next entry lists them (R22)."""

    files: tuple[FileRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySavepoint:
    """Copy a published checkpoint into ``request.savepoint``, its manifest last (R23)."""

    checkpoint: CheckpointId
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """To whoever made request ``number``: the checkpoint, or why not."""

    number: int
    checkpoint: CheckpointId | None = None
    path: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndJob:
    """The attempt's last checkpoint is published: wait until it can be read (R17), then end it, and the job too
    unless it goes on at another parallelism (D5)."""

    finished: bool
    """True: all input has ended, by itself or by a drain. False: it was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailAttempt:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedByLog:
    """A newer attempt runs: stop quietly."""

    checkpoint: CheckpointId
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A late, doubled or unknown message; counted, never an error (A15)."""

    event: Event
    why: str


Action = (
    Broadcast
    | AskParticipants
    | TellParticipants
    | Decide
    | RecordPublished
    | Retain
    | Condemn
    | CopySavepoint
    | Answer
    | EndJob
    | FailAttempt
    | FencedByLog
    | Ignored
)
