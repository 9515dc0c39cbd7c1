"""State in RocksDB on the local disk, for state larger than memory.

An entry's key is the table's number (1 byte), the key group (2 bytes, big-endian) and the encoded key, so
that a table is one range of keys and a key group one range of that; its value is the value in msgpack. The
key comes last and needs no length; that of a map has one, for the key of the map's entry follows. Always in raw
mode: otherwise the binding would pickle.

RocksDB's own log is off. A process that dies loses its local directory on purpose and restores from a
checkpoint, whatever its disk still holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    Snapshot,
    SstFileWriter,
    WriteBatch,
    WriteOptions,
)

from processor.contracts.state_store import TableSpec
from processor.errors import SettingsError
from processor.ids import KeyGroupRange
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.rocksdb_map_table import RocksDbMapTable
from processor.state.rocksdb_table import RocksDbTable
from processor.state.value_types import ValueType

RESTORE_ENTRIES_MAX = 250_000
RESTORE_BYTES_MAX = 64 * 2**20
"""A file of restored entries is sorted in memory and handed to RocksDB whole at either bound."""

FILTER_PART_BYTES = 128 * 1024
"""Of filters and indexes: what is read when a part of them is not in the cache of blocks."""


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
        table = (RocksDbMapTable if spec.mapped else RocksDbTable)(self, self._tables, values)
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
