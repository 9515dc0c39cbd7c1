"""The two state backends. The runtime makes the one that the setting ``state.backend`` names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock

from processor.contracts.snapshot_format import SnapshotFormat
from processor.contracts.state_store import KeyedState, KeyedStateRequest
from processor.fault_points import FaultPoint
from processor.ids import FileRef, escape_name
from processor.state.held_entries import StateReader
from processor.state.keyed_state import StepState
from processor.state.memory_store import MemoryStore
from processor.state.rocksdb_directory import LocalDirectories, default_root
from processor.state.rocksdb_fetch import fetch_database
from processor.state.rocksdb_store import Begun, RocksDbOptions, RocksDbStore, declares

CACHE_ENTRIES_MAX_DEFAULT = 500_000


class MemoryBackend:
    """State in this process."""

    def __init__(
        self,
        *,
        snapshots: SnapshotFormat,
        scratch: Path | None = None,
        lock: Callable[[], AbstractContextManager[object]] = Lock,
    ) -> None:
        """``scratch`` is a root on a local disk, where a database is laid out to be read if one is restored; ``lock``
        makes a lock between threads; a simulation without threads has another."""
        self.snapshots = snapshots
        self._scratch = LocalDirectories(scratch or default_root())
        self._lock = lock

    @property
    def name(self) -> str:
        return "memory"

    def open(self, request: KeyedStateRequest) -> KeyedState:
        """See ``StateBackend.open``."""
        return StepState(
            request,
            MemoryStore(request.key_groups, request.max_parallelism),
            StateReader(files=request.files, format=self.snapshots, scratch=self._scratch),
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
        lock: Callable[[], AbstractContextManager[object]] = Lock,
    ) -> None:
        """``directory`` is a root on a local disk that other processes may share; ``cache_entries_max``
        bounds the values of one step in one subtask that are held decoded in memory; ``lock``: see
        ``MemoryBackend``."""
        self._lock = lock
        self.snapshots = snapshots
        self._directories = LocalDirectories(directory)
        self._options = options or RocksDbOptions()
        self._cache_entries_max = cache_entries_max

    @property
    def name(self) -> str:
        return "rocksdb"

    def open(self, request: KeyedStateRequest) -> KeyedState:
        """See ``StateBackend.open``. Raises SettingsError when the local directory cannot be used."""
        begun = self._begun(request)
        store = RocksDbStore(
            self._directories,
            f"{escape_name(request.step)}-{request.subtask_index}",
            self._options,
            max_parallelism=request.max_parallelism,
            key_groups=request.key_groups,
            begun=begun,
        )
        try:
            return StepState(
                request,
                store,
                StateReader(files=request.files, format=self.snapshots, scratch=self._directories),
                cache_entries_max=self._cache_entries_max,
                goes_on=begun is not None,
                lock=self._lock,
            )
        except BaseException:
            store.close()  # a restore that failed leaves no directory behind
            raise

    def _begun(self, request: KeyedStateRequest) -> Begun | None:
        """The database to go on with: one for just these key groups, with tables that the step still declares, under
        the same names and of the same schema. All others are read entry by entry."""
        if len(request.restored) != 1 or request.restored[0].database is None:
            return None
        state = request.restored[0]
        evolved = any(request.described.get(name, schema) != schema for name, schema in state.states.items())
        if evolved or state.kept_as:
            return None
        description = self.snapshots.read_database(request.files, state.file)
        if (description.key_groups, description.max_parallelism) != (
            request.key_groups,
            request.max_parallelism,
        ):
            return None
        if not declares(request.tables, description):
            return None

        def fetched(_: FileRef) -> None:
            request.faults(FaultPoint.RECOVERY_STATE_HALF_READ)

        return Begun(
            description=description,
            lay_out=lambda path: fetch_database(request.files, state, description, path, fetched),
        )
