"""A file store in memory that keeps the contract's promises, and lets a test damage what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from processor.errors import DamagedFile, Unavailable
from processor.ids import FileRef


class MemoryFiles:
    """``room`` bounds the bytes that can be held: beyond it every write fails like a full disk.

    With ``trusting`` reads do not compare the hash of the whole file: what is found then is found by the
    formats alone.
    """

    def __init__(
        self, *, room: int | None = None, chunk_bytes: int = 64 * 1024, trusting: bool = False
    ) -> None:
        self.content: dict[str, bytes] = {}
        self.room = room
        self.chunk_bytes = chunk_bytes
        self.trusting = trusting

    def create(self, name: str) -> MemoryWriter:
        if name in self.content:
            raise DamagedFile(f"the file '{name}' exists already.")
        return MemoryWriter(self, name)

    def read(self, ref: FileRef) -> Iterator[bytes]:
        content = self.content.get(ref.name)
        if content is None:
            raise DamagedFile(f"the file '{ref.name}' is missing.")
        if not self.trusting and len(content) != ref.bytes:
            raise DamagedFile(f"the file '{ref.name}' has another size.")
        for start in range(0, len(content), self.chunk_bytes):
            chunk = content[start : start + self.chunk_bytes]
            last = start + self.chunk_bytes >= len(content)
            if last and not self.trusting and sha256(content).hexdigest() != ref.sha256:
                raise DamagedFile(f"the file '{ref.name}' fails its checksum.")
            yield chunk

    def verify(self, ref: FileRef) -> None:
        for _ in self.read(ref):
            pass

    def delete(self, name: str) -> None:
        self.content.pop(name, None)

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.content if name.startswith(prefix))

    def put(self, name: str, content: bytes) -> FileRef:
        """Place content as it is, as if it had been written so."""
        self.content[name] = content
        return FileRef(name=name, bytes=len(content), sha256=sha256(content).hexdigest())


class MemoryWriter:
    def __init__(self, files: MemoryFiles, name: str) -> None:
        self._files = files
        self._name = name
        self._parts: list[bytes] = []
        self._finished = False

    def write(self, data: bytes) -> None:
        held = sum(map(len, self._files.content.values())) + sum(map(len, self._parts))
        if self._files.room is not None and held + len(data) > self._files.room:
            raise Unavailable(f"cannot write '{self._name}': no space left on device.")
        self._parts.append(data)

    def finish(self) -> FileRef:
        self._finished = True
        return self._files.put(self._name, b"".join(self._parts))

    def discard(self) -> None:
        if not self._finished:
            self._parts.clear()
