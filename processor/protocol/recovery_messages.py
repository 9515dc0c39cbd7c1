"""What a recovery wants done, in the order in which it asks; each action names the reply it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from processor.ids import Attempt, CheckpointId, Incarnation, Marker, PublisherId
from processor.protocol.decisions import LogView
from processor.protocol.entries import (
    CheckpointEntry,
    JobShape,
    ParticipantState,
    Published,
    Rewind,
    Seal,
    SubtaskSnapshot,
)
from processor.protocol.messages import Publication
from processor.protocol.publishing import Wanted


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Reply: LogRead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRead:
    log: LogView
    published: Published | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtMarkers:
    """Read markers without shutting anybody out (R2). Reply: MarkersSeen."""

    publishers: tuple[PublisherId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersSeen:
    markers: Mapping[PublisherId, Marker | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MintIncarnation:
    """Reply: IncarnationMinted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncarnationMinted:
    incarnation: Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePlace:
    """Take the entry's place. The writer fills in its nonce and time. Reply: PlaceTaken or PlaceLost."""

    entry: Seal | Rewind | CheckpointEntry


@dataclass(frozen=True, slots=True)
class PlaceTaken:
    """Durable."""


@dataclass(frozen=True, slots=True)
class PlaceLost:
    """Somebody else has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyFiles:
    """Fetch and compare every file of the checkpoint (R8). Reply: FilesVerified."""

    entry: CheckpointEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesVerified:
    damage: str = ""
    """Empty, or the file and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFits:
    """Can this job be restored from that shape? Raises when not. Reply: Fits."""

    shape: JobShape


@dataclass(frozen=True, slots=True)
class Fits:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishAll:
    """Publish under the identities of the entry (R11). Reply: MarkersWritten."""

    checkpoint: CheckpointId
    publications: tuple[Publication, ...]
    incarnation: Incarnation
    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersWritten:
    markers: Mapping[PublisherId, Marker]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One identity to open (R14), with what judge_opening needs."""

    publisher: PublisherId
    wanted: Wanted
    unrecorded: bool
    newest_id: CheckpointId
    accepted: Incarnation | None
    unreadable: CheckpointId | None
    damage: str = ""
    """Why it can't be read, with the name of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAll:
    """Reply: MarkersWritten."""

    openings: tuple[Opening, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Write the note beside the log (R17). Reply: Recorded."""

    published: Published


@dataclass(frozen=True, slots=True)
class Recorded:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishSavepoint:
    """Copy a published checkpoint to where its stop was to leave a savepoint, unless it is there; one that cannot be
    written is told, and is no reason not to go on. Reply: SavepointFinished."""

    entry: CheckpointEntry


@dataclass(frozen=True, slots=True)
class SavepointFinished:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOrigin:
    """What is at the path of a savepoint or checkpoint directory? Raises when it is none. Reply: OriginFound."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginFound:
    identity: str
    """The savepoint's id, or the incarnation of a job's directory: the default token of a rewind (R3)."""
    incarnation: Incarnation
    checkpoint: CheckpointId
    shape: JobShape
    drained: bool = False
    """Event time is at its end there: nothing goes on from it (R24)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOrigin:
    """Bring the files of the origin into this job's store, under new names (R22). Reply: SnapshotsReady."""

    path: str
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class ResolveStart:
    """Ask the sources where a fresh job starts (R4). Reply: SnapshotsReady."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotsReady:
    subtasks: tuple[SubtaskSnapshot, ...]
    participants: tuple[ParticipantState, ...] = ()


RecoveryAction = (
    ReadLog
    | LookAtMarkers
    | MintIncarnation
    | TakePlace
    | VerifyFiles
    | CheckFits
    | PublishAll
    | OpenAll
    | Record
    | FinishSavepoint
    | InspectOrigin
    | CopyOrigin
    | ResolveStart
)
RecoveryReply = (
    LogRead
    | MarkersSeen
    | IncarnationMinted
    | PlaceTaken
    | PlaceLost
    | FilesVerified
    | Fits
    | MarkersWritten
    | Recorded
    | SavepointFinished
    | OriginFound
    | SnapshotsReady
)
