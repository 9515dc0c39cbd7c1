"""One start of a job's daemon in a simulated process: what ``runtime.daemon`` does on a machine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from processor.contracts.job_control import JobControl
from processor.errors import SettingsError
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import JobName, WorkerId
from processor.plan.graph import JobGraph
from processor.plan.layout import Layout
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.entries import CheckpointEntry
from processor.protocol.job_status import JobState, JobStatus
from processor.protocol.messages import Report
from processor.protocol.worker_messages import FromWorker
from processor.runtime.attempt import AttemptParts
from processor.runtime.attempt_part import WorkerParts
from processor.runtime.control import Control
from processor.runtime.local_worker import LocalWorker
from processor.runtime.remote_workers import RemoteWorkers
from processor.runtime.start_options import StartOptions
from processor.runtime.supervisor import Supervisor
from processor.runtime.worker_host import WorkerHost
from processor.runtime.workers import Workers, WorkersParts
from processor.settings.model import Settings, StateBackendName
from processor.simulation.clock import SeededChance, SimulatedClock, WallClock
from processor.simulation.disk import SimulatedDisk, Trouble
from processor.simulation.executor import TURN_US_MAX, SimulatedExecutor
from processor.simulation.injection import Injection
from processor.simulation.links import Wires
from processor.simulation.local_state import LocalState
from processor.simulation.machine import MachineDisk
from processor.simulation.peers import MeetingPlace, SimulatedPeers
from processor.simulation.process import SimulatedProcess
from processor.simulation.signals import NoSocket, SimulatedSignals
from processor.simulation.worker_pool import SimulatedPool
from processor.simulation.world import World
from processor.storage.directory import JobDirectory, open_job_directory
from processor.telemetry.log import Log
from processor.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a daemon is started with."""

    graph: JobGraph
    settings: Settings
    options: StartOptions
    backend: StateBackendName | None = None
    """Over which state is kept; None: the run's choice."""
    turn_us_max: int = TURN_US_MAX
    """Longest time of one round over all steps."""


class Daemon:
    """The daemon of a job in one process, and how it can be reached from outside."""

    def __init__(
        self,
        process: SimulatedProcess,
        start: Start,
        *,
        disk: MachineDisk,
        wall: WallClock,
        injection: Injection,
        trouble: Callable[[SimulatedProcess], Trouble],
        faults: Callable[[SimulatedProcess], FaultHook],
        local: LocalState,
        meeting_place: MeetingPlace,
        worker_ended: Callable[[SimulatedProcess], None],
    ) -> None:
        """``trouble`` and ``faults`` are those of a process: of the daemon itself, or of one of its workers.
        ``worker_ended`` hears of a worker process that has ended by itself."""
        self.process = process
        self.signals = SimulatedSignals(process)
        self._start = start
        self._disk = disk
        self._trouble = trouble
        self._meeting_place = meeting_place
        self._worker_ended = worker_ended
        self.pool: SimulatedPool | None = None
        """Its workers, when they are processes of their own."""
        self._wall = wall
        self._injection = injection
        self._faults = faults
        self._local = local
        self._control: Control | None = None
        self._state = JobState()

    @property
    def processes(self) -> list[SimulatedProcess]:
        """Those of it that live."""
        own = [self.process] if self.process.alive else []
        return own if self.pool is None else own + self.pool.processes

    @property
    def fenced(self) -> bool:
        """Whether it ended because a newer attempt runs."""
        return self._state.status is JobStatus.FENCED

    @property
    def control(self) -> JobControl | None:
        """None before it has begun."""
        return self._control

    @property
    def published(self) -> CheckpointEntry | None:
        """The newest checkpoint that it knows to be published; None while it recovers."""
        attempt = self._control.attempt if self._control is not None else None
        driver = attempt.driver if attempt is not None else None
        return driver.published if driver is not None and self.process.alive else None

    @property
    def publishing(self) -> bool:
        """Whether it has decided something that it does not know to be published."""
        attempt = self._control.attempt if self._control is not None else None
        coordinator = attempt.coordinator if attempt is not None else None
        published = self.published
        return (
            coordinator is not None and published is not None and coordinator.decided > published.checkpoint
        )

    def main(self) -> int:
        """The process's main task."""
        process, start = self.process, self._start
        layout = Layout.at(start.graph, start.settings.runtime.default_parallelism)
        chance = SeededChance(process.world.chance(f"tokens of {process.name}"))
        clock, metrics, state = SimulatedClock(process, self._wall), Metrics(), self._state
        statistics = CheckpointStatistics()
        control = self._control = Control(start.graph.name, state, metrics, clock, statistics)
        parts = AttemptParts(
            layout=layout,
            settings=start.settings,
            store=self._directory(process),
            backend=self._local.backend(process, self._start.backend),
            clock=clock,
            chance=chance,
            metrics=metrics,
            statistics=statistics,
            executor=lambda: SimulatedExecutor(process, turn_us_max=start.turn_us_max),
            faults=self._faults(process),
            say=trace_log(process.world, process.name),
            workers=self._workers(),
        )
        supervisor = Supervisor(parts, state, control)
        self.signals.wake = supervisor.wake
        try:
            return supervisor.run(start.options, self.signals, NoSocket())
        finally:
            if self.pool is not None:
                self.pool.close()

    def _workers(self) -> Callable[[WorkersParts], Workers]:
        process, runtime = self.process, self._start.settings.runtime
        if runtime.workers == 1:
            wires = Wires(process, self._injection)
            return lambda parts: LocalWorker(parts, links=wires.attempt, settled=nullcontext)
        pool = self.pool = SimulatedPool(
            process,
            self._injection,
            workers=runtime.workers,
            heartbeat_ms=runtime.heartbeat_interval,
            peers=lambda worker: SimulatedPeers(worker, self._meeting_place),
            make_host=self._host,
            ended=self._worker_ended,
        )
        log = trace_log(process.world, process.name)
        return lambda parts: RemoteWorkers(parts, pool, "", log)

    def _host(
        self,
        worker: WorkerId,
        process: SimulatedProcess,
        peers: SimulatedPeers,
        send: Callable[[FromWorker | Report], None],
    ) -> WorkerHost:
        start = self._start

        def executor() -> SimulatedExecutor:
            made = SimulatedExecutor(process, turn_us_max=start.turn_us_max)
            peers.wakes_too = made.wake
            return made

        return WorkerHost(
            WorkerParts(
                worker=worker,
                graph=start.graph,
                settings=start.settings,
                store=self._directory(process),
                backend=self._local.backend(process, self._start.backend),
                clock=SimulatedClock(process, self._wall),
                chance=SeededChance(process.world.chance(f"tokens of {process.name}")),
                metrics=Metrics(),
                peers=peers,
                executor=executor,
                send=send,
                faults=self._faults_of_worker(process),
                settled=nullcontext,
                say=trace_log(process.world, process.name),
            )
        )

    def _faults_of_worker(self, process: SimulatedProcess) -> FaultHook:
        """Those of a process, which is seen to go on without its coordinator."""
        passed = self._faults(process)

        def passing(point: FaultPoint) -> None:
            if not self.process.alive:
                self._injection.met[f"a worker without its coordinator passes {point}"] += 1
            passed(point)

        return passing

    def _directory(self, process: SimulatedProcess) -> JobDirectory:
        """The job's, on the disk of the machine, as a process sees it."""
        location = self._start.settings.checkpoint.directory
        root = None if location is None else location.directory
        if root is None:
            raise SettingsError("checkpoint.directory is no local directory.")
        return open_job_directory(
            root,
            self._start.graph.name,
            token=SeededChance(process.world.chance(f"names of {process.name}")).token,
            faults=self._faults(process),
            disk=SimulatedDisk(self._disk, process, self._trouble(process)),
        )


def look_at(world: World, disk: MachineDisk, root: Path, job: JobName) -> JobDirectory:
    """A job's directory as somebody outside of the world sees it: without faults, and without time passing."""
    outside = SimulatedProcess(world, "outside")
    chance = SeededChance(world.chance("outside"))
    looked = SimulatedDisk(disk, outside, lambda act: 0)
    return open_job_directory(root, job, token=chance.token, disk=looked, make=False)


def trace_log(world: World, name: str) -> Log:
    """A log whose lines go into the trace, if that is kept."""
    logger = logging.Logger(f"simulated {name}", logging.INFO if world.trace.keep else logging.CRITICAL)
    logger.addHandler(_TraceHandler(world, name))
    return Log(logger)


class _TraceHandler(logging.Handler):
    def __init__(self, world: World, name: str) -> None:
        super().__init__()
        self._world = world
        self._name = name

    def emit(self, record: logging.LogRecord) -> None:
        fields = getattr(record, "processor_fields", {})
        told = " ".join(f"{name}={value}" for name, value in fields.items())
        error = record.exc_info[1] if record.exc_info else None
        why = f" [{type(error).__name__}: {error}]" if error is not None else ""
        self._world.trace.say(
            self._world.now_us, self._name, f"{record.levelname.lower()}: {record.getMessage()} {told}{why}"
        )
