"""One job of the simulation on a real broker, with topics and checkpoints of its own: run and audited."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Self

from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from examples.job_process import JobProcess, reached
from processor.audit.report import AuditReport
from processor.audit.verify import Witness
from processor.cli.verify import audit_job
from processor.plan.graph import Step
from processor.plugins import installed_plugins
from processor.settings.loading import load_settings
from processor.settings.model import Settings
from processor.simulation.case import PARTS, Case
from tests.integration.case_feeder import CaseFeeder
from tests.integration.case_job import CASE, NO_SHAPE
from tests.integration.command import Said, run_processor
from tests.integration.raw_log import transaction_spans
from tests.integration.scenario import (
    DRAIN_TIMEOUT_S,
    REACH_TIMEOUT_S,
    RUNNING,
    open_transactions,
    partition_ends,
)
from tests.integration.simulated_jobs import case_of
from tests.integration.witness import CommittedWitness
from tests.integration.worker_kills import SETTINGS as OF_WORKERS
from tests.simulation.jobs import parts_of
from tests.simulation.shape import Shape
from tests.topics import create_topic
from tests.waiting import wait_until

CHECKPOINT_INTERVAL_MS = 200
DURATIONS = ("checkpoint.alignment_timeout", "checkpoint.timeout")
DRAINED = ("drain", "collect", "every-state")
"""Jobs of which nothing, or not all, comes out before they are drained."""
RECORDS_TO_THE_END = 20_000
"""Of a job that ends by itself: work of several seconds, and of several starts."""
SETTLE_CHECKPOINTS = 8
"""After all input is out: more than a second, in which the last timers come."""


@dataclass(slots=True, kw_only=True)
class CaseRun:
    """Everything of one run. ``make`` creates the topics."""

    name: str
    seed: int
    case: Case
    bootstrap: str
    folder: Path
    topics: Mapping[str, str]
    """The job's name of a topic to its real one."""
    parallelism: int
    backend: str = "memory"
    shape: Shape | None = None
    """How its steps are laid out, if not by themselves."""
    origin: str | None = None
    workers: int = 1
    process: JobProcess = field(init=False)
    _feeder: CaseFeeder = field(init=False)
    _starts: int = 0

    def __post_init__(self) -> None:
        self.process = self._process()

    @classmethod
    def make(
        cls, bootstrap: str, folder: Path, name: str, seed: int, *, backend: str = "memory", workers: int = 1
    ) -> Self:
        case = case_of(name, seed)
        topics = {
            written: create_topic(bootstrap, f"{name}-{written}", partitions=case.parts.get(step.name, PARTS))
            for step in case.graph.steps.values()
            if (written := topic_of(step)) is not None
        }
        return cls(
            name=name,
            seed=seed,
            case=case,
            bootstrap=bootstrap,
            folder=folder,
            topics=topics,
            parallelism=case.parallelism,
            backend=backend,
            workers=workers,
        )

    # --- what is around it

    @property
    def kind(self) -> str:
        """What is special about how it is run; the same with barriers that overtake."""
        return self.name.removesuffix("-overtaken")

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def assignments(self) -> list[str]:
        """Settings as ``--set`` takes them: checkpoints in quick succession, transactions of few rows."""
        chosen = {
            "checkpoint.directory": str(self.checkpoints),
            "checkpoint.interval": f"{CHECKPOINT_INTERVAL_MS}ms",
            "checkpoint.initial_delay_max": "10ms",
            "state.backend": self.backend,
            "state.directory": str(self.folder / "state"),
            "runtime.workers": str(self.workers),
            "runtime.parallelism": str(self.parallelism),
            "runtime.restart.strategy": "fixed-delay",
            "runtime.restart.delay": "100ms",
            "runtime.discovery_interval": "500ms",
            "kafka.main.bootstrap_servers": self.bootstrap,
            **{f"kafka.main.topic_map.{written}": real for written, real in self.topics.items()},
            "kafka.main.marker_topic": f"markers-of-{self.topics['out']}",
            "kafka.main.publish_rows_max": "300",
            **(OF_WORKERS if self.workers > 1 else {}),
            **self._of_the_case(),
        }
        return [f"{name}={value}" for name, value in chosen.items()]

    @contextmanager
    def fed_and_watched(self, chance: Random) -> Iterator[dict[str, CommittedWitness]]:
        """Input is written all the time, or all of it before; every sink step's output has a witness. In the end the
        job is gone."""
        by_step = {str(step.name): self._real(step) for step in self._steps("source")}
        self._feeder = CaseFeeder(self.bootstrap, self.case, by_step, Random(chance.random()))
        witnesses = {
            str(step.name): CommittedWitness(self.bootstrap, self._real(step), self._parts(step))
            for step in self._steps("sink")
        }
        for witness in witnesses.values():
            witness.start()
        try:
            if self.case.input_first:
                self._feeder.write(RECORDS_TO_THE_END)
                self._feeder.flush()
            else:
                self._feeder.start()
            yield witnesses
        finally:
            self.process.kill()
            self._feeder.stop()
            for witness in witnesses.values():
                witness.stop()

    # --- what is done to it

    def start(self) -> None:
        """As it was started last; from another origin or with another parallelism if those were changed."""
        self._starts += 1
        self.process = self._process()
        shape = NO_SHAPE if self.shape is None else str(self.shape)
        self.process.start({CASE: f"{self.name} {self.seed} {shape}"})

    def there(self) -> bool:
        """Whether its process runs, or that of its coordinator."""
        return self.process.started and self.process.exit_code() is None

    def running(self) -> bool:
        """Whether it has recovered, or ended."""
        return RUNNING in self.process.said() or self.process.exit_code() is not None

    def shaped(self, shape: Shape) -> None:
        """From the next start on."""
        self.shape, self.backend = shape, shape.backend

    def stop_with_savepoint(self, form: str = "canonical") -> None:
        """Stop it, and go on from there later."""
        wait_until(self.running, REACH_TIMEOUT_S, f"it runs:\n{self.process.said()}")
        savepoint = self.folder / "savepoint"
        self._stopped("--savepoint", str(savepoint), "--format", form)
        assert self.process.wait(REACH_TIMEOUT_S) == 0, self.process.said()
        self.origin = str(savepoint)

    def drain(self) -> None:
        """Wait until everything in the input topics is decided and published, and the last timers have come."""
        ends = {
            split: end
            for step in self._steps("source")
            for split, end in partition_ends(
                self.bootstrap, self._real(step), parts_of(self.case, step.name)
            ).items()
        }

        def all_out() -> int:
            assert self.process.exit_code() is None, f"it ended by itself:\n{self.process.said()}"
            now = reached(self.checkpoints, self.case.graph.name)
            out = now.published and all(now.positions.get(split, 0) >= end for split, end in ends.items())
            return now.checkpoint if out else 0

        what = f"the input is published; it said:\n{self.process.said()}"
        drained = wait_until(all_out, DRAIN_TIMEOUT_S, what)
        wait_until(lambda: all_out() >= drained + SETTLE_CHECKPOINTS, DRAIN_TIMEOUT_S, what)

    def finish(self) -> None:
        """Let it read everything, and stop it; or wait until it ends by itself."""
        if not self.case.input_first:
            self._feeder.stop()
            self.drain()
            if self.kind in DRAINED:
                self._stopped("--drain")
            else:
                self.process.signal(signal.SIGTERM)
        code = self.process.wait(DRAIN_TIMEOUT_S)
        assert code == 0, f"the job ended with exit code {code}"

    # --- what is left of it

    def audit(self, witnesses: Mapping[str, CommittedWitness]) -> list[AuditReport]:
        """One report for each audit of the case, when it has ended; of every sink the transactions."""
        reports = []
        for audit in self.case.audits:
            [sink] = [step for step in self._steps("sink") if audit.sink in (None, step.name)]
            spans = [
                span
                for number in range(self._parts(sink))
                for span in transaction_spans(self.bootstrap, self._real(sink), number)
            ]
            witness = witnesses[sink.name]
            seen = Witness(spans=spans, samples=witness.samples)
            report = audit_job(self.case.graph, self._settings(), audit=audit, witness=seen)
            found = report.figure("1", "found")
            assert witness.records == found, f"the witness saw {witness.records} records, the audit {found}"
            assert witness.seen_twice == 0, f"the witness saw {witness.seen_twice} records twice"
            reports.append(report)
        open_ = open_transactions(self.bootstrap, self.case.graph.name)
        assert not open_, f"transactions left open: {open_}"
        return reports

    # --- parts

    def _of_the_case(self) -> dict[str, str]:
        """Settings that are the case's own choice; but batches are as large as a broker's input asks for."""
        chosen = {f"checkpoint.{name}": value for name, value in self.case.checkpoint.items()}
        chosen |= {f"runtime.{name}": value for name, value in self.case.runtime.items()}
        chosen.pop("runtime.batch_records_max", None)
        return {
            name: f"{value}ms" if name in DURATIONS else str(value).lower() for name, value in chosen.items()
        }

    @property
    def _options(self) -> list[str]:
        """The settings as words of a command line."""
        return [word for assignment in self.assignments for word in ("--set", assignment)]

    def _stopped(self, *how: str) -> None:
        said: Said = run_processor("stop", *how, str(self.case.graph.name), *self._options)
        assert said.code == 0, f"{said}\n{self.process.said()}"

    def _process(self) -> JobProcess:
        command = ["-m", "processor", "run", "tests.integration.case_job:build", *self._options]
        if self.origin is not None:
            command += ["--from", self.origin]
        return JobProcess(command, self.folder / f"start-{self._starts}.log")

    def _settings(self) -> Settings:
        return load_settings(
            plugins=installed_plugins().settings_models(), environ={}, assignments=self.assignments
        ).settings

    def _steps(self, kind: str) -> list[Step]:
        return [step for step in self.case.graph.steps.values() if getattr(step, kind) is not None]

    def _real(self, step: Step) -> str:
        written = topic_of(step)
        assert written is not None
        return self.topics[written]

    def _parts(self, step: Step) -> int:
        return self.case.parts.get(step.name, PARTS)


def topic_of(step: Step) -> str | None:
    """The topic that a step reads or writes, as the job calls it; None for a step between."""
    match step.source or step.sink:
        case KafkaSource() as source:
            assert isinstance(source._topics, str)
            return source._topics
        case KafkaSink() as sink:
            return sink._topic
        case _:
            return None
