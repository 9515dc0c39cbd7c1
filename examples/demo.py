"""The demo: counts the words of Python's own sources through Kafka, is killed again and again, and proves that
nothing was lost or counted twice.

    python -m examples.demo [--lines N] [--kills K] [--seed S]
"""

from __future__ import annotations

import argparse
import random
import sysconfig
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.live import Live
from rich.table import Table

from connectors.kafka import dev_broker
from examples.job_process import JobProcess, Reached, reached
from examples.word_count import Line
from processor.audit.report import AuditReport
from processor.cli.job_reference import load_graph
from processor.cli.verify import audit_job
from processor.errors import ProcessorError
from processor.plugins import installed_plugins
from processor.settings.loading import load_settings

REFERENCE = "examples.word_count:build"
JOB = "word-count"
PARTITIONS = 4
LINES_MAX = 240_000
KILLS = 6
KILL_AFTER_S = (1.5, 4.5)
"""From the start of the process: about one second of it is starting."""
FEED_LINES_PER_S = 10_000
DRAIN_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
TOPIC_TIMEOUT_S = 30.0
LOOK_INTERVAL_S = 0.25


@dataclass(slots=True, kw_only=True)
class Progress:
    """What is shown while it runs."""

    lines_in: int = 0
    kills: int = 0
    starts: int = 0
    doing: str = "starting"
    now: Reached = Reached()  # noqa: RUF009 - frozen, and replaced as a whole

    def table(self) -> Table:
        table = Table(title="word count, killed while it runs", title_justify="left", show_header=False)
        table.add_row("now", self.doing)
        table.add_row("lines written to Kafka", f"{self.lines_in:,}")
        table.add_row("lines counted, decided and kept", f"{self.now.records_in:,}")
        table.add_row("checkpoint", str(self.now.checkpoint))
        table.add_row("kills (SIGKILL)", str(self.kills))
        table.add_row("starts", str(self.starts))
        return table


def source_lines(lines_max: int) -> Iterator[Line]:
    """The lines of the standard library's sources on this machine, file by file."""
    library = Path(sysconfig.get_paths()["stdlib"])
    left = lines_max
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library).as_posix()
        if "site-packages" in path.parts or "dist-packages" in path.parts:
            continue
        for number, text in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if left == 0:
                return
            left -= 1
            yield Line(file=name, no=number, text=text)


class Feeder(threading.Thread):
    """Writes lines into the topic at a steady pace, so that there is always some work under way."""

    def __init__(self, bootstrap: str, topic: str, lines_max: int, progress: Progress) -> None:
        super().__init__(name="feeder", daemon=True)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20}
        )
        self._topic = topic
        self._lines_max = lines_max
        self._progress = progress
        self.failure: BaseException | None = None

    def run(self) -> None:
        encode = msgspec.json.Encoder().encode
        began = time.monotonic()
        try:
            for line in source_lines(self._lines_max):
                # By file, so that the lines of a file stay in order.
                self._producer.produce(self._topic, encode(line), key=line.file.encode())
                self._progress.lines_in += 1
                if self._progress.lines_in % 500 == 0:
                    self._producer.poll(0)
                    ahead_s = self._progress.lines_in / FEED_LINES_PER_S - (time.monotonic() - began)
                    if ahead_s > 0:
                        time.sleep(ahead_s)
            if self._producer.flush(TOPIC_TIMEOUT_S):
                raise RuntimeError("some lines could not be written to Kafka")
        except BaseException as failure:
            self.failure = failure


class Demo:
    """One run: topics and a checkpoint directory of its own."""

    def __init__(self, bootstrap: str, folder: Path, chance: random.Random, lines_max: int) -> None:
        run = uuid.uuid4().hex[:8]
        self.lines, self.counts = f"demo-lines-{run}", f"demo-counts-{run}"
        self.checkpoints = folder / "checkpoints"
        self.log = folder / "job.log"
        self.assignments = [
            f"kafka.main.bootstrap_servers={bootstrap}",
            f"kafka.main.topic_map.lines={self.lines}",
            f"kafka.main.topic_map.counts={self.counts}",
            f"kafka.main.marker_topic=demo-markers-{run}",
            f"checkpoint.directory={self.checkpoints}",
            "checkpoint.interval=500ms",
        ]
        options = [word for assignment in self.assignments for word in ("--set", assignment)]
        self.process = JobProcess(["-m", "processor", "run", REFERENCE, *options], self.log)
        self.progress = Progress()
        self._chance = chance
        self._feeder = Feeder(bootstrap, self.lines, lines_max, self.progress)
        make_topics(bootstrap, (self.lines, self.counts))

    def run(self, kills: int, live: Live) -> float:
        """Feed, kill, drain, stop. Returns the seconds from the first start to the end of the work."""
        self._feeder.start()
        began = time.monotonic()
        try:
            for number in range(1, kills + 1):
                self._start(f"running, until it is killed for the {_ordinal(number)} time")
                self._watch(live, self._chance.uniform(*KILL_AFTER_S))
                self.process.kill()
                self.progress.kills += 1
            self._start("running on until everything is counted")
            self._drain(live)
            seconds = time.monotonic() - began
            self.progress.doing = "stopping"
            live.update(self.progress.table())
            code = self.process.stop(STOP_TIMEOUT_S)
            if code != 0:
                raise RuntimeError(f"the job stopped with exit code {code}; it said:\n{self.process.said()}")
            return seconds
        finally:
            self.process.kill()

    def audit(self) -> AuditReport:
        settings = load_settings(
            plugins=installed_plugins().settings_models(), environ={}, assignments=self.assignments
        ).settings
        return audit_job(load_graph(REFERENCE), settings)

    def _start(self, doing: str) -> None:
        self.process.start()
        self.progress.starts += 1
        self.progress.doing = doing

    def _watch(self, live: Live, seconds: float) -> None:
        """Show how it goes for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._look(live)
            time.sleep(min(LOOK_INTERVAL_S, left))

    def _drain(self, live: Live) -> None:
        end = time.monotonic() + DRAIN_TIMEOUT_S
        while True:
            self._look(live)
            done = self.progress.now
            if not self._feeder.is_alive() and done.published and done.records_in >= self.progress.lines_in:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"it was not done after {DRAIN_TIMEOUT_S:.0f} s:\n{self.process.said()}")
            time.sleep(LOOK_INTERVAL_S)

    def _look(self, live: Live) -> None:
        if self._feeder.failure is not None:
            raise self._feeder.failure
        code = self.process.exit_code()
        if code is not None:
            raise RuntimeError(f"the job ended by itself with {code}; it said:\n{self.process.said()}")
        self.progress.now = reached(self.checkpoints, JOB)
        live.update(self.progress.table())


def make_topics(bootstrap: str, names: Sequence[str]) -> None:
    """Topics of this run alone."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in names]
    for made in admin.create_topics(topics, request_timeout=TOPIC_TIMEOUT_S).values():
        made.result(TOPIC_TIMEOUT_S)


def result_table(demo: Demo, report: AuditReport, seconds: float) -> Table:
    words = int(report.figure("1", "found"))
    table = Table(title="what came of it", title_justify="left", show_header=False)
    table.add_row("lines in", f"{int(report.figure('1', 'records in')):,}")
    table.add_row("words counted", f"{words:,}")
    table.add_row("kills", str(demo.progress.kills))
    table.add_row("restarts", str(demo.progress.starts - 1))
    table.add_row("checkpoints", str(reached(demo.checkpoints, JOB).checkpoint))
    table.add_row("losses", f"{int(report.figure('1', 'losses')):,}")
    table.add_row("duplicates", f"{int(report.figure('1', 'duplicates')):,}")
    table.add_row("throughput", f"{words / seconds:,.0f} words/s, kills and restarts included")
    return table


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 <= number % 100 <= 20 else endings.get(number % 10, 'th')}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Counts words, is killed while it does, and proves the result."
    )
    parser.add_argument("--lines", type=int, default=LINES_MAX, help="lines of source to count, at most")
    parser.add_argument("--kills", type=int, default=KILLS, help="how often the job is killed")
    parser.add_argument("--seed", type=int, help="of the moments at which it is killed")
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    console = Console()
    try:
        console.print("looking for a Kafka, or starting one ...")
        bootstrap = dev_broker.up()
        console.print(f"Kafka at {bootstrap}; the moments of the kills come from seed {seed}")
        folder = Path(tempfile.mkdtemp(prefix="processor-demo-"))
        demo = Demo(bootstrap, folder, random.Random(seed), chosen.lines)
        with Live(demo.progress.table(), console=console, refresh_per_second=4) as live:
            seconds = demo.run(chosen.kills, live)
        console.print()
        console.print("auditing: counting again from the input with a plain fold ...")
        report = demo.audit()
    except (ProcessorError, dev_broker.MissingToolError, dev_broker.BrokerStartError, RuntimeError) as failed:
        console.print(f"the demo failed: {failed}", style="red", markup=False)
        return 1
    console.print(report.text(), markup=False, highlight=False, soft_wrap=True)
    console.print(result_table(demo, report, seconds))
    settings = " ".join(f"--set {assignment}" for assignment in demo.assignments)
    console.print(
        f"\nThe job is {REFERENCE}; its checkpoints and its log are in {folder}.\n"
        f"Look at it:   processor checkpoints list {JOB} --set checkpoint.directory={demo.checkpoints}\n"
        f"Go on:        processor run {REFERENCE} {settings}\n"
        "Write a job:  examples/ten_lines.py is one in ten lines\n"
        "Stop Kafka:   make kafka-down\n"
        "(`processor` is in .venv/bin when `make` has set it up)",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    verdict = "exactly once: every word counted, none twice" if report.passed else "THE AUDIT FAILED"
    console.print(f"\n{verdict}", style="bold green" if report.passed else "bold red")
    return 0 if report.passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
