"""Copies of a database's sorted files on this machine's disk, so that a restart here does not fetch them again.

They stand before a store that is elsewhere, and make of it a ``LinkingFiles``: what goes up leaves a link behind, and
what has come once is there for the next time. A copy is used only when its size and hash are those of the entry, so
nothing depends on them: whoever loses them fetches, and several processes may share a folder. They go when their file
is deleted on the store, by whoever does that; what is not on the store any more at a start goes then.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from processor.contracts.file_store import FileStore, FileWriter
from processor.errors import DamagedFile
from processor.ids import FileRef
from processor.storage.folder_tree import os_error
from processor.storage.layout import FileKind, safe_parts

COPY_BYTES: Final = 2**20

_COPIED: Final = f".{FileKind.DATABASE}"


class LocalCopies:
    """A FileStore with LinkingFiles over another FileStore. Safe to use from several threads and processes."""

    def __init__(self, store: FileStore, folder: Path, token: str) -> None:
        """``folder`` is of this job alone, and made when the first copy is; ``token`` is this process's own. Raises
        Unavailable."""
        self._store = store
        self._folder = folder
        self._token = token
        self._clear()

    # --- of the store, and of it alone

    def create(self, name: str) -> FileWriter:
        return self._store.create(name)

    def read(self, ref: FileRef) -> Iterator[bytes]:
        """From the store: who reads a file to copy it elsewhere learns whether the store still has it."""
        return self._store.read(ref)

    def names(self, prefix: str) -> list[str]:
        return self._store.names(prefix)

    # --- with copies

    def verify(self, ref: FileRef) -> None:
        """See ``FileStore.verify``. Of a sorted file there is a copy afterwards, if the disk has room for it."""
        copy = self._path(ref.name)
        if copy is None:
            self._store.verify(ref)
        elif not _whole(copy, ref):
            self._fetch(ref, copy)

    def delete(self, name: str) -> None:
        """See ``FileStore.delete``."""
        self._store.delete(name)
        copy = self._path(name)
        if copy is not None:
            _remove(copy, self._folder)

    def link_in(self, path: Path, ref: FileRef) -> bool:
        """See ``LinkingFiles``: the file goes up, and the local one stays as its copy."""
        writer = self._store.create(ref.name)
        try:
            with path.open("rb") as content:
                while chunk := content.read(COPY_BYTES):
                    writer.write(chunk)
            written = writer.finish()
        except OSError as error:
            writer.discard()
            raise os_error("read", str(path), error) from error
        except BaseException:
            writer.discard()
            raise
        if written != ref:
            raise DamagedFile(
                f"the local file '{path}' changed while it was uploaded as '{ref.name}'.",
                remedy="Look after the local disk, and who writes to state.directory.",
            )
        copy = self._path(ref.name)
        if copy is not None:
            with suppress(OSError):  # a copy less
                copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.link(path, copy)
        return True

    def link_out(self, ref: FileRef, path: Path) -> bool:
        """See ``LinkingFiles``."""
        copy = self._path(ref.name)
        if copy is None:
            return False
        try:
            os.link(copy, path)
        except OSError as error:
            if error.errno == errno.EEXIST:
                raise os_error("link", str(path), error) from error
            return False
        return True

    def _fetch(self, ref: FileRef, copy: Path) -> None:
        """Read it once, verified by the store, and keep it; without room, only read it."""
        temporary = copy.with_name(f"{copy.name}.{self._token}.tmp")
        file = None
        with suppress(OSError):
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            for chunk in self._store.read(ref):
                file = _written(file, chunk)
            if file is not None:
                with suppress(OSError):
                    os.replace(temporary, copy)
        finally:
            if file is not None:
                os.close(file)
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _path(self, name: str) -> Path | None:
        """Where the copy of a file is; None for files of which there are none."""
        parts = safe_parts(name) if name.endswith(_COPIED) else None
        return None if parts is None else self._folder.joinpath(*parts)

    def _clear(self) -> None:
        """Remove copies of what the store no longer has, and what a process left half-written."""
        if not self._folder.is_dir():
            return
        there = set(self._store.names(""))
        for path in sorted(self._folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):  # not empty
                    path.rmdir()
            elif path.relative_to(self._folder).as_posix() not in there:
                with suppress(OSError):
                    path.unlink(missing_ok=True)


def _whole(copy: Path, ref: FileRef) -> bool:
    """Whether the copy is there and is what the entry says; one that is not is removed."""
    digest, size = sha256(), 0
    try:
        with open(os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as content:
            while chunk := content.read(COPY_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError:
        return False
    if (size, digest.hexdigest()) == (ref.bytes, ref.sha256):
        return True
    with suppress(OSError):
        copy.unlink(missing_ok=True)
    return False


def _written(file: int | None, chunk: bytes) -> int | None:
    """Write it all; None, with the file closed, when there is no room."""
    if file is None:
        return None
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.close(file)
        return None
    return file


def _remove(copy: Path, folder: Path) -> None:
    with suppress(OSError):
        copy.unlink(missing_ok=True)
        for above in copy.parents:
            if above == folder:
                return
            above.rmdir()
