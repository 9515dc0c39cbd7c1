"""The embedded runtime: coordinator and one worker in this process, restarted when an attempt fails."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from processor.contracts.job_control import JobControl
from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook, no_faults
from processor.ids import JobName
from processor.plan.chaining import plan as lay_out
from processor.plan.graph import JobGraph
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.job_status import JobState
from processor.runtime.attempt import AttemptParts
from processor.runtime.control import Control
from processor.runtime.signals import StopSignals
from processor.runtime.start_options import StartOptions
from processor.runtime.supervisor import Supervisor
from processor.runtime.system import SystemChance, SystemClock
from processor.runtime.threads import ThreadedExecutor
from processor.service.control_place import control_place, control_root
from processor.service.control_socket import ControlSocket
from processor.settings.model import Settings, StateBackendName
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.state.rocksdb_directory import default_root
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.decision_log import two_writer_test
from processor.storage.directory import JobStore
from processor.storage.job_store import open_job_store
from processor.storage.layout import job_part
from processor.storage.local_copies import LocalCopies
from processor.storage.places import places_of
from processor.storage.snapshot_file import SnapshotFiles
from processor.telemetry.log import Log
from processor.telemetry.metrics import Metrics

SWITCH_INTERVAL_S = 0.001
"""How soon a background thread gets the interpreter from the busy one. At Python's 5 ms a completion that needs it
for 0.3 s took 3 s, and checkpoints followed each other as slowly."""

COPIES_FOLDER = "copies"
"""Under state.directory, with a folder a job."""

YOUNG_OBJECTS_MAX = 50_000
"""Objects made before the collector looks at the youngest: batches die by reference count, not by it."""


def run_job(
    graph: JobGraph,
    settings: Settings,
    options: StartOptions,
    log: Log,
    *,
    faults: FaultHook = no_faults,
    controlled_by: Callable[[JobControl], None] = lambda control: None,
) -> int:
    """Run a job until it ends, is stopped, or can't go on; returns the exit code. ``controlled_by`` is told by whom
    the job can be asked for things while it runs.

    Raises ProcessorError for what is wrong before anything runs, and for what ended the job.
    """
    plan = lay_out(graph, settings.runtime.parallelism)
    chance, clock, metrics = SystemChance(), SystemClock(), Metrics()
    where = places_of(settings)
    store = open_job_store(where, plan.job, token=chance.token, faults=faults)
    if where.files.directory is None:
        store = with_local_copies(store, plan.job, settings, chance.token())
    # Another handle on the same log: does its store keep a second writer out (R5)?
    other = open_job_store(where, plan.job, token=chance.token)
    two_writer_test(store.log, other.log, chance.token)
    state = JobState()
    statistics = CheckpointStatistics()
    control = Control(plan.job, state, metrics, clock, statistics)
    controlled_by(control)
    gc.set_threshold(YOUNG_OBJECTS_MAX, 50, 100)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    parts = AttemptParts(
        plan=plan,
        settings=settings,
        store=store,
        backend=make_backend(settings),
        clock=clock,
        chance=chance,
        metrics=metrics,
        statistics=statistics,
        executor=ThreadedExecutor,
        faults=faults,
        say=log,
    )
    supervisor = Supervisor(parts, state, control)
    socket = ControlSocket(control, control_place(control_root(settings), plan.job), log)
    with StopSignals(supervisor.wake) as signals:
        try:
            return supervisor.run(options, signals, socket)
        finally:
            socket.close()


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
