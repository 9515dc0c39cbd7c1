"""Maps in RocksDB: every entry is one of the table, and those of one key lie together (``rocksdb_keys``). The key
group is that of the map's key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast
from zlib import crc32

import msgspec
from rocksdict import ReadOptions

from processor.contracts.snapshot_format import TableLayout
from processor.records.batch import Key
from processor.records.key_groups import encode_key
from processor.state.front import Entries
from processor.state.map_blocks import changed_map_entries, entry_key
from processor.state.map_cache import MapCache
from processor.state.rocksdb_keys import Pair, lengthed, map_keys
from processor.state.rocksdb_table import RocksDbTable
from processor.state.snapshot import Block
from processor.state.stored_keys import StoredKey, key_bytes


class RocksDbMapTable(RocksDbTable):
    """One table of maps. Where keys are given to what it has from ``RocksDbTable``, they are places: (key, the
    entry's key)."""

    restored_as: Any = tuple[bytes, msgspec.Raw]
    removed_as: Any = bytes
    layout = TableLayout.MAPS

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
        return [(entry_key(place[skip:]), decode(data)) for place, data in cast(Iterator[Pair], entries)]

    def _place(self, at: bytes) -> tuple[StoredKey, StoredKey]:
        key, of_entry = map_keys(at)
        return entry_key(key), entry_key(of_entry)

    def front(self, *, entries_max: int) -> MapCache:
        """A write-back cache."""
        return MapCache(self, entries_max=entries_max)

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
        return self._heads[crc32(encoded) % self._groups] + lengthed(encoded)

    def _placed(self, keys: list[Any]) -> tuple[list[int], list[bytes]]:
        count = self._groups
        groups: list[int] = []
        encoded: list[bytes] = []
        for key, of_entry in keys:
            of_key = key_bytes(key)
            groups.append(crc32(of_key) % count)
            encoded.append(lengthed(of_key) + key_bytes(of_entry))
        return groups, encoded


def _as_it_is(data: bytes) -> bytes:
    return data
