"""One seeded run: world, machine, brokers, processes and their operator, put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from processor.contracts.simulated import SimulatedSystem
from processor.ids import JobName, SplitId, StepName
from processor.plan.graph import JobGraph, Step
from processor.runtime.start_options import StartOptions
from processor.settings.cluster import ClusterSettings
from processor.settings.location import local
from processor.settings.model import CheckpointSettings, RuntimeSettings, Settings, StateBackendName
from processor.settings.restart import RestartSettings, RestartStrategyName
from processor.simulation.case import PARTS, Case, Input
from processor.simulation.chaos import Chaos
from processor.simulation.clock import WallClock
from processor.simulation.daemon import Daemon, Start, look_at
from processor.simulation.faults import Faults
from processor.simulation.injection import NO_LIMIT, Injection, Limit
from processor.simulation.local_state import LocalState
from processor.simulation.machine import FileNode, MachineDisk
from processor.simulation.network import SimulatedNetwork
from processor.simulation.operator import Operator
from processor.simulation.peers import MeetingPlace
from processor.simulation.process import SimulatedProcess
from processor.simulation.streams import Streams
from processor.simulation.trace import Trace
from processor.simulation.unit import LoudEnd, Unit
from processor.simulation.world import US_PER_MS, World
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import JobDirectory
from processor.storage.layout import FILES_FOLDER, job_folder

ROOT: Final = Path("/simulated/checkpoints")
"""A folder of the simulated disk; the machine's own has none of that name."""

STEPS_MAX: Final = 150_000
"""Of a run, until it counts as hanging."""

FEED_PART: Final = 0.8
"""Of the time of faults, in which input is written."""

FEED_MS_MIN: Final = 2_000

WORKERS_AGAIN: Final = (1, 2, 3)
"""With how many workers a job is started again that had several."""

GOES_ON_WITH_FEWER: Final = 0.4
"""Of the runs with several workers."""

BURSTS: Final = (0, 0, 3, 8)
"""In how many bursts records come; 0: each by itself."""


class Simulation:
    """Everything of one run. ``run`` it once, then look at what is left."""

    def __init__(
        self,
        case: Case,
        seed: int,
        faults: Faults,
        *,
        limit: Limit = NO_LIMIT,
        steps_max: int = STEPS_MAX,
        keep_trace: bool = False,
        over_rocksdb: bool = False,
        workers: int = 1,
    ) -> None:
        """``workers``: processes that share the job's subtasks; when they are several, each further start by the
        operator draws anew how many, one included."""
        self.case = case
        self._workers = workers
        self.world = World(seed, steps_max=steps_max, trace=Trace(keep=keep_trace))
        self.injection = Injection(self.world, faults, limit, case.rare_points, in_workers=workers > 1)
        self.network = SimulatedNetwork(self.world, self.injection)
        self.disk = MachineDisk()
        self.local = LocalState(self.world, over_rocksdb=over_rocksdb)
        self.wall = WallClock(self.world)
        self.meeting_place = MeetingPlace(Streams(self.world, self.injection))
        self.chaos = Chaos(
            self.world,
            self.injection,
            network=self.network,
            disk=self.disk,
            wall=self.wall,
            streams=self.meeting_place.streams,
            another=self._another_unit,
            newest_files=self._newest_files,
        )
        self.systems: dict[str, SimulatedSystem] = {
            name: plugin.simulated(self.network, section) for name, (plugin, section) in case.plugins.items()
        }
        self.fed = not case.inputs
        self.unreadable: list[str] = []
        """What could not be read yet when a daemon had ended well (R17)."""
        self.untrue: list[str] = []
        """What a daemon has said of itself, and was not so."""
        self._loud_workers: list[LoudEnd] = []
        self.settings = self._settings()
        self._start: Start | None = None
        self._operator = SimulatedProcess(self.world, "operator")

    @property
    def job(self) -> JobName:
        return self.case.graph.name

    def run(self) -> None:
        """The case's script. Raises StepLimitReached, or what the operator met."""
        self.begin()
        if self.case.input_first:
            self._write_all()
        else:
            self._operator.spawn("feed", self._feed)
        try:
            self.let_run(lambda: self.case.script(Operator(self)))
        finally:
            self.end()

    def begin(self) -> None:
        """Make what the job reads and writes, and let faults begin."""
        for step in self.case.graph.steps.values():
            for endpoint in (step.source, step.sink):
                if endpoint is not None:
                    self.system_of(endpoint).prepare(endpoint, self.case.parts.get(step.name, PARTS))
        self.chaos.begin()

    def let_run(self, script: Callable[[], None]) -> None:
        """Let the world run until the operator has done this, or a process has ended loudly: then it would be
        started again and again. Raises StepLimitReached, or what the operator met."""
        ended: list[Exception | None] = []

        def act() -> None:
            try:
                script()
            except Exception as error:
                ended.append(error)
            else:
                ended.append(None)

        self._operator.spawn("script", act)
        self.world.run(lambda: bool(ended) or bool(self.loud()))
        if ended and ended[0] is not None:
            raise ended[0]

    def end(self) -> None:
        """Nothing runs afterwards: what is unwound now touches nothing."""
        self.injection.stop()
        for unit in self.chaos.units:
            unit.retire()
            if unit.daemon is not None:
                for process in unit.daemon.processes:
                    process.end_now()
        self._operator.end_now()
        self.local.close()

    def loud(self) -> list[LoudEnd]:
        """Processes that ended by an error which nothing justifies."""
        return [*self._loud_workers, *(end for unit in self.chaos.units for end in unit.loud)]

    def directory(self) -> JobDirectory:
        """The job's directory, to look at."""
        return look_at(self.world, self.disk, ROOT, self.job)

    def system_of(self, endpoint: object) -> SimulatedSystem:
        """The system that a source reads from or a sink writes to."""
        for system in self.systems.values():
            if system.serves(endpoint):
                return system
        raise LookupError(f"no plugin of the case serves {endpoint!r:.100}")

    def source_steps(self) -> list[Step]:
        return [step for step in self.case.graph.steps.values() if step.source is not None]

    def input_ends(self) -> dict[SplitId, int]:
        """The places after all input there is."""
        ends: dict[SplitId, int] = {}
        for step in self.source_steps():
            ends.update(self.system_of(step.source).ends(step.source))
        return ends

    # --- units

    def start_unit(
        self,
        options: StartOptions,
        parallelism: int | None,
        *,
        graph: JobGraph | None = None,
        backend: StateBackendName | None = None,
    ) -> None:
        """The operator starts a daemon; further units are of the same kind. ``graph`` is another layout of the same
        steps."""
        changed: dict[str, int] = {}
        if parallelism is not None:
            changed["parallelism"] = parallelism
        if self._workers > 1 and self._start is not None:
            changed["workers"] = self.world.chance(f"workers from {len(self.chaos.units)}").choice(
                WORKERS_AGAIN
            )
        workers = changed.get("workers", self._workers)
        self.injection.met[f"the operator starts {workers} workers"] += 1
        self._start = Start(
            graph=graph or self.case.graph,
            settings=replace(self.settings, runtime=self.settings.runtime.model_copy(update=changed)),
            options=options,
            backend=backend,
            turn_us_max=self.case.turn_us_max,
        )
        self.start_another()

    def start_another(self) -> None:
        """One more unit like the last."""
        unit = self._another_unit()
        self.chaos.units.append(unit)
        unit.start()

    def _another_unit(self) -> Unit:
        start = self._start
        assert start is not None
        return Unit(
            self.world,
            f"unit{len(self.chaos.units) + 1}",
            lambda name: self._daemon(name, start),
            mend=self.disk.mend,
            ended_well=self._ended_well,
        )

    def _daemon(self, name: str, start: Start) -> Daemon:
        process = SimulatedProcess(self.world, name)
        return Daemon(
            process,
            start,
            disk=self.disk,
            wall=self.wall,
            injection=self.injection,
            trouble=self.chaos.trouble,
            faults=self.chaos.hook,
            local=self.local,
            meeting_place=self.meeting_place,
            worker_ended=self._worker_ended,
        )

    def _worker_ended(self, process: SimulatedProcess) -> None:
        # What fails in an attempt goes to the coordinator, as data: an error that ends the process is none of those.
        if process.error is not None:
            self._loud_workers.append(LoudEnd(process=process.name, error=process.error))

    def _ended_well(self, ended: Daemon) -> None:
        """R17: when a job has ended, its output can be read. Nobody else may be publishing."""
        others = (unit.daemon for unit in self.chaos.units if unit.daemon is not ended)
        if self.chaos.sealed_last is not ended.process or any(o and o.process.alive for o in others):
            return
        seal = DecisionLog(self.directory().log).read_all().newest_seal()
        assert seal is not None
        for step in self.case.graph.steps.values():
            if step.sink is None:
                continue
            reader = self.system_of(step.sink).reader(step.sink)
            targets = [topic for record in seal.sinks if record.sink == step.name for topic in record.targets]
            splits = [split for topic in targets for split in reader.splits(topic)]
            if reader.committed_ends(splits) != reader.ends(splits):
                self.unreadable.append(f"{ended.process.name} ended before all of '{step.name}' can be read")

    def _newest_files(self) -> list[FileNode]:
        """Files of the newest decided checkpoint, as far as they are still there."""
        newest = DecisionLog(self.directory().log).read_all().newest()
        found = []
        for file in newest.files() if newest is not None else ():
            folder, _, name = str(job_folder(ROOT, self.job) / FILES_FOLDER / file.name).rpartition("/")
            try:
                node = self.disk.inner(self.disk.find(folder), name)
            except OSError:
                continue
            if isinstance(node, FileNode):
                found.append(node)
        return found

    # --- input, script, end

    def _feed(self) -> None:
        chance = self.world.chance("feed")
        span_us = max(FEED_MS_MIN, int(self.injection.faults.until_ms * FEED_PART)) * US_PER_MS
        moments = sorted(chance.randrange(span_us) for _ in self.case.inputs)
        if bursts := chance.choice(BURSTS):
            # Many records at a time: only so do barriers stand behind others in their channels.
            at = [chance.randrange(span_us) for _ in range(bursts)]
            moments = sorted(chance.choice(at) for _ in moments)
        for moment_us, record in zip(moments, self.case.inputs, strict=True):
            if moment_us > self.world.now_us:
                self.world.wait_us(moment_us - self.world.now_us)
            self._write(record)
        self.fed = True

    def _write_all(self) -> None:
        for record in self.case.inputs:
            self._write(record)
        self.fed = True

    def _write(self, record: Input) -> None:
        source = self.case.graph.steps[StepName(record.step)].source
        self.system_of(source).append(
            source, record.part, key=record.key, value=record.value, time_ms=record.time_ms
        )

    def _settings(self) -> Settings:
        """The seed's choice of pace and bounds: everything small, so that limits are met."""
        chance, overlap = self.world.chance("settings"), self.world.chance("settings of overlap")
        # Copies with these values: times are milliseconds already, and bounds may be below what an operator may
        # set; with a few small records they would never be met.
        checkpoint = CheckpointSettings().model_copy(
            update={
                "directory": local(ROOT),
                "interval": chance.choice((30, 80, 200, 400, 1_000)),
                "timeout": chance.choice((800, 2_000, 6_000)),
                "min_pause": chance.choice((0, 0, 50)),
                "initial_delay_max": chance.choice((0, 100)),
                "tolerated_failures": chance.choice((0, 2, 5)),
                "retained": chance.choice((2, 3)),
                "publish_timeout": chance.choice((2_000, 5_000, 15_000)),
                "marker_refresh": chance.choice((1_000, 5_000, 60_000)),
                "decision_timeout": chance.choice((500, 3_000)),
                "max_concurrent": overlap.choice((1, 2, 3, 3)),
                "interval_during_backlog": overlap.choice((0, 0, 300)),
                "backlog_after": overlap.choice((20, 200)),
                **self.case.checkpoint,
            }
        )
        runtime = RuntimeSettings().model_copy(
            update={
                "workers": self._workers,
                "parallelism": self.case.parallelism,
                "batch_records_max": chance.choice((1, 3, 20)),
                "channel_batches_max": chance.choice((1, 2, 16)),
                "outbox_bytes_max": chance.choice((600, 4_000, 2**20)),
                "grace_period": 30_000,
                "restart": self._restart(chance.choice((0, 3, 10)), chance.choice((50, 500))),
                "discovery_interval": chance.choice((300, 3_000)),
                "idle_wait": chance.choice((10, 40)),
                **self._of_workers(),
                **self.case.runtime,
            }
        )
        plugins: dict[str, Any] = {name: system.settings for name, system in self.systems.items()}
        return Settings(checkpoint=checkpoint, runtime=runtime, plugins=plugins)

    def _of_workers(self) -> dict[str, Any]:
        chance = self.world.chance("settings of workers")
        return {
            "heartbeat_interval": chance.choice((100, 400)),
            "heartbeat_timeout": chance.choice((1_000, 3_000)),
            "hang_timeout": 8_000,
            "worker_start_timeout": 10_000,
            "channel_bytes_max": chance.choice((1, 300, 2_000)),
            "cluster": self._of_fewer_workers(),
        }

    def _of_fewer_workers(self) -> ClusterSettings:
        """In some runs the job goes on without a worker that has not come yet, which takes part later."""
        chance = self.world.chance("settings of fewer workers")
        if chance.random() >= GOES_ON_WITH_FEWER:
            return ClusterSettings()
        return ClusterSettings().model_copy(
            update={"workers_min": 1, "worker_wait": chance.choice((10, 50, 300))}
        )

    def _restart(self, attempts: int, delay_ms: int) -> RestartSettings:
        strategy = self.world.chance("settings of restarts").choice(
            (
                RestartStrategyName.FIXED_DELAY,
                RestartStrategyName.FIXED_DELAY,
                RestartStrategyName.FAILURE_RATE,
                RestartStrategyName.EXPONENTIAL_DELAY,
            )
        )
        return RestartSettings().model_copy(
            update={
                "strategy": strategy,
                "attempts": attempts,
                "delay": delay_ms,
                "delay_max": 2_000,
                "jitter": 0.5,
                "reset_after": 10_000,
                "failures_max": max(1, attempts),
                "interval": 10_000,
            }
        )
