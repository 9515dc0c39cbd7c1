"""State in RocksDB on the local disk, for state larger than memory.

Where entries lie says ``rocksdb_keys``. Always in raw mode: otherwise the binding would pickle.

RocksDB's own log is off. A process that dies loses its local directory on purpose and restores from a
checkpoint, whatever its disk still holds.

A snapshot of much state is the database's own files (``rocksdb_upload``), of little it is entries; a restore at the
same key groups goes on with those files where they lie, any other reads entries (design page 0010).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

from processor.contracts.snapshot_format import (
    TIMER_TABLES,
    DatabaseDescription,
    DatabaseTable,
    TableLayout,
)
from processor.contracts.state_store import TableSpec
from processor.errors import ProcessorError, SettingsError
from processor.ids import KeyGroupRange
from processor.invariant import invariant
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.rocksdb_keys import TABLES_MAX
from processor.state.rocksdb_map_table import RocksDbMapTable
from processor.state.rocksdb_table import RocksDbTable
from processor.state.rocksdb_timers import RocksDbTimers
from processor.state.rocksdb_upload import DatabaseUpload
from processor.state.snapshot import SnapshotTarget
from processor.state.value_types import ValueType

RESTORE_ENTRIES_MAX = 250_000
RESTORE_BYTES_MAX = 64 * 2**20
"""A file of restored entries is sorted in memory and handed to RocksDB whole at either bound."""

FILTER_PART_BYTES = 128 * 1024
"""Of filters and indexes: what is read when a part of them is not in the cache of blocks."""


MANIFEST_BYTES_MAX = 256 * 1024
"""Of the database's list of its files, which then begins anew."""

OWN_FILES_MIN_BYTES = 4 * 2**20
"""A database of so many bytes is kept by its own files. Of fewer, a file of entries is written and synced sooner than
the database flushes, links and syncs, and it is one file instead of some (design page 0010)."""


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
    own_files_min_bytes: int = OWN_FILES_MIN_BYTES
    """From this size on a snapshot is the database's own files. No setting: only tests want another."""
    flush: Callable[[Rdict], None] = Rdict.flush
    """What brings all that was written into files; a simulation compacts then, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A database's files to go on with."""

    description: DatabaseDescription
    lay_out: Callable[[Path], None]
    """Makes the directory at the path, with the files in it."""


def declares(tables: Sequence[TableSpec], description: DatabaseDescription) -> bool:
    """Whether all tables of a database are declared, and lie as they are declared."""
    layouts = {spec.name: TableLayout.MAPS if spec.mapped else TableLayout.VALUES for spec in tables}
    layouts |= dict.fromkeys(TIMER_TABLES, TableLayout.TIMERS)
    return all(layouts.get(table.name) is table.layout for table in description.tables)


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
        begun: Begun | None = None,
    ) -> None:
        """With ``begun`` it goes on with files that are there. Raises SettingsError when the directory or the
        options cannot be used; what laying out the files raises."""
        self.max_parallelism = max_parallelism
        self.key_groups = key_groups
        self._directories = directories
        self._options = _database_options(options)
        self._own_files_min = options.own_files_min_bytes
        self._flush = options.flush
        self._path = directories.make(name)
        try:
            if begun is not None:
                begun.lay_out(self._path)
            self._options.set_error_if_exists(begun is None)
            self.database = Rdict(str(self._path), self._options)
        except ProcessorError:
            directories.remove(self._path)
            raise
        except Exception as error:  # the binding raises bare Exceptions
            directories.remove(self._path)
            raise SettingsError(
                f"RocksDB cannot be opened in '{self._path}': {error}.",
                remedy="Set state.directory to a directory on a local disk with space left.",
            ) from error
        self.write_options = WriteOptions()
        self.write_options.disable_wal = True  # type: ignore[method-assign,assignment]
        self._begun = begun is not None
        self._numbers: dict[str, int] = {}
        """Of tables that the files have, by name: a table keeps its number for as long as the files live."""
        if begun is not None:
            self._numbers.update((table.name, table.number) for table in begun.description.tables)
        self._tables: dict[str, RocksDbTable | RocksDbTimers] = {}
        self._checkpoints = 0
        self._snapshot: Snapshot | None = None
        self._collected: dict[bytes, bytes] = {}
        self._collected_bytes = 0
        self._files = 0
        self._closed = False

    def open_table(self, spec: TableSpec, values: ValueType) -> RocksDbTable:
        of = RocksDbMapTable if spec.mapped else RocksDbTable
        table = of(self, self._number(spec.name), values)
        self._tables[spec.name] = table
        return table

    def open_timers(self, name: str) -> RocksDbTimers:
        timers = RocksDbTimers(self, self._number(name))
        self._tables[name] = timers
        if self._begun:
            timers.load()
        return timers

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, max(self._numbers.values(), default=-1) + 1)
        invariant(number < TABLES_MAX, "a table's number has a byte")
        return number

    def own_files(self, target: SnapshotTarget) -> DatabaseUpload | None:
        """See ``SnapshotStore.own_files``: None for little state."""
        bytes_min = self._own_files_min // (2 if target.known else 1)  # not to and fro
        if self._bytes() < bytes_min:
            return None
        self._checkpoints += 1
        tables = tuple(
            DatabaseTable(name=name, kind=kind, number=self._numbers[name], layout=self._tables[name].layout)
            for name, kind in target.tables
        )
        local = self._path.with_name(f"{self._path.name}.checkpoint-{self._checkpoints}")
        return DatabaseUpload(self.database, local, target, tables, self._flush)

    def _bytes(self) -> int:
        """Of files, and of what has yet to go into one."""
        unflushed: int = self.database.property_int_value("rocksdb.cur-size-all-mem-tables") or 0
        files: int = sum(file["size"] for file in self.database.live_files())
        return unflushed + files

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
    made.set_block_based_table_factory(blocks)
    made.set_write_buffer_size(options.write_buffer_bytes)
    made.set_max_background_jobs(options.background_jobs)
    made.set_compression_type(_COMPRESSIONS[options.compression]())
    made.set_level_compaction_dynamic_level_bytes(True)
    # A memtable can tell that it lacks a key without a search.
    made.set_memtable_whole_key_filtering(True)
    made.set_memtable_prefix_bloom_ratio(0.02)
    # Copied into every checkpoint as far as it has grown, while the interpreter stands still.
    made.set_max_manifest_file_size(MANIFEST_BYTES_MAX)
    # Its own log of events: nobody reads it, and it would grow.
    made.set_keep_log_file_num(1)
    made.set_max_log_file_size(2**20)
    made.set_stats_dump_period_sec(0)
    return made
