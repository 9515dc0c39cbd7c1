"""State in RocksDB on the local disk, for state larger than memory.

An entry's key is the table's number (1 byte), the key group (2 bytes, big-endian) and the encoded key, so
that a table is one range of keys and a key group one range of that; its value is the value in msgpack. The
key comes last and needs no length. Always in raw mode: otherwise the binding would pickle.

RocksDB's own log is off. A process that dies loses its local directory on purpose and restores from a
checkpoint, whatever its disk still holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import msgspec
from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    ReadOptions,
    Snapshot,
    SstFileWriter,
    WriteBatch,
    WriteOptions,
)

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.contracts.state_store import TableSpec
from processor.errors import SettingsError
from processor.ids import KeyGroupRange
from processor.records.batch import Key
from processor.records.key_groups import decode_key, encode_key
from processor.state.batch_cache import BatchCache
from processor.state.front import Entries
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.snapshot import Block, changed_values
from processor.state.stored_keys import StoredKey, key_bytes
from processor.state.value_types import ValueType

WRITE_ENTRIES_MAX = 512
"""Entries of one WriteBatch. Writing one holds the interpreter throughout, at about 2 µs an entry."""

FILE_ENTRIES_MIN = 8_192
"""Parts of at least so many entries go in as a file: 0.7 µs an entry cheaper, but a file for each cut."""

RESTORE_ENTRIES_MAX = 250_000
RESTORE_BYTES_MAX = 64 * 2**20
"""A file of restored entries is sorted in memory and handed to RocksDB whole at either bound."""

FILTER_PART_BYTES = 128 * 1024
"""Of filters and indexes: what is read when a part of them is not in the cache of blocks."""

_HEAD = 3
_TEXT = b"s"
_TEXT_TAG = _TEXT[0]
_TEXT_CRC = crc32(_TEXT)
"""A key's group is the checksum of its encoding (``records.key_groups``); here without joining tag and text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RocksDbOptions:
    """The store's own knobs, for each step with state in each subtask (settings ``state.rocksdb``)."""

    write_buffer_bytes: int = 32 * 2**20
    """Memory that collects writes before they go to a file."""
    block_cache_bytes: int = 64 * 2**20
    """Memory for blocks read from files, index and filter blocks among them."""
    compression: str = "lz4"
    """Of files: none, snappy, lz4 or zstd."""
    background_jobs: int = 2
    """Threads that flush and compact."""
    bloom_bits_per_key: int = 10
    """So that asking for a key that is not there reads no file (1 % of the time it does); 0: no filter."""


class RocksDbTable:
    """One table: a range of keys of the step's database."""

    restored_as = msgspec.Raw
    """Snapshots and RocksDB hold the same bytes."""

    def __init__(self, store: RocksDbStore, number: int, values: ValueType) -> None:
        self._store = store
        self._head = bytes((number,))
        self._next_head = bytes((number + 1,))
        self._values = values
        self._groups = store.max_parallelism
        self._heads = [self._head + group.to_bytes(2, "big") for group in range(self._groups)]
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
        count, of = self._groups, self._values
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
            if set(map(type, some)) == {str}:
                encoded = [_TEXT + key for key in map(str.encode, cast(list[str], some))]
            else:
                encoded = list(map(key_bytes, some))
            yield [crc % count for crc in map(crc32, encoded)], encoded, data

    def front(self, *, entries_max: int) -> BatchCache:
        """A write-back cache."""
        return BatchCache(self, entries_max=entries_max)

    def blocks(self) -> Iterator[Block]:
        """All entries in the order of their key groups, from the snapshot that the store holds."""
        bound = ReadOptions()
        bound.set_iterate_upper_bound(self._next_head)
        entries = self._store.held_snapshot().items(from_key=self._head, read_opt=bound)
        pairs = cast(Iterator[tuple[bytes, bytes]], entries)
        while some := list(islice(pairs, BLOCK_ENTRIES_MAX)):
            yield Block(
                groups=KeyGroupRange(_group_of(some[0][0]), _group_of(some[-1][0]) + 1),
                keys=_decode_keys([key for key, _ in some]),
                values=[msgspec.Raw(value) for _, value in some],
            )

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        heads, groups = self._heads, self._groups
        entries: list[tuple[bytes, bytes]] = []
        for key, value in zip(keys, values, strict=True):
            encoded = encode_key(key)
            entries.append((heads[crc32(encoded) % groups] + encoded, bytes(value)))
        self._store.collect(entries)

    def forget(self, keys: list[Key], values: Iterable[int]) -> None:
        """Entries that are no longer there."""
        heads, groups = self._heads, self._groups
        encoded = [encode_key(key) for key in keys]
        self._store.drop([heads[crc32(key) % groups] + key for key in encoded])

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        """These entries; True with those that are no longer there."""
        return changed_values(entries, self._store.key_groups, shared=self._values.shared)

    def _verify(self, values: list[Any]) -> None:
        if self._values.shared:
            if not self._values.shallow:
                self._values.verify(values)
        else:
            self._values.verify([msgspec.Raw(value) for value in values])


class RocksDbStore:
    """The database of one step in one subtask, in a local directory of its own."""

    def __init__(
        self,
        directories: LocalDirectories,
        name: str,
        options: RocksDbOptions,
        *,
        max_parallelism: int,
        key_groups: KeyGroupRange,
    ) -> None:
        """Raises SettingsError when the directory or the options cannot be used."""
        self.max_parallelism = max_parallelism
        self.key_groups = key_groups
        self._directories = directories
        self._options = _database_options(options)
        self._path = directories.make(name)
        try:
            self.database = Rdict(str(self._path), self._options)
        except Exception as error:  # the binding raises bare Exceptions
            directories.remove(self._path)
            raise SettingsError(
                f"RocksDB cannot be opened in '{self._path}': {error}.",
                remedy="Set state.directory to a directory on a local disk with space left.",
            ) from error
        self.write_options = WriteOptions()
        self.write_options.disable_wal = True  # type: ignore[method-assign,assignment]
        self._tables = 0
        self._snapshot: Snapshot | None = None
        self._collected: dict[bytes, bytes] = {}
        self._collected_bytes = 0
        self._files = 0
        self._closed = False

    def open_table(self, spec: TableSpec, values: ValueType) -> RocksDbTable:
        table = RocksDbTable(self, self._tables, values)
        self._tables += 1
        return table

    def begin_snapshot(self) -> None:
        self._snapshot = self.database.snapshot()

    def end_snapshot(self) -> None:
        self._snapshot = None

    def held_snapshot(self) -> Snapshot:
        """What ``begin_snapshot`` holds on to."""
        assert self._snapshot is not None
        return self._snapshot

    def collect(self, entries: list[tuple[bytes, bytes]]) -> None:
        """Restored entries; every so many of them become one file of the database."""
        self._collected.update(entries)  # later ones replace earlier ones
        self._collected_bytes += sum(len(key) + len(value) for key, value in entries)
        if len(self._collected) >= RESTORE_ENTRIES_MAX or self._collected_bytes >= RESTORE_BYTES_MAX:
            self._ingest()

    def drop(self, keys: list[bytes]) -> None:
        """Restored entries that are no longer there."""
        self._ingest()
        self.delete(keys)

    def delete(self, keys: list[bytes]) -> None:
        batch = WriteBatch(raw_mode=True)
        for key in keys:
            batch.delete(key)
        self.database.write(batch, self.write_options)

    @contextmanager
    def sorted_file(self) -> Iterator[SstFileWriter]:
        """A file to write in the order of keys; the database takes it over when all is written, and only then."""
        self._files += 1
        path = f"{self._path}.sorted-{self._files}.sst"
        file = SstFileWriter(self._options)
        file.open(path)
        try:
            yield file
            file.finish()
            move = IngestExternalFileOptions()
            move.set_move_files(True)
            self.database.ingest_external_file([path], move)
        finally:
            Path(path).unlink(missing_ok=True)

    def restored(self) -> None:
        self._ingest()

    def close(self) -> None:
        """Close the database and remove its directory. Idempotent; no completion may be in a slice."""
        if self._closed:
            return
        self._closed = True
        self._snapshot = None
        self.database.close()
        self._directories.remove(self._path)

    def _ingest(self) -> None:
        if not self._collected:
            return
        entries, self._collected, self._collected_bytes = list(self._collected.items()), {}, 0
        entries.sort()  # already in order when the snapshot was written by this store
        with self.sorted_file() as file:
            for key, value in entries:
                file[key] = value


def _group_of(key: bytes) -> int:
    return int.from_bytes(key[1:_HEAD], "big")


def _decode_keys(keys: list[bytes]) -> list[Key]:
    if {key[_HEAD] for key in keys} == {_TEXT_TAG}:  # the common case, without a call a key
        return [key[_HEAD + 1 :].decode() for key in keys]
    return [decode_key(key[_HEAD:]) for key in keys]


_COMPRESSIONS = {
    "none": DBCompressionType.none,
    "snappy": DBCompressionType.snappy,
    "lz4": DBCompressionType.lz4,
    "zstd": DBCompressionType.zstd,
}


def _database_options(options: RocksDbOptions) -> Options:
    if options.compression not in _COMPRESSIONS:
        raise SettingsError(
            f"state.rocksdb.compression is '{options.compression}'.",
            remedy=f"Choose one of {', '.join(_COMPRESSIONS)}.",
        )
    blocks = BlockBasedOptions()
    # Few large shards without locks; the charge of an entry is its own finding.
    blocks.set_block_cache(Cache.new_hyper_clock_cache(options.block_cache_bytes, 0))
    blocks.set_cache_index_and_filter_blocks(True)
    # In parts: a block larger than a shard of the cache is never cached, and read anew for every key. Whole, the
    # filter of ten million keys has 12 MB. Parts of the usual 4 KB cost a third more time to find.
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_metadata_block_size(FILTER_PART_BYTES)
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    if options.bloom_bits_per_key:
        blocks.set_bloom_filter(options.bloom_bits_per_key, False)
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    made.set_error_if_exists(True)
    made.set_block_based_table_factory(blocks)
    made.set_write_buffer_size(options.write_buffer_bytes)
    made.set_max_background_jobs(options.background_jobs)
    made.set_compression_type(_COMPRESSIONS[options.compression]())
    made.set_level_compaction_dynamic_level_bytes(True)
    # A memtable can tell that it lacks a key without a search.
    made.set_memtable_whole_key_filtering(True)
    made.set_memtable_prefix_bloom_ratio(0.02)
    # Its own log of events: nobody reads it, and it would grow.
    made.set_keep_log_file_num(1)
    made.set_max_log_file_size(2**20)
    made.set_stats_dump_period_sec(0)
    return made
