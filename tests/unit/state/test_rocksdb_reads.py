"""What reading a key costs the disk, whatever the size of the store."""

from __future__ import annotations

from pathlib import Path

from processor.contracts.state_store import TableSpec
from processor.ids import KeyGroupRange
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.rocksdb_store import RocksDbOptions, RocksDbStore
from processor.state.value_types import value_type

KEYS = 600_000
READS = 1_000
READ_BYTES_MAX = 30_000
"""For one key: a block of entries, and now and then a part of a filter or an index."""


def bytes_read() -> int:
    """By this process so far, from files or their cache in memory."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    raise AssertionError("the kernel says what a process reads")


def test_a_read_never_takes_the_whole_filter_of_a_file(tmp_path):
    """The cache of blocks consists of shards, and a block larger than its shard is never kept: a filter in one
    piece was read anew for every key as soon as a file held a million."""
    store = RocksDbStore(
        LocalDirectories(tmp_path),
        "counts",
        RocksDbOptions(block_cache_bytes=4 * 2**20),
        max_parallelism=128,
        key_groups=KeyGroupRange(0, 128),
    )
    table = store.open_table(TableSpec(name="count", kind=int), value_type(int, step="step", state="count"))
    table.restore([f"u{number:07d}" for number in range(KEYS)], [b"\x05"] * KEYS)
    store.restored()
    store.database.compact_range(None, None)
    before = bytes_read()
    assert all(table.read(f"u{number * 599:07d}") == 5 for number in range(READS))
    assert bytes_read() - before <= READS * READ_BYTES_MAX
    store.close()
