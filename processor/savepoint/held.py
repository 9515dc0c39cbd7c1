"""Keyed state as a checkpoint holds it: its files, each with what changed after the one before, put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import REMOVED, TIMER_TABLES, SnapshotEntries
from processor.protocol.entries import StateFile
from processor.records.batch import Key
from processor.records.key_groups import decode_key, encode_key
from processor.savepoint.latest import Latest
from processor.state.held_entries import StateReader
from processor.state.rocksdb_directory import LocalDirectories, default_root
from processor.storage.snapshot_file import SnapshotFiles

_encode = msgspec.msgpack.encode
_NIL = msgspec.Raw(_encode(None))
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


def held_entries(
    files: FileStore, chain: Sequence[StateFile], table: str, *, mapped: bool, plain: bool = False
) -> Iterator[HeldEntries]:
    """What one table holds in files of one subtask that are on top of each other, each entry once; ``table`` may be
    one of TIMER_TABLES. ``plain``: values are wanted as msgpack has them, if that is for nothing.

    Memory is bounded, whatever there is (``latest``). Nothing may be trusted before the iterator has ended. Raises
    DamagedFile by name; Unavailable.
    """
    timers = table in TIMER_TABLES
    kind: Any = Any if plain and len(chain) == 1 else msgspec.Raw
    blocks = _blocks(
        files, chain, table, int if timers else cast(Any, tuple)[bytes, kind] if mapped else kind, mapped
    )
    if len(chain) == 1:
        for block in blocks:
            places, values = _columns(block, timers=timers, mapped=mapped)
            places = list(map(decode_key, places)) if mapped else places
            yield HeldEntries(keys=block.keys, places=places, values=values)
        return
    with Latest(sum(held.file.bytes for held in chain)) as latest:
        for block in blocks:
            keys = list(map(encode_key, block.keys))
            if block.table == table:
                places, values = _columns(block, timers=timers, mapped=mapped)
                latest.add(keys, places or _nothing(keys), values or [_NIL] * len(keys))
            else:
                latest.remove(keys, list(block.values) if timers or mapped else _nothing(keys))
        for left in latest.left():
            yield HeldEntries(
                keys=list(map(decode_key, left.keys)),
                places=list(map(decode_key, left.places)) if mapped else left.places if timers else [],
                values=[] if timers else left.values,
            )


def _columns(block: SnapshotEntries, *, timers: bool, mapped: bool) -> tuple[list[Any], list[Any]]:
    """Places, of maps in bytes, and values."""
    if timers:
        return list(block.values), []
    if mapped:
        return [place for place, _ in block.values], [value for _, value in block.values]
    return [], list(block.values)


def _nothing(keys: list[bytes]) -> list[None]:
    return [None] * len(keys)


def _blocks(
    files: FileStore, chain: Sequence[StateFile], table: str, kind: Any, mapped: bool
) -> Iterator[SnapshotEntries]:
    """Blocks of a table, its values of type ``kind``, and of what was removed from it, in the order of the files."""
    codecs = {table: kind, table + REMOVED: bytes if mapped else int}
    reader = StateReader(files=files, format=SnapshotFiles(), scratch=LocalDirectories(default_root()))
    for held in chain:
        yield from reader.entries(held, held.key_groups, codecs, others=True)
