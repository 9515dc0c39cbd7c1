"""One table of the database of a step: where its entries lie, and how they go in and out (``rocksdb_store``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

import msgspec
from rocksdict import WriteBatch

from processor.contracts.snapshot_format import TableLayout
from processor.ids import KeyGroupRange
from processor.records.batch import Key
from processor.records.key_groups import decode_key
from processor.state.batch_cache import BatchCache
from processor.state.front import Entries
from processor.state.rocksdb_keys import HEAD_BYTES, blocks_of, head, scan
from processor.state.snapshot import Block, changed_values
from processor.state.stored_keys import StoredKey, key_bytes, normalise, normalise_key
from processor.state.value_types import ValueType

if TYPE_CHECKING:
    from processor.state.rocksdb_store import RocksDbStore

WRITE_ENTRIES_MAX = 512
"""Entries of one WriteBatch. Writing one holds the interpreter throughout, at about 2 µs an entry."""

FILE_ENTRIES_MIN = 8_192
"""Parts of at least so many entries go in as a file: 0.7 µs an entry cheaper, but a file for each cut."""

_TEXT = b"s"
_TEXT_CRC = crc32(_TEXT)
"""A key's group is the checksum of its encoding (``records.key_groups``); here without joining tag and text."""


class RocksDbTable:
    """One table: a range of keys of the step's database."""

    restored_as: Any = msgspec.Raw
    """Snapshots and RocksDB hold the same bytes."""
    removed_as: Any = int
    layout = TableLayout.VALUES

    def __init__(self, store: RocksDbStore, number: int, values: ValueType) -> None:
        self._store = store
        self._number = number
        self._looked_to = head(number, 0)
        self._values = values
        self._groups = store.max_parallelism
        self._heads = [head(number, group) for group in range(self._groups)]
        self._text_heads = [head + _TEXT for head in self._heads]
        self._get = store.database.get
        self._decode = values.decoder.decode if values.shared else None

    def read(self, key: StoredKey) -> Any:
        if type(key) is str:
            text = key.encode()
            at = self._text_heads[crc32(text, _TEXT_CRC) % self._groups] + text
        else:
            encoded = key_bytes(key)
            at = self._heads[crc32(encoded) % self._groups] + encoded
        data = self._get(at)
        if data is None or self._decode is None:
            return data
        return self._decode(data)

    def write_in_steps(self, entries: Entries) -> Iterator[None]:
        if len(entries) >= FILE_ENTRIES_MIN:
            yield from self._write_file(entries)
            return
        for groups, keys, values in self._columns(entries):
            batch = WriteBatch(raw_mode=True)
            for group, key, value in zip(groups, keys, values, strict=True):
                if value is None:
                    batch.delete(self._heads[group] + key)
                else:
                    batch.put(self._heads[group] + key, value)
            self._store.database.write(batch, self._store.write_options)
            yield

    def _write_file(self, entries: Entries) -> Iterator[None]:
        """As a sorted file that the database takes over whole: cheaper than going through its own sorting.

        What is deleted is deleted by a batch: a key of the part is either there or not, so the order of the two
        does not matter.
        """
        sorted_keys: list[list[bytes]] = [[] for _ in range(self._groups)]
        encoded: dict[bytes, bytes] = {}
        gone: list[bytes] = []
        for groups, keys, values in self._columns(entries):
            if None in values:
                gone += (
                    self._heads[group] + key
                    for group, key, value in zip(groups, keys, values, strict=True)
                    if value is None
                )
                there = [value is not None for value in values]
                groups = list(compress(groups, there))
                keys = list(compress(keys, there))
                values = list(compress(values, there))
            encoded.update(zip(keys, cast(list[bytes], values), strict=True))
            for group, key in zip(groups, keys, strict=True):
                sorted_keys[group].append(key)
            yield
        if encoded:
            with self._store.sorted_file() as file:
                for head, in_group in zip(self._heads, sorted_keys, strict=True):
                    in_group.sort()  # in the order of their groups, and sorted in pieces of a moment each
                    for start in range(0, len(in_group), WRITE_ENTRIES_MAX):
                        for key in in_group[start : start + WRITE_ENTRIES_MAX]:
                            file[head + key] = encoded[key]
                        yield
        for start in range(0, len(gone), WRITE_ENTRIES_MAX):
            self._store.delete(gone[start : start + WRITE_ENTRIES_MAX])
            yield

    def _columns(self, entries: Entries) -> Iterator[tuple[list[int], list[bytes], list[bytes | None]]]:
        """Key groups, encoded keys, and values as the database keeps them, None for what is gone; in pieces."""
        of = self._values
        encode = of.encode if of.shared else bytes
        keys, values = iter(entries.keys()), iter(entries.values())
        while some := list(islice(keys, WRITE_ENTRIES_MAX)):
            found = list(islice(values, WRITE_ENTRIES_MAX))
            there = [value for value in found if value is not None]
            self._verify(there)
            if len(there) == len(found):
                data: list[bytes | None] = list(map(encode, found))
            else:
                data = [None if value is None else encode(value) for value in found]
            groups, encoded = self._placed(some)
            yield groups, encoded, data

    def _placed(self, keys: list[StoredKey]) -> tuple[list[int], list[bytes]]:
        """Key groups and encoded keys."""
        if set(map(type, keys)) == {str}:
            encoded = [_TEXT + key for key in map(str.encode, cast(list[str], keys))]
        else:
            encoded = list(map(key_bytes, keys))
        count = self._groups
        return [crc % count for crc in map(crc32, encoded)], encoded

    def front(self, *, entries_max: int) -> BatchCache:
        """A write-back cache."""
        return BatchCache(self, entries_max=entries_max)

    def blocks(self) -> Iterator[Block]:
        """All entries in the order of their key groups, from the snapshot that the store holds."""
        # Of all groups: a block of one that is not the subtask's own is refused.
        held = scan(self._store.held_snapshot(), self._number, KeyGroupRange(0, self._groups))
        return blocks_of(self.layout, held)

    def some(self, places_max: int) -> list[tuple[Any, Any]]:
        """See ``DiskTable.some``: on from where the last call stopped, and at the end from the start again."""
        rest = scan(self._store.database, self._number, self._store.key_groups, after=self._looked_to)
        found = list(islice(rest, places_max))
        # The next key is the last one with a byte behind it.
        self._looked_to = found[-1][0] + b"\x00" if len(found) == places_max else head(self._number, 0)
        decode = self._decode or bytes
        return [(self._place(at), decode(data)) for at, data in found]

    def _place(self, at: bytes) -> Any:
        """The key of what lies there, in stored form."""
        return normalise_key(decode_key(at[HEAD_BYTES:]))

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        self._store.collect(list(zip(self._at(keys), map(bytes, values), strict=True)))

    def forget(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Entries that are no longer there."""
        self._store.drop(self._at(keys))

    def _at(self, keys: list[Key]) -> list[bytes]:
        """Where entries of authors' keys lie."""
        heads, (groups, encoded) = self._heads, self._placed(list(normalise(keys)))
        return [heads[group] + key for group, key in zip(groups, encoded, strict=True)]

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        """These entries; True with those that are no longer there."""
        return changed_values(entries, self._store.key_groups, shared=self._values.shared)

    def _verify(self, values: list[Any]) -> None:
        if self._values.shared:
            if not self._values.shallow:
                self._values.verify(values)
        else:
            self._values.verify([msgspec.Raw(value) for value in values])
