"""Files of checkpoints in a local directory.

A file is created exclusively at its final name, which a token makes its own (R22). Until its writer has
finished, no FileRef of it exists, so nobody can ask for it; what a crash leaves is an orphan, never a hole.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum, auto
from hashlib import sha256
from pathlib import Path

from processor.errors import DamagedFile
from processor.ids import FileRef
from processor.invariant import invariant
from processor.storage.block_file import damaged
from processor.storage.disk import Disk, closing
from processor.storage.folder_tree import FolderTree, os_error
from processor.storage.layout import safe_parts

READ_CHUNK_BYTES = 2**20

_CREATE_TRIES_MAX = 3

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
"""Another file system; links forbidden or not to be had; too many of them."""


class DirectoryFiles:
    """A FileStore on a directory. Safe to use from several threads; each writer by one."""

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        """``root`` exists; nothing outside of it is ever opened."""
        self._root = root
        self._disk = disk or Disk()
        self._tree = FolderTree(root, self._disk)

    def create(self, name: str) -> DirectoryWriter:
        """Begin a new file. Raises DamagedFile when the name is taken or none of ours; Unavailable."""
        *folders, last = _parts(name)
        try:
            folder, file = self._create(tuple(folders), last)
        except FileExistsError as error:
            raise self._taken(name) from error
        except OSError as error:
            raise os_error("create", self._path(name), error) from error
        return DirectoryWriter(self._disk, folder, file, name, self._path(name))

    def read(self, ref: FileRef) -> Iterator[bytes]:
        """The content in chunks, the last one only after size and hash were compared."""
        try:
            *folders, last = _parts(ref.name)
            with self._tree.opened(tuple(folders)) as folder:
                file, size = self._disk.open(folder, last)
        except FileNotFoundError as error:
            raise self._damaged(ref, "is missing") from error
        except OSError as error:
            raise os_error("read", self._path(ref.name), error) from error
        with closing(self._disk, file):
            if size != ref.bytes:
                raise self._damaged(ref, f"has {size} bytes; {ref.bytes} were written")
            yield from self._chunks(ref, file)

    def verify(self, ref: FileRef) -> None:
        """Raises DamagedFile unless the file is whole; Unavailable."""
        for _ in self.read(ref):
            pass

    def link_in(self, path: Path, ref: FileRef) -> bool:
        """See ``LinkingFiles``."""
        *folders, last = _parts(ref.name)
        try:
            with self._tree.opened(tuple(folders), make=True) as folder:
                self._disk.link_in(str(path), folder, last)
                file, size = self._disk.open(folder, last)
                with closing(self._disk, file):
                    invariant(size == ref.bytes, "what is linked does not change any more")
                    self._disk.restrict(file)
                    self._disk.sync(file)
                self._disk.sync(folder)
        except FileExistsError as error:
            raise self._taken(ref.name) from error
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise os_error("link", self._path(ref.name), error) from error
        return True

    def link_out(self, ref: FileRef, path: Path) -> bool:
        """See ``LinkingFiles``."""
        *folders, last = _parts(ref.name)
        try:
            with self._tree.opened(tuple(folders)) as folder:
                self._disk.link_out(folder, last, str(path))
        except FileNotFoundError as error:
            raise self._damaged(ref, "is missing") from error
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise os_error("link", self._path(ref.name), error) from error
        return True

    def delete(self, name: str) -> None:
        """Remove a file, and the folders that are empty then; what is missing is no error."""
        folders = _parts(name)
        try:
            with self._tree.opened(folders[:-1]) as folder:
                self._disk.remove(folder, folders[-1])
        except FileNotFoundError:
            return
        except OSError as error:
            raise os_error("delete", self._path(name), error) from error
        with suppress(OSError):  # not empty: the usual case
            for depth in range(len(folders) - 1, 0, -1):
                with self._tree.opened(folders[: depth - 1]) as folder:
                    self._disk.remove_folder(folder, folders[depth - 1])

    def names(self, prefix: str) -> list[str]:
        """All file names that begin with ``prefix``, sorted. Raises Unavailable."""
        *folders, _ = prefix.split("/")
        try:
            if folders and safe_parts("/".join(folders)) is None:
                return []
            found = self._tree.names(tuple(folders))
        except OSError as error:
            raise os_error("list", self._path(prefix), error) from error
        return [name for name in found if name.startswith(prefix)]

    def _create(self, folders: tuple[str, ...], last: str) -> tuple[int, int]:
        for left in reversed(range(_CREATE_TRIES_MAX)):
            folder = self._tree.make(folders)
            try:
                return folder, self._disk.create(folder, last)
            except FileNotFoundError:  # ``delete`` took the empty folder away in between
                self._disk.close(folder)
                if not left:
                    raise
            except BaseException:
                self._disk.close(folder)
                raise
        raise AssertionError("the last try returns or raises")

    def _chunks(self, ref: FileRef, file: int) -> Iterator[bytes]:
        digest = sha256()
        left = ref.bytes
        while True:
            chunk = self._read(ref, file, min(READ_CHUNK_BYTES, left) if left else 1)
            if not chunk and left:
                raise self._damaged(ref, "was cut while it was read")
            if chunk and not left:
                raise self._damaged(ref, "grew while it was read")
            digest.update(chunk)
            left -= len(chunk)
            if not left and digest.hexdigest() != ref.sha256:
                raise self._damaged(ref, "fails its checksum")
            if not chunk:
                return
            yield chunk

    def _read(self, ref: FileRef, file: int, length: int) -> bytes:
        try:
            return self._disk.read(file, length)
        except OSError as error:
            if error.errno == errno.EIO:  # a sector that is gone; waiting does not bring it back
                raise self._damaged(ref, "cannot be read from its disk") from error
            raise os_error("read", self._path(ref.name), error) from error

    def _taken(self, name: str) -> DamagedFile:
        return DamagedFile(
            f"the file '{name}' exists already under '{self._root}'; nothing is ever overwritten.",
            remedy="Find out who else writes there: a directory belongs to one job, and runs once.",
        )

    def _damaged(self, ref: FileRef, what: str) -> DamagedFile:
        return damaged(ref.name, f"{what} (in '{self._root}')")

    def _path(self, name: str) -> str:
        return str(self._root / name)


class _Writing(Enum):
    OPEN = auto()
    FINISHED = auto()
    GIVEN_UP = auto()


class DirectoryWriter:
    """One file being written; the hash is made on the way."""

    def __init__(self, disk: Disk, folder: int, file: int, name: str, path: str) -> None:
        self._disk = disk
        self._folder = folder
        self._file = file
        self._name = name
        self._path = path
        self._digest = sha256()
        self._bytes = 0
        self._writing = _Writing.OPEN

    def write(self, data: bytes) -> None:
        """Append. Raises Unavailable; then the file is given up and its name is free of content."""
        invariant(self._writing is _Writing.OPEN, "only an open file is written")
        try:
            self._disk.write_all(self._file, data)
        except OSError as error:
            self.discard()
            raise os_error("write", self._path, error) from error
        self._digest.update(data)
        self._bytes += len(data)

    def finish(self) -> FileRef:
        """Sync the content, then the name. Raises Unavailable; then the file is given up."""
        invariant(self._writing is _Writing.OPEN, "a file is finished once")
        try:
            self._disk.sync(self._file)
            self._disk.sync(self._folder)
        except OSError as error:
            self.discard()
            raise os_error("sync", self._path, error) from error
        self._writing = _Writing.FINISHED
        self._close()
        return FileRef(name=self._name, bytes=self._bytes, sha256=self._digest.hexdigest())

    def discard(self) -> None:
        """Remove an unfinished file; idempotent, and without effect after ``finish``."""
        if self._writing is not _Writing.OPEN:
            return
        self._writing = _Writing.GIVEN_UP
        with suppress(OSError):  # what stays is an orphan of this attempt, for a later one to sweep
            self._disk.remove(self._folder, self._name.rpartition("/")[2])
        self._close()

    def _close(self) -> None:
        for descriptor in (self._file, self._folder):
            with suppress(OSError):  # the content is synced or given up: nothing hangs on the answer
                self._disk.close(descriptor)


def _parts(name: str) -> tuple[str, ...]:
    parts = safe_parts(name)
    if parts is None:
        raise DamagedFile(
            f"'{name:.200}' cannot be the name of a file of a checkpoint.",
            remedy="Names come from entries of the log; this one was not written by the processor.",
        )
    return parts
