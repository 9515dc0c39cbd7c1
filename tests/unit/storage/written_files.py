"""A file as tests of stores write it, and read it back."""

from __future__ import annotations

from processor.contracts.file_store import FileStore
from processor.ids import FileRef

NAME = "a1/count-0/x.state"
CONTENT = [b"one", b"", b"two" * 1000]
WHOLE = b"".join(CONTENT)


def write(files: FileStore, name: str = NAME, parts: list[bytes] = CONTENT) -> FileRef:
    writer = files.create(name)
    for part in parts:
        writer.write(part)
    return writer.finish()


def read(files: FileStore, ref: FileRef) -> bytes:
    return b"".join(files.read(ref))
