"""The file of an outbox: what one sink subtask would send, as blocks of rows in columns (R16).

The subtask encodes a block when it has the rows; the completion only copies bytes into the file. The number
of rows stands in front of each block, so that a publisher that resumes decodes nothing of what is out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from struct import Struct

import msgspec

from processor.contracts.file_store import FileStore
from processor.errors import BadRecord
from processor.ids import FileRef
from processor.invariant import invariant
from processor.records.batch import Headers
from processor.records.columns import encodable
from processor.records.rows import RowBlock
from processor.storage.block_file import (
    BLOCK_BYTES_MAX,
    BLOCK_BYTES_TARGET,
    BlockWriter,
    damaged,
    read_blocks,
)

OUTBOX_MAGIC = b"PXOUTBX\n"
OUTBOX_VERSION = 1

_ROWS = Struct("<I")

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(
    tuple[
        str,
        list[bytes | None],
        list[bytes | None] | None,
        list[int] | None,
        list[Headers] | None,
        list[int | None] | None,
    ]
)


def encode_block(block: RowBlock) -> bytes:
    """One block as the outbox keeps it. For blocks of any size use ``encode_blocks``.

    Raises BadRecord when it exceeds BLOCK_BYTES_MAX.
    """
    encoded = _encode(block)
    if len(encoded) > BLOCK_BYTES_MAX:
        raise BadRecord(
            f"{len(block)} rows for '{block.topic}' have {len(encoded)} bytes; an outbox takes up to "
            f"{BLOCK_BYTES_MAX} in one block.",
            remedy="Make the values smaller, or set the sink's policy to skip.",
        )
    return encoded


def encode_blocks(block: RowBlock) -> list[bytes]:
    """The block as one or, when it comes out larger than BLOCK_BYTES_TARGET, several of fewer rows.

    Raises BadRecord when one row alone exceeds BLOCK_BYTES_MAX.
    """
    encoded = _encode(block)
    if len(encoded) <= BLOCK_BYTES_TARGET:
        return [encoded]
    if len(block) == 1:
        return [encode_block(block)]
    middle = len(block) // 2
    return encode_blocks(block.slice(0, middle)) + encode_blocks(block.slice(middle, len(block)))


def _encode(block: RowBlock) -> bytes:
    rows = len(block)
    columns = (block.keys, block.timestamps, block.headers, block.partitions)
    invariant(
        all(column is None or len(column) == rows for column in columns), "columns of rows have equal lengths"
    )
    return _ROWS.pack(rows) + _encoder.encode(
        (block.topic, encodable(block.values), *map(encodable, columns))
    )


class OutboxWriter:
    """Writes one outbox. Used by one thread; ``finish`` or ``discard`` ends it."""

    def __init__(self, files: FileStore, name: str) -> None:
        """Begin the file ``name``. Raises DamagedFile when the name is taken, Unavailable."""
        self._blocks = BlockWriter(
            files.create(name), magic=OUTBOX_MAGIC, version=OUTBOX_VERSION, header=name.encode()
        )
        self.rows = 0
        """Rows written so far."""

    def write(self, encoded: bytes) -> None:
        """Append a block that ``encode_block`` made. Raises Unavailable."""
        self._blocks.block(encoded)
        self.rows += _ROWS.unpack_from(encoded)[0]

    def finish(self) -> FileRef:
        """Make the outbox durable. Raises Unavailable."""
        return self._blocks.finish()

    def discard(self) -> None:
        """Give the outbox up; idempotent."""
        self._blocks.discard()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """Rows of one block of an outbox: checked, and still encoded, for a million decoded ones at a time cost more
    in fresh memory than in decoding."""

    name: str
    """The outbox, for errors."""
    body: memoryview
    rows: int
    """Of the whole block."""
    wanted: range
    """Numbers of the rows meant, within the block."""

    def __len__(self) -> int:
        return len(self.wanted)

    @property
    def size_bytes(self) -> int:
        """Bytes of the rows meant, as if all rows of the block had the same."""
        return len(self.body) * len(self.wanted) // self.rows

    def first(self, count: int) -> StoredRows:
        """So many of them."""
        return replace(self, wanted=self.wanted[:count])

    def decode(self) -> RowBlock:
        """Raises DamagedFile by name when the block is none, which its checksum would have to have missed."""
        block = _decode_block(self.body, self.rows, self.name)
        if len(self.wanted) == self.rows:
            return block
        return block.slice(self.wanted.start, self.wanted.stop)


def read_outbox(store: FileStore, ref: FileRef, from_row: int = 0) -> Iterator[StoredRows]:
    """Rows from number ``from_row`` of this file on, the first being 0, in the blocks they were written in.

    Every block is checked before it is handed out, the ones skipped included. Raises DamagedFile by name,
    also when the content is that of another outbox; Unavailable.
    """
    parts = read_blocks(store, ref, magic=OUTBOX_MAGIC, version=OUTBOX_VERSION)
    name = bytes(next(parts)).decode(errors="replace")
    if name != ref.name:
        raise damaged(ref.name, f"holds the outbox '{name}'")
    yield from stored_rows(ref, parts, from_row)


def stored_rows(ref: FileRef, blocks: Iterable[memoryview], from_row: int) -> Iterator[StoredRows]:
    """Rows from number ``from_row`` on of an outbox of these blocks. Raises DamagedFile by name."""
    skip = from_row
    for body in blocks:
        if len(body) < _ROWS.size:
            raise damaged(ref.name, "has a block that is too short")
        (rows,) = _ROWS.unpack_from(body)
        if skip >= rows:
            skip -= rows
            continue
        yield StoredRows(name=ref.name, body=body[_ROWS.size :], rows=rows, wanted=range(skip, rows))
        skip = 0
    if skip:
        raise damaged(ref.name, f"has fewer than the {from_row} rows that are out already")


def _decode_block(body: memoryview, rows: int, name: str) -> RowBlock:
    try:
        topic, values, keys, timestamps, headers, partitions = _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise damaged(name, "has a block that is none") from error
    if any(
        column is not None and len(column) != rows
        for column in (values, keys, timestamps, headers, partitions)
    ):
        raise damaged(name, f"has a block of {rows} rows whose columns are of other lengths")
    return RowBlock(
        topic=topic, values=values, keys=keys, timestamps=timestamps, headers=headers, partitions=partitions
    )
