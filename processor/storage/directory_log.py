"""The decision log, and the notes beside it, in a local directory (R5).

An entry is written and synced under a temporary name, then given its name by ``link``, which the system
refuses when the name is taken; then the folder is synced. So an entry is there whole or not at all.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from processor.errors import ExternalRefusal
from processor.fault_points import FaultHook, FaultPoint, no_faults
from processor.invariant import invariant
from processor.storage.block_file import damaged
from processor.storage.disk import Disk, closing
from processor.storage.folder_tree import FolderTree, os_error
from processor.storage.layout import (
    ENTRY_BYTES_MAX,
    LOG_FOLDER,
    NOTE_BYTES_MAX,
    NOTES_FOLDER,
    is_note_name,
    log_name,
    place_of,
)

_TEMPORARY = ".tmp"
_READ_BYTES = 2**20
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV)


class DirectoryLog:
    """A LogStore on a directory. Places below 1 are for probes: taken like the others, never listed."""

    def __init__(
        self,
        root: Path,
        *,
        token: Callable[[], str],
        faults: FaultHook = no_faults,
        disk: Disk | None = None,
    ) -> None:
        """``root`` exists, and belongs to this job alone. ``token`` gives names nobody else has."""
        self._root = root
        self._token = token
        self._faults = faults
        self._disk = disk or Disk()
        self._tree = FolderTree(root, self._disk)
        self._swept = False

    def take(self, place: int, content: bytes) -> bool:
        """Create the entry if its place is free; durable, also when somebody else's was found there.

        Raises Unavailable when the outcome is not known (R6), ExternalRefusal without hard links.
        """
        invariant(len(content) <= ENTRY_BYTES_MAX, "an entry is within its limit")
        name = log_name(place)
        try:
            with self._tree.opened((LOG_FOLDER,), make=True) as folder:
                taken = self._take(folder, name, content)
                if taken and place > 0 and not self._swept:
                    self._sweep(folder)
        except OSError as error:
            raise os_error("take", self._path(LOG_FOLDER, name), error) from error
        return taken

    def read(self, place: int) -> bytes | None:
        """The entry; None when the place is free. Raises DamagedFile when it cannot be one, Unavailable."""
        return self._read(LOG_FOLDER, log_name(place), ENTRY_BYTES_MAX)

    def listed(self) -> list[int]:
        """Places of all entries, ascending. Raises Unavailable."""
        try:
            with self._tree.opened((LOG_FOLDER,)) as folder:
                names = self._disk.listing(folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise os_error("list", self._path(LOG_FOLDER), error) from error
        return sorted(place for name, _ in names if (place := place_of(name)) is not None)

    def delete(self, place: int) -> None:
        """Remove an entry; a missing one is no error. Raises Unavailable."""
        try:
            with self._tree.opened((LOG_FOLDER,)) as folder:
                self._disk.remove(folder, log_name(place))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise os_error("delete", self._path(LOG_FOLDER, log_name(place)), error) from error

    def put_note(self, name: str, content: bytes) -> None:
        """Overwrite a note; durable on return, and at no moment half there. Raises Unavailable."""
        invariant(
            is_note_name(name) and len(content) <= NOTE_BYTES_MAX, "a note has a plain name and is small"
        )
        temporary = f"{name}.{self._token()}{_TEMPORARY}"
        try:
            with self._tree.opened((NOTES_FOLDER,), make=True) as folder:
                self._write_temporary(folder, temporary, content)
                try:
                    self._disk.replace(folder, temporary, name)
                except OSError:
                    self._remove(folder, temporary)
                    raise
                self._disk.sync(folder)
        except OSError as error:
            raise os_error("write", self._path(NOTES_FOLDER, name), error) from error

    def get_note(self, name: str) -> bytes | None:
        """A note; None when there is none. Raises DamagedFile when it cannot be one, Unavailable."""
        invariant(is_note_name(name), "a note has a plain name")
        return self._read(NOTES_FOLDER, name, NOTE_BYTES_MAX)

    def _take(self, folder: int, name: str, content: bytes) -> bool:
        temporary = f"{name}.{self._token()}{_TEMPORARY}"
        self._write_temporary(folder, temporary, content)
        self._faults(FaultPoint.ENTRY_SYNCED_NOT_LINKED)
        try:
            taken = self._link(folder, temporary, name)
            self._faults(FaultPoint.LINKED_DIRECTORY_NOT_SYNCED)
            # Also when the entry is somebody else's: what is built on it must not outlive it.
            self._disk.sync(folder)
        except OSError:
            self._remove(folder, temporary)
            raise
        self._remove(folder, temporary)
        return taken

    def _link(self, folder: int, temporary: str, name: str) -> bool:
        try:
            self._disk.link(folder, temporary, name)
        except FileExistsError:
            return False
        except FileNotFoundError:
            if self._is_there(folder, name):  # the winner's sweep took our temporary file with it
                return False
            raise
        except OSError as error:
            if error.errno in _NO_LINKS:
                self._remove(folder, temporary)
                raise ExternalRefusal(
                    f"the file system of '{self._root}' makes no hard links ({error.strerror}); without them "
                    "a place of the decision log cannot be taken by one writer only.",
                    remedy="Set checkpoint.log_directory, or checkpoint.directory, to another file system.",
                ) from error
            raise
        return True

    def _is_there(self, folder: int, name: str) -> bool:
        try:
            self._disk.close(self._disk.open(folder, name)[0])
        except FileNotFoundError:
            return False
        return True

    def _write_temporary(self, folder: int, name: str, content: bytes) -> None:
        file = self._disk.create(folder, name)
        try:
            with closing(self._disk, file):
                self._disk.write_all(file, content)
                self._disk.sync(file)
        except OSError:
            self._remove(folder, name)
            raise

    def _sweep(self, folder: int) -> None:
        """Remove the temporary files that dead writers left.

        Only those of places that are taken: whoever still wanted to link one would be told so anyway. So it
        harms nobody, not even a writer that is alive. Once an instance: its first place is its seal.
        """
        self._swept = True
        listing = self._disk.listing(folder)
        taken = {name for name, _ in listing if place_of(name) is not None}
        for name, _ in listing:
            if name.endswith(_TEMPORARY) and name.rsplit(".", 2)[0] in taken:
                self._remove(folder, name)

    def _remove(self, folder: int, name: str) -> None:
        with suppress(OSError):  # garbage at worst, for the next sweep
            self._disk.remove(folder, name)

    def _read(self, inside: str, name: str, bytes_max: int) -> bytes | None:
        path = self._path(inside, name)
        try:
            with self._tree.opened((inside,)) as folder:
                file, size = self._disk.open(folder, name)
            with closing(self._disk, file):
                if size > bytes_max:
                    raise damaged(path, f"has {size} bytes; {bytes_max} are the most there can be")
                return self._read_all(file, size)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EIO:
                raise damaged(path, "cannot be read from its disk") from error
            raise os_error("read", path, error) from error

    def _read_all(self, file: int, size: int) -> bytes:
        parts: list[bytes] = []
        left = size
        while left and (part := self._disk.read(file, min(left, _READ_BYTES))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _path(self, *parts: str) -> str:
        return str(self._root.joinpath(*parts))
