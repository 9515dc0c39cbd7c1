"""The two state backends. The runtime makes the one that the setting ``state.backend`` names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock

from processor.contracts.snapshot_format import SnapshotFormat
from processor.contracts.state_store import KeyedState, KeyedStateRequest
from processor.ids import escape_name
from processor.state.keyed_state import StepState
from processor.state.memory_store import MemoryStore
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.rocksdb_store import RocksDbOptions, RocksDbStore

CACHE_ENTRIES_MAX_DEFAULT = 500_000


class MemoryBackend:
    """State in this process; every snapshot is whole."""

    def __init__(
        self, *, snapshots: SnapshotFormat, lock: Callable[[], AbstractContextManager[object]] = Lock
    ) -> None:
        """``lock`` makes a lock between threads; a simulation without threads has another."""
        self._snapshots = snapshots
        self._lock = lock

    @property
    def name(self) -> str:
        return "memory"

    def open(self, request: KeyedStateRequest) -> KeyedState:
        """See ``StateBackend.open``."""
        return StepState(
            request,
            MemoryStore(request.key_groups, request.max_parallelism),
            self._snapshots,
            cache_entries_max=None,
            lock=self._lock,
        )


class RocksDbBackend:
    """State on the local disk, under a write-back cache. One a process; any thread may open states."""

    def __init__(
        self,
        *,
        snapshots: SnapshotFormat,
        directory: Path,
        options: RocksDbOptions | None = None,
        cache_entries_max: int = CACHE_ENTRIES_MAX_DEFAULT,
    ) -> None:
        """``directory`` is a root on a local disk that other processes may share; ``cache_entries_max``
        bounds the values of one step in one subtask that are held decoded in memory."""
        self._snapshots = snapshots
        self._directories = LocalDirectories(directory)
        self._options = options or RocksDbOptions()
        self._cache_entries_max = cache_entries_max

    @property
    def name(self) -> str:
        return "rocksdb"

    def open(self, request: KeyedStateRequest) -> KeyedState:
        """See ``StateBackend.open``. Raises SettingsError when the local directory cannot be used."""
        store = RocksDbStore(
            self._directories,
            f"{escape_name(request.step)}-{request.subtask_index}",
            self._options,
            max_parallelism=request.max_parallelism,
            key_groups=request.key_groups,
        )
        try:
            return StepState(request, store, self._snapshots, cache_entries_max=self._cache_entries_max)
        except BaseException:
            store.close()  # a restore that failed leaves no directory behind
            raise
