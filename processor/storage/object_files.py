"""Files of checkpoints in an object store.

An object appears whole or not at all, when its writer finishes; so nothing partial can ever be read. A small file is
one conditional put. A larger one is collected in a temporary file of this machine and then uploaded in parts: its
size is bounded by the disk and not by memory, and giving up before ``finish`` leaves nothing on the store.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from enum import Enum, auto
from hashlib import sha256
from typing import Final

from processor.errors import DamagedFile, Unavailable
from processor.ids import FileRef
from processor.invariant import invariant
from processor.storage.block_file import damaged
from processor.storage.folder_tree import os_error
from processor.storage.layout import safe_parts
from processor.storage.objects import PART_BYTES, Objects

PARTS_MAX: Final = 10_000
"""Of one upload: what S3 takes."""

FILE_BYTES_MAX: Final = PART_BYTES * PARTS_MAX


class ObjectFiles:
    """A FileStore on objects. Safe to use from several threads; each writer by one."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def create(self, name: str) -> ObjectWriter:
        """Begin a new file; whether the name is taken shows when it is finished. Raises DamagedFile when it is none
        of ours."""
        _check(name)
        return ObjectWriter(self._objects, name)

    def read(self, ref: FileRef) -> Iterator[bytes]:
        """The content in chunks, the last one only after size and hash were compared."""
        _check(ref.name)
        if ref.bytes <= PART_BYTES:
            yield from self._small(ref)
        else:
            yield from self._large(ref)

    def verify(self, ref: FileRef) -> None:
        """Raises DamagedFile unless the file is whole; Unavailable."""
        for _ in self.read(ref):
            pass

    def delete(self, name: str) -> None:
        """Remove a file; a missing one is no error. Raises Unavailable."""
        _check(name)
        self._objects.delete(name)

    def names(self, prefix: str) -> list[str]:
        """All file names that begin with ``prefix``, sorted. Raises Unavailable."""
        folder = prefix.rpartition("/")[0]
        if folder and safe_parts(folder) is None:
            return []
        return [name for name in self._objects.names(folder) if name.startswith(prefix)]

    def _small(self, ref: FileRef) -> Iterator[bytes]:
        found = self._objects.whole(ref.name, ref.bytes)
        if found is None:
            raise self._damaged(ref, "is missing")
        content, size = found
        self._compare_size(ref, size)
        if sha256(content).hexdigest() != ref.sha256:
            raise self._damaged(ref, "fails its checksum")
        if content:
            yield content

    def _large(self, ref: FileRef) -> Iterator[bytes]:
        size = self._objects.size(ref.name)
        if size is None:
            raise self._damaged(ref, "is missing")
        self._compare_size(ref, size)
        digest = sha256()
        for start in range(0, size, PART_BYTES):
            end = min(start + PART_BYTES, size)
            chunk = self._objects.part(ref.name, start, end)
            if chunk is None or len(chunk) != end - start:
                raise self._damaged(ref, "was cut or removed while it was read")
            digest.update(chunk)
            if end == size and digest.hexdigest() != ref.sha256:
                raise self._damaged(ref, "fails its checksum")
            yield chunk

    def _compare_size(self, ref: FileRef, size: int) -> None:
        if size != ref.bytes:
            raise self._damaged(ref, f"has {size} bytes; {ref.bytes} were written")

    def _damaged(self, ref: FileRef, what: str) -> DamagedFile:
        return damaged(ref.name, f"{what} (in '{self._objects.where}')")


class _Writing(Enum):
    OPEN = auto()
    FINISHED = auto()
    GIVEN_UP = auto()


class ObjectWriter:
    """One file being written; the hash is made on the way. Nothing is on the store before ``finish``."""

    def __init__(self, objects: Objects, name: str) -> None:
        self._objects = objects
        self._name = name
        # Held beyond this function: closed by ``finish`` or ``discard``, and nameless, so a crash leaves nothing.
        self._spool = tempfile.SpooledTemporaryFile(max_size=PART_BYTES)  # noqa: SIM115
        self._digest = sha256()
        self._bytes = 0
        self._writing = _Writing.OPEN

    def write(self, data: bytes) -> None:
        """Append. Raises Unavailable; then the file is given up."""
        invariant(self._writing is _Writing.OPEN, "only an open file is written")
        invariant(self._bytes + len(data) <= FILE_BYTES_MAX, "a file is within its limit")
        try:
            self._spool.write(data)
        except OSError as error:
            self.discard()
            raise os_error("write", tempfile.gettempdir(), error) from error
        self._digest.update(data)
        self._bytes += len(data)

    def finish(self) -> FileRef:
        """Put it on the store. Raises DamagedFile when the name is taken, Unavailable; then the file is given up, and
        what may have got through without an answer is an orphan, for a later attempt to sweep."""
        invariant(self._writing is _Writing.OPEN, "a file is finished once")
        try:
            taken = self._put()
        finally:
            self.discard()
        if not taken:
            raise DamagedFile(
                f"the file '{self._name}' exists already under '{self._objects.where}'; nothing is ever overwritten.",
                remedy="Find out who else writes there: a location belongs to one job, and runs once.",
            )
        self._writing = _Writing.FINISHED
        return FileRef(name=self._name, bytes=self._bytes, sha256=self._digest.hexdigest())

    def discard(self) -> None:
        """Free what it holds; idempotent, and without effect after ``finish``."""
        if self._writing is _Writing.OPEN:
            self._writing = _Writing.GIVEN_UP
            self._spool.close()

    def _put(self) -> bool:
        if self._bytes <= PART_BYTES:
            content = b"".join(self._parts())
            return self._objects.create(self._name, content) or self._is_ours(content)
        # Parts cannot be put conditionally everywhere. The name has a token nobody else has (R22), so this finds a
        # name that is used twice by mistake, and the hash in the reference whatever it does not find.
        if self._objects.size(self._name) is not None:
            return False
        self._objects.upload(self._name, self._parts())
        return True

    def _is_ours(self, content: bytes) -> bool:
        """Whether the object is there because the answer to our own put was lost, and it was repeated."""
        found = self._objects.whole(self._name, len(content))
        if found is None:
            # S3 also answers so while another request for the name is under way.
            raise Unavailable(
                f"'{self._objects.path(self._name)}' exists and is not found.", remedy="Look after the store."
            )
        return found == (content, len(content))

    def _parts(self) -> Iterator[bytes]:
        try:
            self._spool.seek(0)
            while part := self._spool.read(PART_BYTES):
                yield part
        except OSError as error:
            raise os_error("read", tempfile.gettempdir(), error) from error


def _check(name: str) -> None:
    if safe_parts(name) is None:
        raise DamagedFile(
            f"'{name:.200}' cannot be the name of a file of a checkpoint.",
            remedy="Names come from entries of the log; this one was not written by the processor.",
        )
