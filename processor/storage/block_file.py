"""A file of blocks: magic, version, a header, then frames of blocks, then an end; each with a running CRC.

The checksum of each part starts from the one before, the first from magic and version. So a frame that was
lost, doubled, moved or that came from another file is found at that frame, before its content is used, and
not only when the hash of the whole file is compared at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from zlib import crc32

from processor.contracts.file_store import FileStore, FileWriter
from processor.errors import DamagedFile
from processor.ids import FileRef
from processor.invariant import invariant

BLOCK_BYTES_TARGET = 16 * 2**20
"""Writers cut blocks that come out larger, as long as they hold more than one row or entry."""

BLOCK_BYTES_MAX = 256 * 2**20
"""No block is larger; a reader takes no more memory than this on the word of a damaged length."""

MAGIC_BYTES = 8

_START = Struct(f"<{MAGIC_BYTES}sI")  # magic, version
_PART = Struct("<II")  # kind, length of the body; covered by the checksum that follows
_CHECK = Struct("<I")
_LENGTH = Struct("<I")  # of one block, in front of it

_HEADER, _FRAME, _END = 1, 2, 3

FRAME_BYTES = 4 * 2**20
"""Blocks are collected into frames of about so much. Each checksum, hash and write lets the interpreter go, and
beside a busy thread getting it back takes longer than the work: so they are few."""

FRAME_BYTES_MAX = FRAME_BYTES + _LENGTH.size + BLOCK_BYTES_MAX


class BlockWriter:
    """Writes blocks to a new file. Not finished means not readable."""

    def __init__(self, writer: FileWriter, *, magic: bytes, version: int, header: bytes) -> None:
        invariant(len(magic) == MAGIC_BYTES, "the magic of a block file has eight bytes")
        self._writer = writer
        start = _START.pack(magic, version)
        self._check = crc32(start)
        self._ready = [start]
        """Parts that are whole."""
        self._frame: list[bytes] = []
        """Of the next frame: lengths and blocks."""
        self._frame_bytes = 0
        self._part(_HEADER, header)

    def block(self, body: bytes) -> None:
        """Append one block of at most BLOCK_BYTES_MAX bytes. Raises Unavailable."""
        invariant(len(body) <= BLOCK_BYTES_MAX, "a block is within its limit when it is written")
        self._frame += (_LENGTH.pack(len(body)), body)
        self._frame_bytes += _LENGTH.size + len(body)
        if self._frame_bytes >= FRAME_BYTES:
            self._end_frame()
            self._flush()

    def finish(self) -> FileRef:
        """Write the end and make the file durable. Raises Unavailable."""
        self._end_frame()
        self._part(_END, b"")
        self._flush()
        return self._writer.finish()

    def discard(self) -> None:
        """Give the file up; idempotent."""
        self._writer.discard()

    def _end_frame(self) -> None:
        if self._frame:
            self._part(_FRAME, b"".join(self._frame))
            self._frame.clear()
            self._frame_bytes = 0

    def _part(self, kind: int, body: bytes) -> None:
        start = _PART.pack(kind, len(body))
        self._check = crc32(body, crc32(start, self._check))
        self._ready += (start, _CHECK.pack(self._check), body)

    def _flush(self) -> None:
        self._writer.write(b"".join(self._ready))
        self._ready.clear()


def read_blocks(store: FileStore, ref: FileRef, *, magic: bytes, version: int) -> Iterator[memoryview]:
    """The header, then every block, each checked before it is handed out.

    Raises DamagedFile by name for anything that is not exactly what was written. A caller that reads to the
    end has had the hash of the whole file compared too.
    """
    source = _Chunks(store.read(ref), ref.name)
    start = source.take(_START.size)
    found_magic, found_version = _START.unpack(start)
    if found_magic != magic:
        raise damaged(ref.name, f"begins with {found_magic!r} and not with {magic!r}")
    if found_version != version:
        raise damaged(ref.name, f"has format version {found_version}; this release reads {version}")
    check = crc32(start)
    expected: tuple[int, ...] = (_HEADER,)
    while True:
        part = source.take(_PART.size)
        kind, length = _PART.unpack(part)
        if kind not in expected or length > FRAME_BYTES_MAX:
            raise damaged(ref.name, f"has a part of kind {kind} and {length} bytes where none can be")
        (promised,) = _CHECK.unpack(source.take(_CHECK.size))
        body = source.take(length)
        check = crc32(body, crc32(part, check))
        if check != promised:
            raise damaged(ref.name, "fails the checksum of a part")
        if kind == _END:
            break
        if kind == _HEADER:
            yield body
        else:
            yield from _blocks_of(body, ref.name)
        expected = (_FRAME, _END)
    if not source.at_end():
        raise damaged(ref.name, "goes on after its end")


def _blocks_of(frame: memoryview, name: str) -> Iterator[memoryview]:
    at = 0
    while at < len(frame):
        if at + _LENGTH.size > len(frame):
            raise damaged(name, "has a frame with half a length")
        (length,) = _LENGTH.unpack_from(frame, at)
        at += _LENGTH.size
        if at + length > len(frame):
            raise damaged(name, f"has a block of {length} bytes that its frame does not hold")
        yield frame[at : at + length]
        at += length


def damaged(name: str, what: str) -> DamagedFile:
    """The error for a file whose content is not what was written."""
    return DamagedFile(
        f"the file '{name}' is damaged: it {what}.",
        remedy="Restore it from a copy, or start from an older checkpoint or a savepoint.",
    )


class _Chunks:
    """Takes exact lengths from chunks of any size."""

    def __init__(self, chunks: Iterator[bytes], name: str) -> None:
        self._chunks = chunks
        self._name = name
        self._buffer = b""
        self._at = 0

    def take(self, length: int) -> memoryview:
        if len(self._buffer) - self._at < length:
            self._fill(length)
        start = self._at
        self._at += length
        return memoryview(self._buffer)[start : self._at]

    def at_end(self) -> bool:
        return self._at == len(self._buffer) and not any(self._chunks)

    def _fill(self, length: int) -> None:
        parts = [self._buffer[self._at :]]
        have = len(parts[0])
        while have < length:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise damaged(self._name, "ends in the middle")
            parts.append(chunk)
            have += len(chunk)
        self._buffer = b"".join(parts)
        self._at = 0
