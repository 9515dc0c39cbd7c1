"""Where the control socket of a job is: found from the settings and the job's name alone.

The socket is in the job's directory; with checkpoints in an object store, in a private directory of this machine.
Where that cannot be (a path too long for a socket, a file system without sockets), it is in a temporary directory,
and a note where it should be names it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import stat
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from processor.channels.addresses import SOCKET_PATH_BYTES_MAX
from processor.errors import SettingsError
from processor.ids import JobName
from processor.settings.model import Settings
from processor.storage.layout import job_folder
from processor.storage.places import places_of

SOCKET_NAME: Final = "control.sock"
NOTE_NAME: Final = "control.path"

NOTE_BYTES_MAX: Final = 4_096
_TEMPORARY_PREFIX: Final = "processor-control-"
_PRIVATE_PREFIX: Final = "processor-sockets-"
_LOCATION_DIGITS: Final = 16
"""Of the hash of a location; the whole path must be short enough for a socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlace:
    """The job's directory, and what is looked for in it."""

    directory: Path

    @property
    def socket_path(self) -> Path:
        return self.directory / SOCKET_NAME

    @property
    def note_path(self) -> Path:
        return self.directory / NOTE_NAME

    def find(self) -> Path:
        """The path to connect to; whether anybody listens there is for the caller to see."""
        return _noted(self.note_path) or self.socket_path


def control_root(settings: Settings) -> Path:
    """The local directory below which every job has its place.

    Raises SettingsError when neither it nor checkpoint.directory is set, or when somebody else could put a socket of
    their own there.
    """
    if settings.runtime.control_directory is not None:
        return settings.runtime.control_directory
    location = places_of(settings).files
    return location.directory or _private_directory(str(location))


def control_place(root: Path, job: JobName) -> ControlPlace:
    """The place for ``job`` under ``root``, of ``control_root``."""
    return ControlPlace(directory=job_folder(Path(os.path.realpath(root)), job))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSocket:
    """A listening socket with the path it is bound to, and what identifies the file there as ours."""

    listener: socket.socket
    path: Path
    identity: tuple[int, int]
    place: ControlPlace


def bind(place: ControlPlace, *, backlog: int) -> BoundSocket:
    """Listen for the job of ``place``. What an earlier process left there is removed: a job's newest attempt
    owns the socket. Raises: OSError, when neither place takes a socket."""
    place.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _clean(place)
    if len(os.fsencode(place.socket_path)) <= SOCKET_PATH_BYTES_MAX:
        # Some file systems (of containers and networks) have no sockets: then the temporary directory.
        with contextlib.suppress(OSError):
            return _bound(place.socket_path, place, backlog)
    path = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX)) / SOCKET_NAME
    bound = _bound(path, place, backlog)
    _write_note(place.note_path, path)
    return bound


def unbind(bound: BoundSocket) -> None:
    """Stop listening and remove the socket, unless a newer attempt has put its own there. Idempotent."""
    bound.listener.close()
    with contextlib.suppress(FileNotFoundError):
        if _identity(bound.path) == bound.identity:
            bound.path.unlink()
    if bound.path != bound.place.socket_path:
        if _noted(bound.place.note_path) == bound.path:
            bound.place.note_path.unlink(missing_ok=True)
        _remove_temporary(bound.path)


def _private_directory(location: str) -> Path:
    """One for every user and location, so that jobs of one name in two buckets do not meet."""
    own = Path(tempfile.gettempdir()) / f"{_PRIVATE_PREFIX}{os.geteuid()}"
    try:
        own.mkdir(mode=0o700, exist_ok=True)
        status = os.lstat(own)
    except OSError as error:
        raise _unusable(own, str(error.strerror)) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise _unusable(own, "others may write or look there")
    return own / sha256(location.encode()).hexdigest()[:_LOCATION_DIGITS]


def _unusable(path: Path, why: str) -> SettingsError:
    return SettingsError(
        f"the directory '{path}' cannot hold the control socket: {why}.",
        remedy="Remove it, or set runtime.control_directory to a local directory of yours.",
    )


def _bound(path: Path, place: ControlPlace, backlog: int) -> BoundSocket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Before it has a name, so that there is no moment in which others may connect (Linux; elsewhere the
        # directory's mode covers that moment).
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(str(path))
        os.chmod(path, 0o600)
        listener.listen(backlog)
        return BoundSocket(listener=listener, path=path, identity=_identity(path), place=place)
    except OSError:
        listener.close()
        raise


def _clean(place: ControlPlace) -> None:
    noted = _noted(place.note_path)
    if noted is not None:
        _remove_temporary(noted)
    place.note_path.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(place.socket_path).st_mode):
            place.socket_path.unlink()


def _remove_temporary(path: Path) -> None:
    """Remove a directory that ``bind`` made. The note is only a file: anything else it names stays."""
    directory = path.parent
    ours = directory.name.startswith(_TEMPORARY_PREFIX) and path.name == SOCKET_NAME
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(directory)
        if ours and stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
            shutil.rmtree(directory, ignore_errors=True)


def _write_note(note: Path, path: Path) -> None:
    draft = note.with_name(f".{note.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(os.fsencode(path))
    os.replace(draft, note)


def _noted(note: Path) -> Path | None:
    try:
        with note.open("rb") as file:
            content = file.read(NOTE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Path(os.fsdecode(content)) if 0 < len(content) <= NOTE_BYTES_MAX else None


def _identity(path: Path) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_dev, status.st_ino
