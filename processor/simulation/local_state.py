"""RocksDB in a simulated process: the real one, on the machine's own disk, and in step with the world.

Its threads would compact whenever they get to it, and each run would have other files. So it never comes to that: the
moment at which it is flushed is also the one at which it compacts, if it has to.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from rocksdict import Rdict

from processor.contracts.state_store import StateBackend
from processor.settings.model import StateBackendName
from processor.simulation.lock import SimulatedLock
from processor.simulation.process import SimulatedProcess
from processor.simulation.world import World
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.snapshot_file import SnapshotFiles

STARTS_WITH_ROCKSDB: Final = 0.7
"""Of the starts of a process in a run over RocksDB: the others restore it into memory."""

FILES_OF_ONE_FLUSH_MAX: Final = 1
"""Unsorted files that may be left after a flush. From four on RocksDB compacts by itself; a checkpoint adds one."""

CACHE_ENTRIES_MAX: Final = 4


class LocalState:
    """Where the state of a run's processes is, and over which store."""

    def __init__(self, world: World, *, over_rocksdb: bool) -> None:
        self._chance = world.chance("over which store")
        self._rocksdb = over_rocksdb
        self._root: Path | None = None

    def backend(self, process: SimulatedProcess, chosen: StateBackendName | None) -> StateBackend:
        """For one start; ``chosen`` by who starts it, or None: by chance, where the run is over RocksDB at all."""
        if chosen is None and not self._rocksdb:
            return MemoryBackend(snapshots=SnapshotFiles(), lock=lambda: SimulatedLock(process))
        if chosen is None:
            at_random = self._chance.random() < STARTS_WITH_ROCKSDB
            chosen = StateBackendName.ROCKSDB if at_random else StateBackendName.MEMORY
        if chosen is StateBackendName.MEMORY:
            return MemoryBackend(
                snapshots=SnapshotFiles(), scratch=self._folder, lock=lambda: SimulatedLock(process)
            )
        return RocksDbBackend(
            snapshots=SnapshotFiles(),
            directory=self._folder,
            options=RocksDbOptions(
                write_buffer_bytes=2**20,
                block_cache_bytes=2**20,
                compression="none",
                own_files_min_bytes=0,
                flush=_flush_in_step,
            ),
            cache_entries_max=CACHE_ENTRIES_MAX,
            lock=lambda: SimulatedLock(process),
        )

    @property
    def _folder(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="processor-simulated-"))
        return self._root

    def close(self) -> None:
        """Leave nothing on the machine."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)


def _flush_in_step(database: Rdict) -> None:
    database.flush()
    if sum(file["level"] == 0 for file in database.live_files()) > FILES_OF_ONE_FLUSH_MAX:
        database.compact_range(None, None)
