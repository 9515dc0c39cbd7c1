"""A process and a topic watched from outside: when it begins, when its last result can be read, what it takes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from examples.job_process import reached
from processor.contracts.topic_reader import TopicReader
from tests.performance.raw_loop import DONE, RUNNING
from tests.performance.workloads import Workload
from tests.processes import family
from tests.waiting import wait_until

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
BEGIN_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one run, from the moment it begins to read until its last result can be read."""

    seconds: float
    cpu_s: float
    """Of the process and all that it has started; the broker's are apart."""
    peak_rss_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One engine is to bring ``records`` of a workload from topic to topic."""

    workload: Workload
    bootstrap: str
    source: str
    target: str
    reader: TopicReader
    records: int
    deadline_s: float

    def all_visible(self) -> bool:
        """No transaction holds back a reader of committed records."""
        splits = self.reader.splits(self.target)
        ends = self.reader.ends(splits)
        return sum(ends.values()) >= self.records and self.reader.committed_ends(splits) == ends


class Run:
    """One process under watch. ``begun`` is a text in what it says, from which on it counts."""

    def __init__(self, command: Sequence[str], begun: str) -> None:
        self._begun = threading.Event()
        self._said: list[str] = []
        self._mark = begun
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started = 0.0
        self._cpu_before = 0.0
        threading.Thread(target=self._listen, daemon=True).start()

    def measure(self, all_out: Callable[[], bool], deadline_s: float) -> Measured:
        """Wait until it begins, then until everything is out; then stop it, if it does not end by itself."""
        try:
            wait_until(self._has_begun, BEGIN_TIMEOUT_S, "the process begins to read")
            wait_until(all_out, deadline_s, "every result can be read")
            seconds = time.monotonic() - self._started
            cpu_s = _cpu_s(self._process.pid) - self._cpu_before
            peak = _peak_rss_mib(self._process.pid)
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGTERM)
            code = self._process.wait(STOP_TIMEOUT_S)
            if code != 0:
                raise RuntimeError(f"exit code {code}; it said:\n{''.join(self._said[-40:])}")
            return Measured(seconds=seconds, cpu_s=cpu_s, peak_rss_mib=peak)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def has_said(self, text: str) -> bool:
        """Raises RuntimeError when the process has ended without."""
        said = any(text in line for line in self._said)
        if not said and self._process.poll() is not None:
            raise RuntimeError(f"it ended before its time; it said:\n{''.join(self._said[-40:])}")
        return said

    def _has_begun(self) -> bool:
        if self._process.poll() is not None and not self._begun.is_set():
            raise RuntimeError(f"it ended at once; it said:\n{''.join(self._said[-40:])}")
        return self._begun.is_set()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line)
            if not self._begun.is_set() and self._mark in line:
                self._started = time.monotonic()
                self._cpu_before = _cpu_s(self._process.pid)
                self._begun.set()


def run_raw(bench: Bench) -> Measured:
    """The plain client loop."""
    places = [bench.bootstrap, bench.source, bench.target, str(bench.records)]
    run = Run(["-m", "tests.performance.raw_loop", bench.workload.name, *places], RUNNING)
    return run.measure(lambda: run.has_said(DONE) and bench.all_visible(), bench.deadline_s)


def run_ours(bench: Bench, settings: Mapping[str, str]) -> Measured:
    """The product, as a user starts it."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    chosen = {
        "kafka.main.bootstrap_servers": bench.bootstrap,
        f"kafka.main.topic_map.{bench.workload.source}": bench.source,
        f"kafka.main.topic_map.{bench.workload.target}": bench.target,
        "kafka.main.marker_topic": f"markers-of-{bench.target}",
        "checkpoint.directory": str(folder / "checkpoints"),
        "state.directory": str(folder / "state"),
        **settings,
    }
    options = [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]

    def all_published() -> bool:
        now = reached(folder / "checkpoints", bench.workload.job_name)
        return now.published and now.records_in >= bench.records and bench.all_visible()

    try:
        run = Run(["-m", "processor", "run", bench.workload.job, *options], "running from checkpoint")
        return run.measure(all_published, bench.deadline_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _cpu_s(pid: int) -> float:
    """User and system time of a process, and of all that it has started."""
    ticks = 0
    for process in family(pid):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(int(fields[i]) for i in (11, 12, 13, 14))
    return ticks / CLOCK_TICKS


def _peak_rss_mib(pid: int) -> float:
    """Of a process and of all that it has started, each at its own peak."""
    return sum(
        int(line.split()[1]) / 1_024
        for process in family(pid)
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    )
