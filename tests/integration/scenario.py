"""One job with topics and checkpoints of its own: fed, run, killed, stopped and audited."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from examples.job_process import JobProcess, Reached, reached_by
from processor.audit.report import AuditReport
from processor.audit.verify import Witness
from processor.cli.job_reference import load_graph
from processor.cli.verify import audit_job
from processor.errors import SettingsError
from processor.ids import JobName, escape_name
from processor.plan.graph import JobGraph
from processor.plugins import installed_plugins
from processor.service.control_client import ControlClient
from processor.service.control_place import control_place, control_root
from processor.settings.loading import load_settings
from processor.settings.model import Settings
from processor.storage.decision_log import DecisionLog
from processor.storage.job_store import open_job_store
from processor.storage.places import places_of
from tests.contracts.kafka_rig import read_committed
from tests.integration import jobs
from tests.integration.command import Said, run_processor
from tests.integration.feeding import FULL_POLL_S, Feeding
from tests.integration.raw_log import transaction_spans
from tests.integration.witness import CommittedWitness
from tests.processes import stands_still
from tests.topics import create_topic
from tests.waiting import wait_until

PARTITIONS_IN = 6
PARTITIONS_OUT = 3
KEYS = 200
JOBS = ("copy", "count")
FEED_BURST = 200
FEED_PAUSE_S = 0.02
OFFSETS_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 120.0
REACH_TIMEOUT_S = 60.0
RUNNING = "running from checkpoint"
"""What the daemon says once it has recovered."""
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@dataclass(slots=True, kw_only=True)
class Scenario:
    """Everything of one run. ``make`` creates the topics."""

    job: str
    backend: str
    parallelism: int
    bootstrap: str
    folder: Path
    topic_in: str
    topic_out: str
    settings: Mapping[str, str] = field(default_factory=dict)
    module: str = "tests.integration.jobs"
    partitions_in: int = PARTITIONS_IN
    partitions_out: int = PARTITIONS_OUT
    more_topics: Mapping[str, str] = field(default_factory=dict)
    """Beside ``in`` and ``out``: the job's name of a topic to its real one."""

    @classmethod
    def make(
        cls,
        bootstrap: str,
        folder: Path,
        *,
        job: str = "count",
        backend: str = "memory",
        parallelism: int = 1,
        settings: Mapping[str, str] | None = None,
        module: str = "tests.integration.jobs",
        partitions_in: int = PARTITIONS_IN,
        partitions_out: int = PARTITIONS_OUT,
        config_out: Mapping[str, str] | None = None,
        more_topics: Sequence[str] = (),
        replicas: int = 1,
    ) -> Self:
        folder.mkdir(parents=True, exist_ok=True)
        return cls(
            job=job,
            backend=backend,
            parallelism=parallelism,
            bootstrap=bootstrap,
            folder=folder,
            topic_in=create_topic(bootstrap, "in", partitions=partitions_in, replicas=replicas),
            topic_out=create_topic(
                bootstrap, "out", partitions=partitions_out, config=config_out, replicas=replicas
            ),
            settings=settings or {},
            module=module,
            partitions_in=partitions_in,
            partitions_out=partitions_out,
            more_topics={name: create_topic(bootstrap, name) for name in more_topics},
        )

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """The same with further settings."""
        return replace(self, settings={**self.settings, **settings})

    def with_job(self, job: str) -> Self:
        """Another job with all of this one's topics and settings."""
        return replace(self, job=job)

    @property
    def reference(self) -> str:
        """The job, as the command line names it."""
        return f"{self.module}:{self.job}"

    @property
    def job_name(self) -> str:
        return self.loaded_graph().name

    @property
    def checkpoints(self) -> Path:
        return Path(self.settings.get("checkpoint.directory", self.folder / "checkpoints"))

    @property
    def marker_topic(self) -> str:
        return f"markers-of-{self.topic_out}"

    @property
    def assignments(self) -> list[str]:
        """Settings as ``--set`` takes them: checkpoints in quick succession, transactions of few rows."""
        chosen = {
            "checkpoint.directory": str(self.checkpoints),
            "checkpoint.interval": "200ms",
            "checkpoint.initial_delay_max": "10ms",
            "state.backend": self.backend,
            "state.directory": str(self.folder / "state"),
            "runtime.parallelism": str(self.parallelism),
            "runtime.restart.strategy": "fixed-delay",
            "runtime.restart.delay": "100ms",
            "kafka.main.bootstrap_servers": self.bootstrap,
            "kafka.main.topic_map.in": self.topic_in,
            "kafka.main.topic_map.out": self.topic_out,
            **{f"kafka.main.topic_map.{name}": topic for name, topic in self.more_topics.items()},
            # A marker topic of its own: runs of one job name do not meet, whatever broker they share.
            "kafka.main.marker_topic": self.marker_topic,
            "kafka.main.publish_rows_max": "300",
            **self.settings,
        }
        return [f"{name}={value}" for name, value in chosen.items()]

    def loaded(self) -> Settings:
        """The same settings, for use in this process."""
        return load_settings(
            plugins=installed_plugins().settings_models(), environ={}, assignments=self.assignments
        ).settings

    @property
    def options(self) -> list[str]:
        """The settings as words of a command line."""
        return [word for assignment in self.assignments for word in ("--set", assignment)]

    def loaded_graph(self) -> JobGraph:
        return load_graph(self.reference)

    def process(self, name: str = "job", *more: str) -> JobProcess:
        """The daemon, not yet started; ``more`` are further words of its command line."""
        command = ["-m", "processor", "run", self.reference, *self.options, *more]
        return JobProcess(command, self.folder / f"{name}.log")

    def process_of(self, words: Sequence[str], name: str) -> JobProcess:
        """Another command of the product, not yet started."""
        return JobProcess(["-m", "processor", *words], self.folder / f"{name}.log")

    def command(self, *words: str, about: str | None = None) -> Said:
        """``processor`` with the settings of this job, which it is told about by reference or name."""
        return run_processor(*words, about or self.reference, *self.options)

    def process_with_fault(self, points: str, act: str) -> JobProcess:
        """The same job, which kills or stops itself at a point; ``fault_flag`` is there from then on."""
        self.fault_flag.unlink(missing_ok=True)
        command = ["-m", "tests.integration.fault_point_job", self.reference, points, act]
        return JobProcess([*command, str(self.fault_flag), *self.assignments], self.fault_log)

    def counters(self) -> dict[str, dict[str, int]]:
        """What the running job has counted, by step."""
        counters: dict[str, dict[str, int]] = self.status()["counters"]
        return counters

    def status(self) -> dict[str, Any]:
        """What ``processor status --json`` of the running job prints, without a process of its own for every look."""
        told: dict[str, Any] = json.loads(msgspec.json.encode(self.control().status()))
        return told

    def failure_of(self, do: Callable[[], None]) -> dict[str, Any]:
        """How the running attempt fails for what is done, as ``status`` tells it."""
        known = len(self.status()["failures"])
        do()
        new: list[dict[str, Any]] = wait_until(
            lambda: self.status()["failures"][: -known or None], REACH_TIMEOUT_S, "the attempt fails"
        )
        return new[-1]  # the newest come first

    @contextmanager
    def running(self, name: str = "job", *words: str) -> Iterator[JobProcess]:
        """The daemon for the time of a with-block: it recovers before that, and is stopped in the end (exit 0),
        unless the block has ended it."""
        process = self.process(name, *words)
        try:
            self.start(process, name)
            yield process
            if process.exit_code() is None:
                assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
        finally:
            process.kill()

    def start(self, process: JobProcess, name: str = "job") -> None:
        """Start a daemon and wait until it has recovered, or has ended."""
        log = self.folder / f"{name}.log"
        begun = log.read_text().count(RUNNING) if log.exists() else 0
        process.start()
        wait_until(
            lambda: process.exit_code() is not None or log.read_text().count(RUNNING) > begun,
            REACH_TIMEOUT_S,
            "it runs",
        )

    def killed_at(self, points: str) -> None:
        """Run the job until it kills itself there."""
        process = self.process_with_fault(points, "kill")
        process.start()
        try:
            code = process.wait(REACH_TIMEOUT_S)
        finally:
            process.kill()
        assert code == -signal.SIGKILL, f"{points} was not reached:\n{process.said()}"

    def stopped_at(self, points: str) -> JobProcess:
        """Run the job until it stands still there, or one of its workers does, if it has several; see ``wake``."""
        process = self.process_with_fault(points, "stop")
        process.start()
        wait_until(
            lambda: self.fault_flag.exists() or process.exit_code() is not None,
            REACH_TIMEOUT_S,
            f"{points} is reached; it said:\n{process.said()}",
        )
        assert process.exit_code() is None, process.said()
        wait_until(lambda: stands_still(self._stopped()), REACH_TIMEOUT_S, "it stands still")
        return process

    def wake(self) -> None:
        """Let who stands still at a point go on."""
        os.kill(self._stopped(), signal.SIGCONT)

    def _stopped(self) -> int:
        return int(self.fault_flag.read_text())

    @property
    def fault_flag(self) -> Path:
        return self.folder / "at-the-point"

    @property
    def fault_log(self) -> Path:
        """All that ``process_with_fault`` says."""
        return self.folder / "fault.log"

    def feed(self, records: int, *, first: int = 0, seed: int = 1, own_keys: bool = False) -> None:
        """Write numbers ``first`` to ``first + records`` of every input partition.

        With ``own_keys`` no two partitions have a key in common, so that every count is known beforehand.
        """
        feeder = Feeder(self.bootstrap, self.topic_in, seed=seed, own_keys=own_keys)
        feeder.next = dict.fromkeys(range(PARTITIONS_IN), first)
        feeder.write(records)
        feeder.flush()

    def drain(self, process: JobProcess) -> None:
        """Wait until everything in the input topic is decided and published."""
        ends = self.input_ends()

        def all_out() -> bool:
            assert process.exit_code() is None, f"the job ended by itself:\n{process.said()}"
            now = self.reached()
            return now.published and all(now.positions.get(split, 0) >= end for split, end in ends.items())

        wait_until(all_out, DRAIN_TIMEOUT_S, f"the input is published; the job said:\n{process.said()}")

    def goes_on(self, process: JobProcess, timeout_s: float = REACH_TIMEOUT_S) -> None:
        """Wait until the newest attempt has published something new."""
        before = self.reached()

        def published() -> bool:
            assert process.exit_code() is None, f"the job ended by itself:\n{process.said()}"
            now = self.reached()
            return now.checkpoint > before.checkpoint + 2 and now.published_by == now.attempts

        try:
            wait_until(published, timeout_s, "it goes on")
        except AssertionError as failed:
            raise AssertionError(f"{failed}; it said:\n{process.said()}") from None

    def control(self) -> ControlClient:
        """The way to the running job, without a process for every question."""
        job = JobName(self.job_name)
        return ControlClient(control_place(control_root(self.loaded()), job), job)

    def log(self) -> DecisionLog:
        """The job's; raises SettingsError before it has one."""
        where = places_of(self.loaded())
        return DecisionLog(
            open_job_store(where, JobName(self.job_name), token=secrets.token_hex, make=False).log
        )

    def reached(self) -> Reached:
        """How far the job has come, by its log; it may be running."""
        try:
            return reached_by(self.log())
        except SettingsError:
            return Reached()

    def input_ends(self) -> dict[str, int]:
        return partition_ends(self.bootstrap, self.topic_in, self.partitions_in)

    def witness(self) -> CommittedWitness:
        return CommittedWitness(self.bootstrap, self.topic_out, self.partitions_out)

    def audit(self, witness: CommittedWitness | None = None) -> list[AuditReport]:
        """All audits of the job, when it has ended; a count is looked at as a sequence too."""
        spans = [
            span
            for number in range(self.partitions_out)
            for span in transaction_spans(self.bootstrap, self.topic_out, number)
        ]
        seen = Witness(spans=spans, samples=() if witness is None else witness.samples)
        graph, settings = self.loaded_graph(), self.loaded()
        reports = [audit_job(graph, settings, witness=seen)]
        if self.job == "count":
            reports.append(audit_job(graph, settings, audit=jobs.kept_in_order(), witness=seen))
        if witness is not None:
            found = reports[0].figure("1", "found")
            assert witness.records == found, f"the witness saw {witness.records} records, the audit {found}"
            assert witness.seen_twice == 0, f"the witness saw {witness.seen_twice} records twice"
        return reports

    def put(
        self,
        values: Iterable[bytes | None],
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Write these values into one partition of the input, in order."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True})
        for value in values:
            while True:
                try:
                    producer.produce(
                        self.topic_in, value, key=key, partition=partition, headers=list(headers)
                    )
                    break
                except BufferError:
                    producer.poll(FULL_POLL_S)
        assert not producer.flush(OFFSETS_TIMEOUT_S)

    def records_out(self, topic: str | None = None) -> list[Any]:
        """All committed records of the output, or of another topic of one partition."""
        return read_committed(
            self.bootstrap, topic or self.topic_out, 1 if topic is not None else self.partitions_out
        )

    def check(self, witness: CommittedWitness | None = None) -> list[AuditReport]:
        """Audit, and fail with the whole report when anything is wrong."""
        reports = self.audit(witness)
        for report in reports:
            assert report.passed, report.text()
        open_ = self.open_transactions()
        assert not open_, f"transactions left open: {open_}"
        return reports

    def finish(self, process: JobProcess, witness: CommittedWitness | None = None) -> list[AuditReport]:
        """Everything comes out, the job is stopped and exits 0, the audit passes."""
        try:
            self.drain(process)
            assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
        finally:
            process.kill()
            if witness is not None:
                witness.stop()
        return self.check(witness)

    def open_transactions(self) -> list[str]:
        return open_transactions(self.bootstrap, self.job_name)


def partition_ends(bootstrap: str, topic: str, partitions: int) -> dict[str, int]:
    """The offset behind the last record of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        return {
            f"{topic}/{number}": consumer.get_watermark_offsets(
                TopicPartition(topic, number), OFFSETS_TIMEOUT_S
            )[1]
            for number in range(partitions)
        }
    finally:
        consumer.close()


def open_transactions(bootstrap: str, job: str) -> list[str]:
    """Asked of the broker: transactional ids of a job whose transaction has not ended."""
    prefix = f"{escape_name(job)}."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own use of importlib
        from kafka.admin import KafkaAdminClient
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        listed = admin.list_transactions(state_filters=list(OPEN_STATES))
    finally:
        admin.close()
    return [
        str(listing.transactional_id)
        for listings in listed.values()
        for listing in listings
        if str(listing.transactional_id).startswith(prefix)
    ]


class Feeder(Feeding):
    """Writes numbered records into every input partition; as a thread between ``start`` and ``stop``."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        seed: int,
        own_keys: bool = False,
        pause_s: float = FEED_PAUSE_S,
    ) -> None:
        super().__init__(bootstrap, pause_s=pause_s)
        self._topic = topic
        self._own_keys = own_keys
        self._random = random.Random(seed)
        self.next = dict.fromkeys(range(PARTITIONS_IN), 0)

    def write(self, records: int) -> None:
        """So many records into each partition."""
        for _ in range(records):
            for partition, number in self.next.items():
                key = self._random.randrange(KEYS) + (partition * KEYS if self._own_keys else 0)
                value = json.dumps({"p": partition, "s": number, "k": key}).encode()
                self.produce(self._topic, value, partition=partition)
                self.next[partition] = number + 1
            self.producer.poll(0)

    def burst(self) -> None:
        self.write(FEED_BURST // PARTITIONS_IN)


def spread(count: int, chance: random.Random) -> Sequence[tuple[str, str, int, int]]:
    """(job, backend, parallelism, kills) of each run: all combinations, the kills as evenly as they go."""
    combinations = [(job, backend, p) for job in JOBS for backend in ("memory", "rocksdb") for p in (1, 3)]
    chance.shuffle(combinations)
    each, more = divmod(count, len(combinations))
    kills = [each + (number < more) for number in range(len(combinations))]
    return [(*combination, n) for combination, n in zip(combinations, kills, strict=True) if n]
