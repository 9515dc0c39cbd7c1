"""The file that goes along with the sorted files of a database: what they are, and the small files it needs.

A checkpoint of a database is its sorted files, which later checkpoints share, and a few small files that are written
anew each time. Those lie together in this one, so that a checkpoint of a store of objects costs one request for them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from processor.contracts.file_store import FileStore, FileWriter
from processor.contracts.snapshot_format import DatabaseDescription, DatabaseTable
from processor.ids import FileRef, KeyGroupRange, StepName
from processor.storage.block_file import BlockWriter, damaged, read_blocks

DATABASE_MAGIC: Final = b"PXDBASE\n"
DATABASE_VERSION: Final = 1


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    step: StepName
    max_parallelism: int
    key_groups: KeyGroupRange
    tables: tuple[DatabaseTable, ...]
    small_files: tuple[str, ...]
    """Their names; each has a block, in this order."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Header)


def write_database(writer: FileWriter, description: DatabaseDescription) -> FileRef:
    """See ``SnapshotFormat.write_database``."""
    header = _Header(
        step=description.step,
        max_parallelism=description.max_parallelism,
        key_groups=description.key_groups,
        tables=description.tables,
        small_files=tuple(description.small_files),
    )
    try:
        blocks = BlockWriter(
            writer, magic=DATABASE_MAGIC, version=DATABASE_VERSION, header=_encoder.encode(header)
        )
        for content in description.small_files.values():
            blocks.block(content)
        return blocks.finish()
    except BaseException:
        writer.discard()
        raise


def read_database(store: FileStore, ref: FileRef) -> DatabaseDescription:
    """See ``SnapshotFormat.read_database``."""
    parts = read_blocks(store, ref, magic=DATABASE_MAGIC, version=DATABASE_VERSION)
    try:
        header = _decoder.decode(next(parts))
    except msgspec.MsgspecError as error:
        raise damaged(ref.name, "has a header that is none") from error
    contents = [bytes(part) for part in parts]
    if len(contents) != len(header.small_files):
        raise damaged(ref.name, f"has {len(contents)} files where {len(header.small_files)} are named")
    return DatabaseDescription(
        step=header.step,
        max_parallelism=header.max_parallelism,
        key_groups=header.key_groups,
        tables=header.tables,
        small_files=dict(zip(header.small_files, contents, strict=True)),
    )
