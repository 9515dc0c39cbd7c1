"""Where files of checkpoints are kept: a directory, an object store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from processor.ids import FileRef


class FileWriter(Protocol):
    """A file being written; nobody can read it before ``finish``."""

    def write(self, data: bytes) -> None: ...

    def finish(self) -> FileRef:
        """Make it durable (content and name) and say what was written. Raises Unavailable, and DamagedFile when
        the name turns out to be taken."""
        ...

    def discard(self) -> None:
        """Give it up and free what it holds; idempotent, allowed after ``finish``, then without effect."""
        ...


class FileStore(Protocol):
    """Names are relative, ``/``-separated, and created exclusively: nothing is ever overwritten (R22)."""

    def create(self, name: str) -> FileWriter:
        """Begin a new file. Raises DamagedFile when the name is taken, here or at ``finish``."""
        ...

    def read(self, ref: FileRef) -> Iterator[bytes]:
        """The content in chunks. Raises DamagedFile by name when it is missing, cut, longer, or its
        checksum differs; the last chunk is only handed out once the checksum was compared."""
        ...

    def verify(self, ref: FileRef) -> None:
        """Raises DamagedFile unless the file is whole."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
        ...

    def names(self, prefix: str) -> list[str]:
        """All file names below a prefix, sorted."""
        ...


@runtime_checkable
class LinkingFiles(Protocol):
    """What a FileStore offers beside on a disk of this machine: files that are there twice and take room once.

    Both raise Unavailable, and give False where the path is on another disk or links are not to be had. What is
    linked is never written to again by anybody.
    """

    def link_in(self, path: Path, ref: FileRef) -> bool:
        """The local file becomes the new file ``ref.name``, durable like a finished one. ``ref`` has its size and
        checksum. Raises DamagedFile when the name is taken."""
        ...

    def link_out(self, ref: FileRef, path: Path) -> bool:
        """The file gets a second name, ``path``, which is free. The caller has verified it."""
        ...


class LogStore(Protocol):
    """Numbered entries, each taken once, complete in one step (R5)."""

    def take(self, place: int, content: bytes) -> bool:
        """Create entry ``place`` if it is absent; durable when True is returned. False: somebody has it.

        Raises Unavailable when the outcome is not known (R6).
        """
        ...

    def read(self, place: int) -> bytes | None:
        """Content of an entry; None when the place is free or its entry was deleted."""
        ...

    def listed(self) -> list[int]:
        """Places a listing shows, ascending: a hint, never too high."""
        ...

    def delete(self, place: int) -> None: ...

    def put_note(self, name: str, content: bytes) -> None:
        """Overwrite a small file beside the log by atomic replace; durable on return."""
        ...

    def get_note(self, name: str) -> bytes | None: ...
