"""Keyed state as a checkpoint holds it: its files, each with what changed after the one before, put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import REMOVED, SnapshotEntries
from processor.protocol.entries import StateFile
from processor.records.batch import Key
from processor.records.key_groups import decode_key, encode_key
from processor.savepoint.latest import Latest, Left
from processor.state.held_entries import StateReader
from processor.state.rocksdb_directory import LocalDirectories, default_root
from processor.storage.snapshot_file import SnapshotFiles

_encode = msgspec.msgpack.encode
NIL = msgspec.Raw(_encode(None))
"""Of a timer, which has no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEntries:
    """Some entries of one table of one subtask, in columns."""

    keys: Sequence[Key]
    places: Sequence[Any]
    """Of maps the keys of the entries, of timers their times in ms; else empty."""
    values: Sequence[Any]
    """Plain, as msgpack has them, or all ``msgspec.Raw``: in msgpack. Of timers empty."""

    def read_as(self, kind: Any) -> list[Any]:
        """The values as of this type. Raises msgspec.ValidationError."""
        found: list[Any] = msgspec.msgpack.decode(_encode(self.values), type=cast(Any, list)[kind])
        return found

    def plain(self) -> Sequence[Any]:
        """The values as msgpack has them."""
        return self.read_as(Any) if self.values and type(self.values[0]) is msgspec.Raw else self.values


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """How the entries of a table stand in a file."""

    timers: bool
    mapped: bool

    def codecs(self, table: str, value: Any) -> dict[str, Any]:
        """What to read the table with, and what was removed from it."""
        kind = int if self.timers else cast(Any, tuple)[bytes, value] if self.mapped else value
        return {table: kind, table + REMOVED: bytes if self.mapped else int}

    def columns(self, block: SnapshotEntries) -> tuple[list[Any], list[Any]]:
        """Places, of maps in bytes, and values."""
        if self.timers:
            return list(block.values), []
        if self.mapped:
            return [place for place, _ in block.values], [value for _, value in block.values]
        return [], list(block.values)

    def entries(self, left: Left) -> HeldEntries:
        """What is left of a chain."""
        return HeldEntries(
            keys=list(map(decode_key, left.keys)),
            places=list(map(decode_key, left.places)) if self.mapped else left.places if self.timers else [],
            values=[] if self.timers else left.values,
        )


def held_tables(
    files: FileStore, chain: Sequence[StateFile], tables: Mapping[str, TableForm], *, plain: bool = False
) -> Iterator[tuple[str, HeldEntries]]:
    """What these tables hold in files of one subtask that are on top of each other, each entry once, with the table's
    name; each file is read once. ``plain``: values are wanted as msgpack has them, if that is for nothing.

    Memory is bounded, whatever there is (``latest``). Nothing may be trusted before the iterator has ended. Raises
    DamagedFile by name; Unavailable.
    """
    value: Any = Any if plain and len(chain) == 1 else msgspec.Raw
    codecs: dict[str, Any] = {}
    for name, form in tables.items():
        codecs |= form.codecs(name, value)
    blocks = _blocks(files, chain, codecs)
    if len(chain) == 1:
        for block in blocks:
            form = tables[block.table]
            places, values = form.columns(block)
            places = list(map(decode_key, places)) if form.mapped else places
            yield block.table, HeldEntries(keys=block.keys, places=places, values=values)
        return
    size = sum(held.file.bytes for held in chain)
    with ExitStack() as closing:
        latest = {name: closing.enter_context(Latest(size)) for name in tables}
        for block in blocks:
            name = block.table.removesuffix(REMOVED)
            _add(latest[name], tables[name], block, removed=block.table != name)
        for name, form in tables.items():
            for left in latest[name].left():
                yield name, form.entries(left)


def _add(latest: Latest, form: TableForm, block: SnapshotEntries, *, removed: bool) -> None:
    keys = list(map(encode_key, block.keys))
    nothing = [None] * len(keys)
    if removed:
        latest.remove(keys, list(block.values) if form.timers or form.mapped else nothing)
    else:
        places, values = form.columns(block)
        latest.add(keys, places or nothing, values or [NIL] * len(keys))


def _blocks(
    files: FileStore, chain: Sequence[StateFile], codecs: Mapping[str, Any]
) -> Iterator[SnapshotEntries]:
    """In the order of the files."""
    reader = StateReader(files=files, format=SnapshotFiles(), scratch=LocalDirectories(default_root()))
    for held in chain:
        yield from reader.entries(held, held.key_groups, codecs, others=True)
