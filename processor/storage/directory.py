"""The directory of a job: opened, made durable, and refused when it is another job's."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from processor.contracts.file_store import FileStore, LogStore
from processor.errors import ProcessorError, SettingsError
from processor.fault_points import FaultHook, no_faults
from processor.ids import JobName
from processor.settings.stores import StoreSettings
from processor.storage.directory_files import DirectoryFiles
from processor.storage.directory_log import DirectoryLog
from processor.storage.disk import Disk, closing
from processor.storage.folder_tree import FolderTree, os_error
from processor.storage.identity import IDENTITY, IDENTITY_BYTES_MAX, decode_identity, encode_identity
from processor.storage.layout import FILES_FOLDER, job_folder

_SETTING = "checkpoint.directory"
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStore:
    """What is kept for one job."""

    files: FileStore
    log: LogStore
    disk: Disk
    """Of this machine; savepoints in directories are written to and read from it."""
    job: JobName
    """Whose identity is there."""
    where: str
    """Path or location, for people."""
    stores: StoreSettings = field(default_factory=StoreSettings)
    """How savepoints in object stores are reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDirectory(JobStore):
    """A job's store that is a local directory."""

    path: Path


def open_job_directory(
    root: Path,
    job: JobName,
    *,
    token: Callable[[], str],
    faults: FaultHook = no_faults,
    disk: Disk | None = None,
    make: bool = True,
) -> JobDirectory:
    """The directory of ``job`` under the checkpoint root, made when it is missing.

    With ``make=False`` nothing is written: for commands that only look. Raises SettingsError when the root
    cannot be used, when the directory belongs to another job (naming both), or, with ``make=False``, when
    there is none; Unavailable.
    """
    disk = disk or Disk()
    root = Path(os.path.realpath(root))
    path = job_folder(root, job)
    try:
        _refuse_root_of_job(root, job, disk)
        for folder in (path, path / FILES_FOLDER):
            if folder.is_symlink():
                raise OSError(errno.ELOOP, "is a link", str(folder))
        if make:
            _make_folders(path, disk)
            _claim(path, job, token, disk)
            _make_folders(path / FILES_FOLDER, disk)
        found = _identity(path, disk)
    except OSError as error:
        raise _unusable(path, error) from error
    if found is None:
        raise SettingsError(
            f"there are no checkpoints of job '{job}' under '{root}'.",
            remedy=f"Check the job's name and the setting {_SETTING}.",
        )
    if found != job:
        raise SettingsError(
            f"'{path}' is the checkpoint directory of another job: it belongs to job '{found}', and this is "
            f"job '{job}'. So says its {IDENTITY}.",
            remedy=f"Give the job its own name, or set {_SETTING} to another directory.",
        )
    return _opened(path, job, token, faults, disk)


def make_savepoint_directory(
    path: Path, job: JobName, *, token: Callable[[], str], disk: Disk | None = None, begun: bool = False
) -> JobDirectory:
    """A new directory at the very path, laid out like a job's: what a savepoint is written into. With ``begun``
    it may be one that was made for the same job before.

    Raises SettingsError when there is something in it already, or when it cannot be used; Unavailable.
    """
    disk = disk or Disk()
    path = Path(os.path.realpath(path))
    try:
        ours = begun and _identity(path, disk) == job
        if not ours and path.is_dir() and any(path.iterdir()):
            raise SettingsError(
                f"the savepoint directory '{path}' is not empty.",
                remedy="Name a directory that does not exist yet.",
            )
        _make(path, job, token, disk)
    except OSError as error:
        raise _unusable(path, error) from error
    return _opened(path, job, token, no_faults, disk)


def look_into_directory(
    path: Path, *, token: Callable[[], str], disk: Disk | None = None
) -> JobDirectory | None:
    """The directory of any job, or a savepoint, at the very path; None when it is neither. Writes nothing."""
    disk = disk or Disk()
    path = Path(os.path.realpath(path))
    try:
        found = _identity(path, disk)
    except OSError as error:
        raise _unusable(path, error) from error
    return None if found is None else _opened(path, JobName(found), token, no_faults, disk)


def _make(path: Path, job: JobName, token: Callable[[], str], disk: Disk) -> None:
    _make_folders(path, disk)
    _claim(path, job, token, disk)
    _make_folders(path / FILES_FOLDER, disk)


def _opened(
    path: Path, job: JobName, token: Callable[[], str], faults: FaultHook, disk: Disk
) -> JobDirectory:
    return JobDirectory(
        path=path,
        job=job,
        where=str(path),
        files=DirectoryFiles(path / FILES_FOLDER, disk),
        log=DirectoryLog(path, token=token, faults=faults, disk=disk),
        disk=disk,
    )


def _refuse_root_of_job(root: Path, job: JobName, disk: Disk) -> None:
    owner = _identity(root, disk)
    if owner is not None:
        raise SettingsError(
            f"'{root}' is itself the checkpoint directory of job '{owner}'; it cannot hold that of job "
            f"'{job}'.",
            remedy=f"Set {_SETTING} to the directory above it: every job has a subdirectory there.",
        )


def _make_folders(path: Path, disk: Disk) -> None:
    above = path
    while not above.is_dir() and above != above.parent:
        above = above.parent
    # An earlier start may have made that folder and died before its name was synced. One that we may not even
    # look into was made by somebody else.
    with suppress(PermissionError), closing(disk, disk.open_root(str(above.parent))) as folder:
        disk.sync(folder)
    disk.close(FolderTree(above, disk).make(path.relative_to(above).parts))


def _claim(path: Path, job: JobName, token: Callable[[], str], disk: Disk) -> None:
    """Write the identity if there is none: like an entry of the log, by one writer only."""
    if _identity(path, disk) is not None:
        return
    temporary = f"{IDENTITY}.{token()}.tmp"
    with closing(disk, disk.open_root(str(path))) as folder:
        file = disk.create(folder, temporary)
        try:
            with closing(disk, file):
                disk.write_all(file, encode_identity(job))
                disk.sync(file)
            disk.link(folder, temporary, IDENTITY)
        except FileExistsError:
            pass  # another start of some job was faster; it is read back and compared
        finally:
            disk.remove(folder, temporary)
        disk.sync(folder)


def _identity(path: Path, disk: Disk) -> str | None:
    try:
        with closing(disk, disk.open_root(str(path))) as folder:
            file, size = disk.open(folder, IDENTITY)
            with closing(disk, file):
                content = disk.read(file, min(size, IDENTITY_BYTES_MAX))
    except FileNotFoundError:
        return None
    return decode_identity(content, str(path / IDENTITY))


def _unusable(path: Path, error: OSError) -> ProcessorError:
    if error.errno in _REFUSED:
        return SettingsError(
            f"the checkpoint directory '{path}' cannot be used: {os.strerror(error.errno)} "
            f"('{error.filename}').",
            remedy=f"Set {_SETTING} to a directory that the user running the job may write.",
        )
    return os_error("open", str(path), error)
