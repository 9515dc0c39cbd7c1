"""Local directories of the RocksDB backend: made for one process, and gone with it.

Nothing in them outlives the process on purpose: checkpoints are the durability. So what a killed process left
behind is garbage, and the next start removes it, provided it can prove that its owner is dead. The proof is a
lock on a file (``flock``): the kernel gives it up when the owner dies, however it dies, and keeps it while
the owner is merely stopped; process numbers, which are used again, do not come into it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path
from threading import Lock

from processor.errors import SettingsError

_OWNED = re.compile(r"processor-state-[A-Za-z0-9_]+\Z", re.ASCII)
_PREFIX = "processor-state-"
_LOCK = "owner.lock"
_ROOT_LOCK = ".processor-state.lock"
"""Held while a directory is made or removed, so that nobody sees one whose owner has not locked it yet."""


def default_root() -> Path:
    """Where local directories are when no setting says so."""
    return Path(tempfile.gettempdir()) / f"processor-{os.getuid()}"


class LocalDirectories:
    """Fresh directories under one root, for one backend of one process. Any thread may call."""

    def __init__(self, root: Path) -> None:
        """``root`` is made when the first directory is asked for; only what we named ourselves is removed."""
        self._root = root
        self._owned: Path | None = None
        self._owner_lock = -1
        self._open = 0
        self._made = 0
        self._mutex = Lock()

    def make(self, name: str) -> Path:
        """The path of a new directory, which does not exist yet; ``name`` is for people.

        The first call removes what dead processes left. Raises SettingsError when the root cannot be used.
        """
        with self._mutex:
            if self._owned is None:
                self._owned = self._take_ownership()
            self._open += 1
            self._made += 1
            return self._owned / f"{self._made:04d}-{name[:80]}"

    def remove(self, path: Path) -> None:
        """Remove a directory that ``make`` named; with the last one, our own goes too."""
        with self._mutex:
            if self._owned is None or path.parent != self._owned:
                return
            shutil.rmtree(path, ignore_errors=True)
            self._open -= 1
            if self._open == 0:
                owned, self._owned = self._owned, None
                with _locked(self._root / _ROOT_LOCK):
                    shutil.rmtree(owned, ignore_errors=True)
                    os.close(self._owner_lock)
                    self._owner_lock = -1

    def _take_ownership(self) -> Path:
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(self._root / _ROOT_LOCK):
                self._sweep()
                owned = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._root))
                self._owner_lock = _open_lock(owned / _LOCK)
                fcntl.flock(self._owner_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return owned
        except OSError as error:
            raise SettingsError(
                f"the directory '{self._root}' for local state cannot be used: {error}.",
                remedy="Set state.directory to a directory on a local disk that this user may write to.",
            ) from error

    def _sweep(self) -> None:
        for found in sorted(self._root.iterdir()):
            if not _OWNED.match(found.name) or found.is_symlink() or not (found / _LOCK).is_file():
                continue
            lock = _open_lock(found / _LOCK)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(found, ignore_errors=True)
            except BlockingIOError:
                pass  # its owner lives, perhaps stopped
            finally:
                os.close(lock)


class _locked:  # noqa: N801
    """Holds an exclusive lock on a file, waiting for it; nobody holds it for longer than a sweep."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._file = _open_lock(self._path)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *error: object) -> None:
        os.close(self._file)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
