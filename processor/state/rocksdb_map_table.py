"""Maps in RocksDB: every entry is one of the table, and those of one key lie together.

The key of an entry is that of any other (``rocksdb_store``), but with the length of the map's key (4 bytes,
big-endian) before it and the encoded key of the entry behind it. The key group is that of the map's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, cast
from zlib import crc32

import msgspec
from rocksdict import ReadOptions

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.ids import KeyGroupRange
from processor.records.batch import Key
from processor.records.key_groups import decode_key, encode_key
from processor.state.front import Entries
from processor.state.map_blocks import changed_map_entries, entry_key
from processor.state.map_cache import MapCache
from processor.state.rocksdb_table import HEAD_BYTES, RocksDbTable, group_of
from processor.state.snapshot import Block
from processor.state.stored_keys import StoredKey, key_bytes

LENGTH_BYTES = 4
"""Of the map's key, before it."""

_KEY_AT = HEAD_BYTES + LENGTH_BYTES


class RocksDbMapTable(RocksDbTable):
    """One table of maps. Where keys are given to what it has from ``RocksDbTable``, they are places: (key, the
    entry's key)."""

    restored_as: Any = tuple[bytes, msgspec.Raw]
    removed_as: Any = bytes

    def read(self, key: Any) -> Any:
        data = self._get(self._start(key_bytes(key[0])) + key_bytes(key[1]))
        if data is None or self._decode is None:
            return data
        return self._decode(data)

    def scan(self, key: StoredKey) -> list[tuple[Any, Any]]:
        """See ``MapStoreTable.scan``: the database iterates over one moment."""
        start = self._start(key_bytes(key))
        bound = ReadOptions()
        # What follows the last entry. A table's number is small, so counting up by one never needs another byte.
        bound.set_iterate_upper_bound((int.from_bytes(start, "big") + 1).to_bytes(len(start), "big"))
        entries = self._store.database.items(from_key=start, read_opt=bound)
        skip, decode = len(start), self._decode or _as_it_is
        return [
            (entry_key(place[skip:]), decode(data))
            for place, data in cast(Iterator[tuple[bytes, bytes]], entries)
        ]

    def _place(self, at: bytes) -> tuple[StoredKey, StoredKey]:
        end = _KEY_AT + int.from_bytes(at[HEAD_BYTES:_KEY_AT], "big")
        return entry_key(at[_KEY_AT:end]), entry_key(at[end:])

    def front(self, *, entries_max: int) -> MapCache:
        """A write-back cache."""
        return MapCache(self, entries_max=entries_max)

    def blocks(self) -> Iterator[Block]:
        """All entries in the order of their key groups, from the snapshot that the store holds."""
        pairs = self._held()
        while some := list(islice(pairs, BLOCK_ENTRIES_MAX)):
            keys: list[Key] = []
            values: list[tuple[bytes, msgspec.Raw]] = []
            for place, data in some:
                end = _KEY_AT + int.from_bytes(place[HEAD_BYTES:_KEY_AT], "big")
                keys.append(decode_key(place[_KEY_AT:end]))
                values.append((place[end:], msgspec.Raw(data)))
            groups = KeyGroupRange(group_of(some[0][0]), group_of(some[-1][0]) + 1)
            yield Block(groups=groups, keys=keys, values=values)

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        self._store.collect(
            [
                (self._start(encode_key(key)) + of_entry, bytes(value))
                for key, (of_entry, value) in zip(keys, values, strict=True)
            ]
        )

    def forget(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Entries that are no longer there; the values are their keys."""
        self._store.drop(
            [self._start(encode_key(key)) + of_entry for key, of_entry in zip(keys, values, strict=True)]
        )

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        """These entries; True with those that are no longer there."""
        return changed_map_entries(entries, self._store.key_groups, shared=self._values.shared)

    def _start(self, encoded: bytes) -> bytes:
        """What all entries of an encoded key begin with."""
        return self._heads[crc32(encoded) % self._groups] + _lengthed(encoded)

    def _placed(self, keys: list[Any]) -> tuple[list[int], list[bytes]]:
        count = self._groups
        groups: list[int] = []
        encoded: list[bytes] = []
        for key, of_entry in keys:
            of_key = key_bytes(key)
            groups.append(crc32(of_key) % count)
            encoded.append(_lengthed(of_key) + key_bytes(of_entry))
        return groups, encoded


def _lengthed(encoded: bytes) -> bytes:
    return len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded


def _as_it_is(data: bytes) -> bytes:
    return data
