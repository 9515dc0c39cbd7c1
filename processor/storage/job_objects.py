"""What is kept for one job in an object store: claimed, and refused when it is another job's."""

from __future__ import annotations

from processor.errors import SettingsError
from processor.fault_points import FaultHook, no_faults
from processor.ids import JobName
from processor.storage.directory import JobStore
from processor.storage.disk import Disk
from processor.storage.identity import IDENTITY, IDENTITY_BYTES_MAX, decode_identity, encode_identity
from processor.storage.layout import FILES_FOLDER, job_part
from processor.storage.object_files import ObjectFiles
from processor.storage.object_log import ObjectLog
from processor.storage.objects import Objects


def open_job_objects(
    root: Objects, job: JobName, *, faults: FaultHook = no_faults, make: bool = True
) -> JobStore:
    """Like ``open_job_directory``, below a prefix of a bucket. Raises ExternalRefusal too."""
    _refuse_root_of_job(root, job)
    mine = root.below(job_part(job))
    if make and _identity(mine) is None:
        mine.create(
            IDENTITY, encode_identity(job)
        )  # if another start was faster: it is read back and compared
    found = _identity(mine)
    if found is None:
        raise SettingsError(
            f"there are no checkpoints of job '{job}' under '{root.where}'.",
            remedy="Check the job's name and the setting checkpoint.directory.",
        )
    if found != job:
        raise SettingsError(
            f"'{mine.where}' belongs to job '{found}', and this is job '{job}'. So says its {IDENTITY}.",
            remedy="Give the job its own name, or set checkpoint.directory to another location.",
        )
    return _opened(mine, job, faults)


def make_savepoint_objects(at: Objects, job: JobName, *, begun: bool) -> JobStore:
    """Like ``make_savepoint_directory``, at a prefix of a bucket. Raises ExternalRefusal too."""
    ours = begun and _identity(at) == job
    if not ours and at.names(""):
        raise SettingsError(
            f"there is something at '{at.where}' already.",
            remedy="Name a place for the savepoint that is empty.",
        )
    at.create(IDENTITY, encode_identity(job))
    found = _identity(at)
    if found != job:
        raise SettingsError(f"somebody else wrote a savepoint to '{at.where}' at the same time.")
    return _opened(at, job, no_faults)


def look_into_objects(at: Objects) -> JobStore | None:
    """Like ``look_into_directory``. Raises ExternalRefusal too."""
    found = _identity(at)
    return None if found is None else _opened(at, JobName(found), no_faults)


def _opened(at: Objects, job: JobName, faults: FaultHook) -> JobStore:
    return JobStore(
        files=ObjectFiles(at.below(FILES_FOLDER)),
        log=ObjectLog(at, faults=faults),
        disk=Disk(),
        job=job,
        where=at.where,
    )


def _refuse_root_of_job(root: Objects, job: JobName) -> None:
    owner = _identity(root)
    if owner is not None:
        raise SettingsError(
            f"'{root.where}' is itself the location of job '{owner}'; it cannot hold that of job '{job}'.",
            remedy="Set checkpoint.directory to the prefix above it: every job has a part of its own there.",
        )


def _identity(at: Objects) -> str | None:
    found = at.whole(IDENTITY, IDENTITY_BYTES_MAX)
    return None if found is None else decode_identity(found[0], at.path(IDENTITY))
