"""The entries of keyed state out of a checkpoint's files, whichever form they have: the one way they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec
from rocksdict import AccessType, Options, Rdict

from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import (
    DatabaseTable,
    SnapshotEntries,
    SnapshotFormat,
    undeclared,
    unfitting,
)
from processor.errors import DamagedFile
from processor.ids import FileRef, KeyGroupRange
from processor.protocol.entries import StateFile
from processor.records.batch import Key
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.rocksdb_fetch import fetch_database
from processor.state.rocksdb_keys import blocks_of, scan

_encoder: Final = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBlock:
    """Entries of one table; see ``SnapshotEntries``."""

    table: str
    keys: list[Key]
    values: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReader:
    """Reads the files of keyed state."""

    files: FileStore
    format: SnapshotFormat
    scratch: LocalDirectories
    """Where the files of a database are laid out to be read."""

    def entries(
        self,
        state: StateFile,
        wanted: KeyGroupRange,
        codecs: Mapping[str, Any],
        *,
        others: bool = False,
        fetched: Callable[[FileRef], None] = lambda _: None,
    ) -> Iterator[SnapshotEntries]:
        """See ``SnapshotFormat.read``, of which this is the whole: what a file of entries holds, or a database.

        ``fetched`` is called with each file of a database that was laid out.
        """
        if state.database is None:
            yield from self.format.read(self.files, state.file, wanted, codecs, others=others)
            return
        description = self.format.read_database(self.files, state.file)
        path = self.scratch.make(f"{state.step}-read")
        try:
            fetch_database(self.files, state, description, path, fetched)
            database = _opened(str(path), state)
            try:
                for table in description.tables:
                    if table.name in codecs:
                        yield from _entries(database, table, state, wanted, codecs[table.name])
                    elif not others:
                        raise undeclared(table.name, state.step, state.file.name)
            finally:
                database.close()
        finally:
            self.scratch.remove(path)


def _opened(path: str, state: StateFile) -> Rdict:
    try:
        return Rdict(path, Options(raw_mode=True), access_type=AccessType.read_only())
    except Exception as error:  # the binding raises bare Exceptions
        raise DamagedFile(
            f"the files of '{state.file.name}' are whole, and no database can be opened with them: {error}.",
            remedy="Start from an older checkpoint or a savepoint.",
        ) from error


def _entries(
    database: Rdict, table: DatabaseTable, state: StateFile, wanted: KeyGroupRange, codec: Any
) -> Iterator[HeldBlock]:
    groups = KeyGroupRange(max(wanted.start, state.key_groups.start), min(wanted.stop, state.key_groups.stop))
    if groups.start >= groups.stop:
        return
    decode = msgspec.msgpack.Decoder(cast(Any, list)[codec]).decode
    for block in blocks_of(table.layout, scan(database, table.number, groups)):
        try:
            values = decode(_encoder.encode(block.values))
        except msgspec.MsgspecError as error:
            raise unfitting(table.name, table.kind, state.step, state.file.name, error) from error
        yield HeldBlock(table=table.name, keys=list(block.keys), values=values)
