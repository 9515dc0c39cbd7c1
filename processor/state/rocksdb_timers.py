"""Timers of a database: in memory as everywhere, and in the database too, so that its files hold all of the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from zlib import crc32

from rocksdict import WriteBatch

from processor.contracts.snapshot_format import TableLayout
from processor.records.batch import Key
from processor.state.front import Entries
from processor.state.memory_store import TimerTable
from processor.state.rocksdb_keys import blocks_of, head, scan, timed
from processor.state.rocksdb_table import WRITE_ENTRIES_MAX
from processor.state.stored_keys import StoredKey, key_bytes, normalise

if TYPE_CHECKING:
    from processor.state.rocksdb_store import RocksDbStore


class RocksDbTimers(TimerTable):
    """See ``TimerTable``. Nobody reads a timer from the database before the next restore."""

    layout = TableLayout.TIMERS

    def __init__(self, store: RocksDbStore, number: int) -> None:
        super().__init__(store.key_groups)
        self._store = store
        self._number = number
        self._heads = [head(number, group) for group in range(store.max_parallelism)]

    def write_in_steps(self, entries: Entries) -> Iterator[None]:
        rest: Iterator[tuple[Any, Any]] = iter(entries.items())
        while some := list(islice(rest, WRITE_ENTRIES_MAX)):
            batch = WriteBatch(raw_mode=True)
            for (key, time_ms), value in some:
                if value is None:
                    batch.delete(self._at(key, time_ms))
                else:
                    batch.put(self._at(key, time_ms), b"")
            self._store.database.write(batch, self._store.write_options)
            yield
        yield from super().write_in_steps(entries)

    def load(self) -> None:
        """Take the timers that are in the database already."""
        pairs = scan(self._store.database, self._number, self._store.key_groups)
        for block in blocks_of(self.layout, pairs):
            super().restore(list(block.keys), block.values)

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        times = list(values)
        self._store.collect([(place, b"") for place in self._places(keys, times)])
        super().restore(keys, times)

    def forget(self, keys: list[Key], values: Iterable[Any]) -> None:
        times = list(values)
        self._store.drop(self._places(keys, times))
        super().forget(keys, times)

    def _places(self, keys: list[Key], times: list[int]) -> list[bytes]:
        return [self._at(key, time_ms) for key, time_ms in zip(normalise(keys), times, strict=True)]

    def _at(self, key: StoredKey, time_ms: int) -> bytes:
        encoded = key_bytes(key)
        return self._heads[crc32(encoded) % len(self._heads)] + timed(time_ms, encoded)
