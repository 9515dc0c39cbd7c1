"""One start of a job's daemon in a simulated process: what ``runtime.embedded`` does on a machine."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from processor.contracts.job_control import JobControl
from processor.errors import SettingsError
from processor.fault_points import FaultHook
from processor.ids import JobName
from processor.plan.chaining import plan as lay_out
from processor.plan.graph import JobGraph
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.entries import CheckpointEntry
from processor.protocol.job_status import JobState, JobStatus
from processor.runtime.attempt import AttemptParts
from processor.runtime.control import Control
from processor.runtime.local_worker import LocalWorker
from processor.runtime.start_options import StartOptions
from processor.runtime.supervisor import Supervisor
from processor.settings.model import Settings
from processor.simulation.clock import SeededChance, SimulatedClock, WallClock
from processor.simulation.disk import SimulatedDisk, Trouble
from processor.simulation.executor import TURN_US_MAX, SimulatedExecutor
from processor.simulation.injection import Injection
from processor.simulation.links import Wires
from processor.simulation.local_state import LocalState
from processor.simulation.machine import MachineDisk
from processor.simulation.process import SimulatedProcess
from processor.simulation.signals import NoSocket, SimulatedSignals
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
        trouble: Trouble,
        faults: FaultHook,
        local: LocalState,
    ) -> None:
        self.process = process
        self.signals = SimulatedSignals(process)
        self._start = start
        self._disk = SimulatedDisk(disk, process, trouble)
        self._wall = wall
        self._injection = injection
        self._faults = faults
        self._local = local
        self._control: Control | None = None
        self._state = JobState()

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
        plan = lay_out(start.graph, start.settings.runtime.parallelism)
        chance = SeededChance(process.world.chance(f"tokens of {process.name}"))
        clock, metrics, state = SimulatedClock(process, self._wall), Metrics(), self._state
        location = start.settings.checkpoint.directory
        root = None if location is None else location.directory
        if root is None:
            raise SettingsError("checkpoint.directory is no local directory.")
        directory = open_job_directory(
            root, plan.job, token=chance.token, faults=self._faults, disk=self._disk
        )
        statistics = CheckpointStatistics()
        control = self._control = Control(plan.job, state, metrics, clock, statistics)
        wires = Wires(process, self._injection)
        parts = AttemptParts(
            plan=plan,
            settings=start.settings,
            store=directory,
            backend=self._local.backend(process),
            clock=clock,
            chance=chance,
            metrics=metrics,
            statistics=statistics,
            executor=lambda: SimulatedExecutor(process, turn_us_max=start.turn_us_max),
            faults=self._faults,
            say=trace_log(process.world, process.name),
            workers=lambda parts: LocalWorker(parts, links=wires.attempt, settled=nullcontext),
        )
        supervisor = Supervisor(parts, state, control)
        self.signals.wake = supervisor.wake
        return supervisor.run(start.options, self.signals, NoSocket())


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
