"""The file of keyed state: one step of one subtask, in blocks of entries of one table each.

A block holds keys and values as two columns, so that a reader that wants other key groups skips it without
decoding, and one that wants all of it decodes two lists and hashes nothing. Blocks are small, so that neither
side holds the interpreter for long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from struct import Struct
from typing import Any, cast

import msgspec

from processor.contracts.file_store import FileStore, FileWriter
from processor.contracts.snapshot_format import (
    BLOCK_ENTRIES_MAX,
    DatabaseDescription,
    undeclared,
    unfitting,
)
from processor.errors import JobError
from processor.ids import FileRef, KeyGroupRange, StepName
from processor.invariant import invariant
from processor.records.batch import Key
from processor.records.columns import encodable
from processor.records.key_column import decode_keys, encode_keys
from processor.records.key_groups import key_group
from processor.storage.block_file import (
    BLOCK_BYTES_MAX,
    BLOCK_BYTES_TARGET,
    BlockWriter,
    damaged,
    read_blocks,
)
from processor.storage.database_file import read_database, write_database

SNAPSHOT_MAGIC = b"PXSTATE\n"
SNAPSHOT_VERSION = 1

_BLOCK = Struct("<IIIIIB")  # table, first and last+1 key group, entries, bytes of the keys column, its kind

_encoder = msgspec.msgpack.Encoder()


class SnapshotTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a snapshot; blocks name it by its place in the header."""

    name: str
    kind: str
    """Description of the type of its values, for compatibility and for people."""


class SnapshotHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot says of itself."""

    step: StepName
    max_parallelism: int
    key_groups: KeyGroupRange
    """Every key of the file belongs to this range."""
    tables: tuple[SnapshotTable, ...]


_header_decoder = msgspec.msgpack.Decoder(SnapshotHeader)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotBlock:
    """Entries of one table: keys and values, one for one."""

    table: str
    keys: list[Key]
    values: list[Any]


class SnapshotWriter:
    """Writes one snapshot. Used by one thread; ``finish`` or ``discard`` ends it."""

    def __init__(self, writer: FileWriter, header: SnapshotHeader) -> None:
        self._header = header
        self._blocks = BlockWriter(
            writer, magic=SNAPSHOT_MAGIC, version=SNAPSHOT_VERSION, header=_encoder.encode(header)
        )

    def block(self, table: int, groups: KeyGroupRange, keys: Sequence[Key], values: Sequence[object]) -> None:
        """Append entries of ``header.tables[table]``: up to BLOCK_ENTRIES_MAX of them, or none.

        ``groups`` covers the key groups of all keys; the narrower, the more a rescaled reader can skip.
        Raises JobError when one entry alone exceeds BLOCK_BYTES_MAX, Unavailable when it cannot be written.
        """
        invariant(0 <= table < len(self._header.tables), "a block names a table of the header")
        invariant(self._header.key_groups.covers(groups), "a block lies within the key groups of its file")
        invariant(len(keys) == len(values), "every key of a block has a value")
        invariant(len(keys) <= BLOCK_ENTRIES_MAX, "a block is small enough to let others run")
        if not keys:
            return
        kind, key_column = encode_keys(keys)
        value_column = _encoder.encode(encodable(values))
        size = _BLOCK.size + len(key_column) + len(value_column)
        if size > BLOCK_BYTES_TARGET and len(keys) > 1:
            middle = len(keys) // 2
            self.block(table, groups, keys[:middle], values[:middle])
            self.block(table, groups, keys[middle:], values[middle:])
            return
        if size > BLOCK_BYTES_MAX:
            raise JobError(
                f"step '{self._header.step}': the value of state '{self._header.tables[table].name}' for key "
                f"{keys[0]!r:.80} has {size} bytes; the limit is {BLOCK_BYTES_MAX}.",
                remedy="Keep less under one key, or spread it over several keys.",
            )
        start = _BLOCK.pack(table, groups.start, groups.stop, len(keys), len(key_column), kind)
        self._blocks.block(b"".join((start, key_column, value_column)))

    def finish(self) -> FileRef:
        """Make the snapshot durable. Raises Unavailable."""
        return self._blocks.finish()

    def discard(self) -> None:
        """Give the snapshot up; idempotent."""
        self._blocks.discard()


class SnapshotFiles:
    """The SnapshotFormat of this file."""

    def create(
        self,
        writer: FileWriter,
        *,
        step: StepName,
        max_parallelism: int,
        key_groups: KeyGroupRange,
        tables: Sequence[tuple[str, str]],
    ) -> SnapshotWriter:
        header = SnapshotHeader(
            step=step,
            max_parallelism=max_parallelism,
            key_groups=key_groups,
            tables=tuple(SnapshotTable(name=name, kind=kind) for name, kind in tables),
        )
        return SnapshotWriter(writer, header)

    def read(
        self,
        files: FileStore,
        ref: FileRef,
        wanted: KeyGroupRange,
        codecs: Mapping[str, Any],
        *,
        others: bool = False,
    ) -> Iterator[SnapshotBlock]:
        return read_snapshot(files, ref, wanted, codecs, others=others)

    def write_database(self, writer: FileWriter, description: DatabaseDescription) -> FileRef:
        return write_database(writer, description)

    def read_database(self, files: FileStore, ref: FileRef) -> DatabaseDescription:
        return read_database(files, ref)


def read_snapshot(
    store: FileStore, ref: FileRef, wanted: KeyGroupRange, codecs: Mapping[str, Any], *, others: bool = False
) -> Iterator[SnapshotBlock]:
    """See ``SnapshotFormat.read``: only at the end was the hash of the file compared."""
    parts = read_blocks(store, ref, magic=SNAPSHOT_MAGIC, version=SNAPSHOT_VERSION)
    header = _decode_header(next(parts), ref)
    decoders = [_value_decoder(header, table, ref, codecs, others=others) for table in header.tables]
    for body in parts:
        block = _Block(body, header, ref)
        decoder = decoders[block.table]
        if decoder is not None and block.groups.intersects(wanted):
            found = block.decode(decoder)
            if not wanted.covers(block.groups):
                found = _only(found, wanted, header.max_parallelism)
            if found.keys:
                yield found


def read_snapshot_header(store: FileStore, ref: FileRef) -> SnapshotHeader:
    """What a snapshot says of itself, without reading it all. Raises DamagedFile by name."""
    return _decode_header(next(read_blocks(store, ref, magic=SNAPSHOT_MAGIC, version=SNAPSHOT_VERSION)), ref)


class _Block:
    """One block, its columns still bytes."""

    def __init__(self, body: memoryview, header: SnapshotHeader, ref: FileRef) -> None:
        if len(body) < _BLOCK.size:
            raise damaged(ref.name, "has a block that is too short")
        self.table, start, stop, self.entries, key_bytes, self._kind = _BLOCK.unpack_from(body)
        self.groups = KeyGroupRange(start, stop)
        if self.table >= len(header.tables):
            raise damaged(ref.name, f"has a block of table {self.table}, which it does not have")
        self._header, self._ref = header, ref
        self._keys = body[_BLOCK.size : _BLOCK.size + key_bytes]
        self._values = body[_BLOCK.size + key_bytes :]

    def decode(self, decoder: msgspec.msgpack.Decoder[Any]) -> SnapshotBlock:
        table = self._header.tables[self.table]
        try:
            keys = decode_keys(self._kind, self._keys)
        except ValueError as error:
            raise damaged(self._ref.name, f"has keys of state '{table.name}' that are none") from error
        try:
            values = decoder.decode(self._values)
        except msgspec.ValidationError as error:
            raise unfitting(table.name, table.kind, self._header.step, self._ref.name, error) from error
        except msgspec.MsgspecError as error:
            raise damaged(self._ref.name, f"has values of state '{table.name}' that are none") from error
        if not len(keys) == len(values) == self.entries:
            raise damaged(self._ref.name, f"has a block of {len(keys)} keys and {len(values)} values")
        return SnapshotBlock(table=table.name, keys=keys, values=values)


def _decode_header(body: memoryview, ref: FileRef) -> SnapshotHeader:
    try:
        return _header_decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise damaged(ref.name, "has a header that is none") from error


def _value_decoder(
    header: SnapshotHeader, table: SnapshotTable, ref: FileRef, codecs: Mapping[str, Any], *, others: bool
) -> msgspec.msgpack.Decoder[Any] | None:
    if table.name not in codecs:
        if others:
            return None
        raise undeclared(table.name, header.step, ref.name)
    many = cast(Any, list)[codecs[table.name]]
    return msgspec.msgpack.Decoder(many)


def _only(block: SnapshotBlock, wanted: KeyGroupRange, max_parallelism: int) -> SnapshotBlock:
    keep = [key_group(key, max_parallelism) in wanted for key in block.keys]
    return SnapshotBlock(
        table=block.table, keys=list(compress(block.keys, keep)), values=list(compress(block.values, keep))
    )
