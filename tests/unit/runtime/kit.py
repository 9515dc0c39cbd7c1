"""A job of real parts in this process: real subtasks, threads, decision log and files; the ends in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

from processor.contracts.job_control import Outcome
from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook, FaultPoint, no_faults
from processor.ids import JobName, PublisherId, StepName
from processor.plan.layout import Layout
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.entries import CheckpointEntry
from processor.protocol.job_status import JobState
from processor.runtime.attempt import AttemptParts
from processor.runtime.control import Control
from processor.runtime.local_worker import LocalWorker
from processor.runtime.origin import write_savepoint
from processor.runtime.savepoint_progress import SavepointProgress
from processor.runtime.start_options import StartOptions
from processor.runtime.stores import make_backend
from processor.runtime.supervisor import Supervisor
from processor.runtime.system import SystemClock
from processor.runtime.threads import ThreadedExecutor
from processor.settings.model import CheckpointSettings, RuntimeSettings, Settings, StateSettings
from processor.settings.stores import StoreSettings
from processor.state.backends import RocksDbBackend
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import JobDirectory, JobStore, open_job_directory
from processor.storage.disk import Disk
from processor.storage.job_store import open_job_store
from processor.storage.places import Places
from processor.storage.snapshot_file import SnapshotFiles
from processor.stream.job import Job
from processor.telemetry.log import get_log
from processor.telemetry.metrics import Metrics
from tests.unit.task.kit import ListSource, MemorySink, Outside


class CountedChance:
    """Tokens that never come twice, and no randomness."""

    def __init__(self) -> None:
        self._tokens = count()

    def token(self) -> str:
        return f"{next(self._tokens):032x}"

    def below(self, limit: int) -> int:
        return 0


class Signals:
    """What StopSignals is to the supervisor, without signals."""

    def __init__(self) -> None:
        self.asked = False
        self.on_wait: Callable[[], None] = lambda: None
        self._look = threading.Event()

    def wait(self, timeout_ms: int) -> None:
        self.on_wait()
        self._look.wait(timeout_ms / 1_000)
        self._look.clear()

    def look_up(self) -> None:
        self._look.set()


class NoSocket:
    def start(self) -> None:
        return None


def upper(line: str) -> str:
    return line.upper()


@dataclass
class JobRun:
    """A pass-through job over lists, its checkpoint directory, and everything that can be asked of it."""

    root: Path
    source: ListSource = field(default_factory=lambda: ListSource({"lines/0": ["a", "b", "c"]}))
    outside: Outside = field(default_factory=Outside)
    build: Callable[[JobRun], Job] | None = None
    faults: FaultHook = no_faults
    parallelism: int = 1
    chance: CountedChance = field(default_factory=CountedChance)
    checkpoint: dict[str, Any] = field(default_factory=dict)
    runtime: dict[str, Any] = field(default_factory=dict)
    backend: dict[str, Any] = field(default_factory=dict)
    """Section ``state`` of the settings."""
    disk: Disk | None = None
    own_files: bool = False
    """Of RocksDB, whatever its size."""
    places: Places | None = None
    """Where checkpoints are instead of below ``root``."""
    stores: StoreSettings = field(default_factory=StoreSettings)
    """How savepoints in object stores are reached."""

    def __post_init__(self) -> None:
        self.signals = Signals()
        self.state = JobState()
        self.settings = Settings(
            checkpoint=CheckpointSettings(
                directory=self.root,
                **{"interval": "20ms", "initial_delay_max": "0ms", "timeout": "20s", **self.checkpoint},
            ),
            runtime=RuntimeSettings(
                **{
                    "parallelism": self.parallelism,
                    "restart": {"strategy": "fixed-delay", "delay": "0ms", "attempts": 2},
                    "idle_wait": "1ms",
                    "grace_period": "20s",
                    **self.runtime,
                }
            ),
            state=StateSettings(**self.backend),
        )
        self.layout = Layout.at(self.job().graph(), self.parallelism)
        self.plan = self.layout.plan
        self.directory: JobDirectory = open_job_directory(
            self.root, self.plan.job, token=self.chance.token, faults=self._fault, disk=self.disk
        )
        self.store: JobStore = (
            replace(self.directory, stores=self.stores)
            if self.places is None
            else open_job_store(self.places, self.plan.job, token=self.chance.token, faults=self._fault)
        )
        self.log = DecisionLog(self.store.log)
        self.metrics = Metrics()
        self.statistics = CheckpointStatistics()
        self.clock = SystemClock()
        self.control = Control(self.plan.job, self.state, self.metrics, self.clock, self.statistics)
        self.answers: list[Outcome] = []

    def _fault(self, point: FaultPoint) -> None:
        self.faults(point)

    def job(self) -> Job:
        if self.build is not None:
            return self.build(self)
        job = Job("echo")
        job.read("read", self.source).map("upper", upper).write("out", MemorySink(self.outside))
        return job

    def parts(self) -> AttemptParts:
        return AttemptParts(
            layout=self.layout,
            settings=self.settings,
            store=self.store,
            backend=self._backend(),
            clock=self.clock,
            chance=self.chance,
            metrics=self.metrics,
            statistics=self.statistics,
            executor=ThreadedExecutor,
            faults=self._fault,
            say=get_log("test"),
            # What is alive is all that the tests have loaded: walking it takes longer than most runs.
            workers=lambda parts: LocalWorker(parts, settled=nullcontext),
        )

    def _backend(self) -> StateBackend:
        if not self.own_files:
            return make_backend(self.settings)
        directory = self.settings.state.directory
        assert directory is not None
        return RocksDbBackend(
            snapshots=SnapshotFiles(),
            directory=directory,
            options=RocksDbOptions(own_files_min_bytes=0),
        )

    def run(self, **options: Any) -> int:
        """All attempts, to the end of the job; the exit code."""
        self.state = JobState()
        self.control = Control(self.plan.job, self.state, self.metrics, self.clock, self.statistics)
        self.supervisor = Supervisor(self.parts(), self.state, self.control)
        if self._ask is not None:
            self._ask(self.control)
            self._ask = None
        return self.supervisor.run(StartOptions(**options), cast(Any, self.signals), cast(Any, NoSocket()))

    _ask: Callable[[Control], None] | None = None

    def ask(self, what: Callable[[Control, Callable[[Outcome], None]], None]) -> None:
        """Ask for something as soon as the next run has begun."""
        self._ask = lambda control: what(control, self.answers.append)

    def savepoint(
        self,
        entry: CheckpointEntry,
        path: Path,
        *,
        native: bool = False,
        begun: bool = False,
        faults: FaultHook = no_faults,
    ) -> None:
        """Write one of a checkpoint."""
        write_savepoint(
            entry,
            self.store,
            str(path),
            job=self.plan.job,
            token=self.chance.token,
            faults=faults,
            native=native,
            progress=SavepointProgress(get_log("test"), self.clock),
            begun=begun,
        )

    def files(self) -> list[str]:
        """Names of all files of its checkpoints."""
        return self.store.files.names("")

    def out(self, subtask: int = 0, sink: str = "out") -> list[bytes | None]:
        return self.outside.rows(PublisherId(JobName(self.plan.job), StepName(sink), subtask))


class Once:
    """A fault hook that acts the n-th time a point is passed."""

    def __init__(self, point: FaultPoint, what: Callable[[], object], number: int = 1) -> None:
        self._point = point
        self._what = what
        self._left = number
        self.passed: list[FaultPoint] = []

    def __call__(self, point: FaultPoint) -> None:
        self.passed.append(point)
        if point is self._point:
            self._left -= 1
            if self._left == 0:
                self._what()


def raising(error: BaseException) -> Callable[[], None]:
    def throw() -> None:
        raise error

    return throw
