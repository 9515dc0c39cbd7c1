"""Folders below one root, opened part by part without following links, and durable once they are made."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from processor.errors import DamagedFile, ProcessorError, Unavailable
from processor.storage.disk import Disk

FOLDER_DEPTH_MAX = 8
"""Folders below the root; a listing does not go deeper."""

_MADE_AGAIN_MAX = 3
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NOT_OURS = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR)


class FolderTree:
    """Opens folders by their parts. Safe to use from several threads."""

    def __init__(self, root: Path, disk: Disk) -> None:
        self.root = root
        self.disk = disk
        # Folders whose name is known to be synced in the folder above. Another thread may have made one and
        # not have synced it yet; a file inside must not be acknowledged on its word.
        self._durable: set[tuple[str, ...]] = set()

    def open(self, parts: tuple[str, ...]) -> int:
        """Descriptor of an existing folder, for the caller to close. Raises OSError."""
        folder = self.disk.open_root(str(self.root))
        for part in parts:
            folder = self._inner(folder, part)
        return folder

    def make(self, parts: tuple[str, ...]) -> int:
        """Like ``open``, but folders that are missing are made, mode 0700, and their names are durable."""
        for left in reversed(range(_MADE_AGAIN_MAX)):
            try:
                return self._make(parts)
            except FileNotFoundError:  # a sweep took an empty folder away under our feet
                self._durable.difference_update([parts[:depth] for depth in range(1, len(parts) + 1)])
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def opened(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """``open`` or ``make``, closed at the end."""
        folder = self.make(parts) if make else self.open(parts)
        try:
            yield folder
        finally:
            self.disk.close(folder)

    def names(self, parts: tuple[str, ...]) -> list[str]:
        """Names of all files below a folder, relative to the root; none if there is none. Raises OSError."""
        found: list[str] = []
        pending = [parts]
        while pending:
            at = pending.pop()
            try:
                with self.opened(at) as folder:
                    listing = self.disk.listing(folder)
            except FileNotFoundError:
                continue
            for name, is_folder in listing:
                if not is_folder:
                    found.append("/".join((*at, name)))
                elif len(at) < FOLDER_DEPTH_MAX:
                    pending.append((*at, name))
        return sorted(found)

    def _make(self, parts: tuple[str, ...]) -> int:
        folder = self.disk.open_root(str(self.root))
        for depth, part in enumerate(parts, 1):
            path = parts[:depth]
            if path not in self._durable:
                try:
                    self._make_durable(folder, part)
                except BaseException:
                    self.disk.close(folder)
                    raise
                self._durable.add(path)
            folder = self._inner(folder, part)
        return folder

    def _make_durable(self, folder: int, name: str) -> None:
        with suppress(FileExistsError):  # made by whom does not matter: the sync is ours
            self.disk.make_folder(folder, name)
        self.disk.sync(folder)

    def _inner(self, folder: int, name: str) -> int:
        """The folder inside; the outer one is closed."""
        try:
            return self.disk.open_folder(folder, name)
        finally:
            self.disk.close(folder)


def os_error(act: str, path: str, error: OSError) -> ProcessorError:
    """What an error of the system means: something in the way of a file, or a disk that does not answer.

    ``act`` is the verb that failed, ``path`` the thing it was about.
    """
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _NOT_OURS:
        return DamagedFile(
            f"cannot {act} '{path}': it, or a folder on the way, is a link or of the wrong type ({reason}).",
            remedy="Links are not followed, and only the processor's own files belong there: remove it.",
        )
    remedy = "Look after the disk."
    if error.errno in _FULL:
        remedy = "Make room on the disk."
    elif error.errno in _REFUSED:
        remedy = "Give the user that runs the job the right to write there."
    return Unavailable(f"cannot {act} '{path}': {reason}.", remedy=remedy)
