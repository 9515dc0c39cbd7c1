"""Where things lie under a checkpoint root, and what they are called.

    <root>/<job>/job.json                                       whose directory this is
    <root>/<job>/log/0000000000000007.entry                     the decision log, one file a place
    <root>/<job>/notes/published                                small files that are overwritten
    <root>/<job>/files/a<attempt>/<chain>-<index>/<token>.<kind>    state, outboxes, records in flight

Names of jobs and chains are escaped, so that they can neither collide nor lead out of the root (R2). Names in
a FileRef are relative to ``files/``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from processor.errors import JobError
from processor.ids import Attempt, JobName, Place, SubtaskId, escape_name
from processor.invariant import invariant

LOG_FOLDER = "log"
NOTES_FOLDER = "notes"
FILES_FOLDER = "files"

PUBLISHED_NOTE = "published"

ENTRY_BYTES_MAX = 256 * 2**20
NOTE_BYTES_MAX = 2**20

NAME_PART_BYTES_MAX = 200
"""Of an escaped job or chain; file systems take 255, some of which belong to what we add."""

FILE_NAME_BYTES_MAX = 1_024
"""Of a whole name relative to ``files/``."""

_PROBE = "probe-"

_PART = re.compile(r"[A-Za-z0-9_%\-][A-Za-z0-9_%.\-]*\Z", re.ASCII)
_NOTE = re.compile(r"[a-z][a-z0-9\-]{0,63}\Z", re.ASCII)
_ENTRY = re.compile(r"([0-9]{16})\.entry\Z", re.ASCII)
_ATTEMPT = re.compile(r"a([0-9]{1,18})/", re.ASCII)


class FileKind(StrEnum):
    """What a file of a checkpoint holds: the end of its name."""

    STATE = "state"
    DATABASE = "sst"
    CHANNEL = "channel"
    OUTBOX = "outbox"
    AVRO = "avro"
    """One table of state in a canonical savepoint."""


def job_part(job: JobName) -> str:
    """The name of a job's folder under a checkpoint root. Raises JobError for a name that cannot be one."""
    return _escaped("job", job)


def job_folder(root: Path, job: JobName) -> Path:
    """The folder of a job under a local checkpoint root. Raises JobError."""
    return root / job_part(job)


def file_prefix(attempt: Attempt, subtask: SubtaskId) -> str:
    """Start of every file name that a subtask may create; a token nobody else has follows (R22)."""
    return f"a{attempt}/{_escaped('step', subtask.chain)}-{subtask.index}/"


def file_name(attempt: Attempt, subtask: SubtaskId, token: str, kind: FileKind) -> str:
    """The name of a new file."""
    return f"{file_prefix(attempt, subtask)}{token}.{kind}"


def attempt_of(name: str) -> Attempt | None:
    """The attempt that created a file; None when its name is not one of ours."""
    found = _ATTEMPT.match(name)
    return Attempt(int(found[1])) if found else None


def attempt_folder(attempt: Attempt) -> str:
    """Start of the names of all files of an attempt."""
    return f"a{attempt}/"


def entry_name(place: int) -> str:
    """File name of a place of the decision log, within the log's folder."""
    return f"{place:016d}.entry"


def log_name(place: int) -> str:
    """The same for every place; those below 0 are of the two-writer test, and never listed."""
    invariant(place != 0, "no entry and no probe has place 0")
    return entry_name(place) if place > 0 else f"{_PROBE}{-place}"


def place_of(name: str) -> Place | None:
    """The place of an entry's file; None for every other name."""
    found = _ENTRY.match(name)
    place = int(found[1]) if found else 0
    return Place(place) if place > 0 else None


def safe_parts(name: str) -> tuple[str, ...] | None:
    """The folders and the last part of a relative file name; None for one that could lead elsewhere."""
    parts = tuple(name.split("/"))
    if len(name) > FILE_NAME_BYTES_MAX or not all(_PART.match(part) for part in parts):
        return None
    return parts


def is_note_name(name: str) -> bool:
    """Whether a note may be called so."""
    return _NOTE.match(name) is not None


def _escaped(what: str, name: str) -> str:
    escaped = escape_name(name)
    if not name or len(escaped) > NAME_PART_BYTES_MAX:
        raise JobError(
            f"the {what} name '{name}' cannot be part of a path: it has {len(escaped)} bytes when escaped; "
            f"1 to {NAME_PART_BYTES_MAX} are possible.",
            remedy=f"Give the {what} a shorter name." if name else f"Give the {what} a name.",
        )
    return escaped
