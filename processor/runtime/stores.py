"""What a process of a job keeps state in: the store of its checkpoints, and the backend of its setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook
from processor.ids import JobName
from processor.settings.model import Settings, StateBackendName
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.state.rocksdb_directory import default_root
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.directory import JobStore
from processor.storage.job_store import open_job_store
from processor.storage.layout import job_part
from processor.storage.local_copies import LocalCopies
from processor.storage.places import places_of
from processor.storage.snapshot_file import SnapshotFiles

COPIES_FOLDER = "copies"
"""Under state.directory, with a folder a job."""


def open_store(job: JobName, settings: Settings, token: Callable[[], str], faults: FaultHook) -> JobStore:
    """The job's store, with local copies where they are of use."""
    where = places_of(settings)
    store = open_job_store(where, job, token=token, faults=faults)
    return store if where.files.directory is not None else with_local_copies(store, job, settings, token())


def with_local_copies(store: JobStore, job: JobName, settings: Settings, token: str) -> JobStore:
    """The store, with copies of a database's files on this machine, if there is a database and settings say so."""
    state = settings.state
    if state.backend is not StateBackendName.ROCKSDB or not state.local_recovery:
        return store
    folder = (state.directory or default_root()) / COPIES_FOLDER / job_part(job)
    return replace(store, files=LocalCopies(store.files, folder, token))


def make_backend(settings: Settings) -> StateBackend:
    """The state backend that the setting names."""
    snapshots = SnapshotFiles()
    state = settings.state
    root = state.directory or default_root()
    match state.backend:
        case StateBackendName.MEMORY:
            return MemoryBackend(snapshots=snapshots, scratch=root)
        case StateBackendName.ROCKSDB:
            return RocksDbBackend(
                snapshots=snapshots,
                directory=root,
                options=RocksDbOptions(
                    write_buffer_bytes=state.rocksdb.write_buffer,
                    block_cache_bytes=state.rocksdb.block_cache,
                    compression=state.rocksdb.compression.value,
                    background_jobs=state.rocksdb.background_jobs,
                ),
                cache_entries_max=state.cache_entries_max,
            )
        case _:
            assert_never(state.backend)
