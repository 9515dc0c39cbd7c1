"""A job whose workers come by themselves, over TCP: whoever of them is killed, nothing is lost or doubled."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from connectors.kafka.dev_server import free_ports
from examples.job_process import JobProcess
from processor.channels.credentials import SECRET_CHARS_MIN
from processor.errors import AttemptFailed
from processor.ids import JobName
from processor.storage.decision_log import DecisionLog
from processor.storage.job_store import open_job_store
from processor.storage.places import places_of
from tests.integration.broken_connections import Break, break_connection, tcp_between, workers_named
from tests.integration.scenario import REACH_TIMEOUT_S, STOP_TIMEOUT_S, Feeder, Scenario
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

WORKERS = 2
FEED_PAUSE_S = 0.2
JOINED = re.compile(r"joined the coordinator.* worker=(\d+)")
RESCALED = (1, 4, 3)
"""Fewer subtasks than workers, and more."""


class Cluster:
    """A coordinator, and more workers than it needs, each a process that the test starts."""

    def __init__(self, scenario: Scenario, workers: int, wanted: int = WORKERS) -> None:
        secret = scenario.folder / "secret"
        secret.write_text(secrets.token_hex(SECRET_CHARS_MIN))
        self.scenario = scenario.with_settings(
            {
                "runtime.workers": str(wanted),
                "runtime.cluster.workers": "joining",
                "runtime.cluster.listen": f"tcp:127.0.0.1:{free_ports(1)[0]}",
                "runtime.cluster.shared_directory": "true",
                "runtime.cluster.secret_file": str(secret),
            }
        )
        self.coordinator = self.scenario.process("coordinator")
        self.workers = [self._worker(number) for number in range(workers)]

    def _worker(self, number: int) -> JobProcess:
        coordinator = self.scenario.settings["runtime.cluster.listen"]
        words = ["worker", self.scenario.reference, "--coordinator", coordinator]
        return self.scenario.process_of([*words, *self.scenario.options], f"worker-{number}")

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        self.scenario.start(self.coordinator, "coordinator")

    def kill(self) -> None:
        for process in (self.coordinator, *self.workers):
            process.kill()

    def goes_on(self) -> None:
        self.scenario.goes_on(self.coordinator)

    def number(self, worker: JobProcess) -> int:
        """As which worker it joined last."""
        log = (self.scenario.folder / f"worker-{self.workers.index(worker)}.log").read_text()
        return int(JOINED.findall(log)[-1])

    def parallelism(self) -> int:
        """Subtasks of every step, in the newest decided checkpoint."""
        places, name = places_of(self.scenario.loaded()), JobName(self.scenario.job_name)
        log = DecisionLog(open_job_store(places, name, token=secrets.token_hex, make=False).log)
        newest = log.read_all().newest()
        assert newest is not None
        (number,) = set(Counter(entry.subtask.chain for entry in newest.subtasks).values())
        return number

    def finish(self) -> None:
        """Everything comes out, all processes end by themselves, the audit passes."""
        self.scenario.drain(self.coordinator)
        assert self.coordinator.stop(STOP_TIMEOUT_S) == 0, self.coordinator.said()
        for worker in self.workers:
            assert worker.stop(STOP_TIMEOUT_S) == 0, worker.said()
        for report in self.scenario.audit():
            assert report.passed, report.text()


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[Cluster]:
    settings = {"runtime.restart.attempts": "100"}
    made = Cluster(Scenario.make(kafka, tmp_path, job="count", parallelism=2, settings=settings), WORKERS + 1)
    yield made
    made.kill()


@pytest.mark.kill(3)
def test_r01_r21_workers_and_coordinator_are_killed_and_nothing_is_lost_or_doubled(cluster: Cluster):
    scenario = cluster.scenario
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=1, pause_s=FEED_PAUSE_S)
    feeder.start()
    cluster.start()
    cluster.goes_on()
    for killed in cluster.workers[:2]:  # of three: one of these was no spare one
        killed.kill()
        killed.start()
        cluster.goes_on()
    attempts = scenario.reached().attempts
    assert attempts > 1
    cluster.coordinator.kill()
    scenario.start(cluster.coordinator, "coordinator")
    cluster.goes_on()
    assert [worker.exit_code() for worker in cluster.workers] == [None] * 3, "they have come by themselves"
    assert scenario.reached().attempts > attempts
    feeder.stop()
    cluster.finish()


def test_d05_workers_that_come_are_rescaled_under_load_and_a_spare_one_takes_part_as_it_is_then(
    cluster: Cluster,
):
    scenario = cluster.scenario
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=2, pause_s=FEED_PAUSE_S)
    feeder.start()
    cluster.start()
    for parallelism in RESCALED:
        said = scenario.command("rescale", "--parallelism", str(parallelism), about=scenario.job_name)
        assert said.code == 0, said
    assert scenario.status()["restarts"] == 0
    # It runs so, and its first checkpoint is to come.
    wait_until(lambda: cluster.parallelism() == RESCALED[-1], REACH_TIMEOUT_S, "it is kept as it runs")
    left = next(worker for worker in cluster.workers if "joined the coordinator" in worker.said())
    assert left.stop(STOP_TIMEOUT_S) == 0, left.said()
    cluster.goes_on()
    assert scenario.status()["restarts"] > 0
    assert cluster.parallelism() == RESCALED[-1], "an attempt after a failure has what was asked for"
    feeder.stop()
    cluster.finish()


FEWER_WILL_DO = {
    "runtime.cluster.workers_min": "1",
    "runtime.cluster.worker_wait": "500ms",
    "runtime.restart.attempts": "100",
}


@pytest.mark.kill(2)
def test_d05_g4_a_job_runs_on_the_workers_there_are(kafka: str, tmp_path: Path):
    """One of three, then all of them, then one again; and three are more than there is work for."""
    scenario = Scenario.make(kafka, tmp_path, job="count", parallelism=2, settings=FEWER_WILL_DO)
    cluster = Cluster(scenario, 3, wanted=3)
    scenario = cluster.scenario
    first, *others = cluster.workers
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=1, pause_s=2 * FEED_PAUSE_S)
    try:
        feeder.start()
        first.start()
        scenario.start(cluster.coordinator, "coordinator")
        cluster.goes_on()
        attempts = scenario.reached().attempts
        for worker in others:
            worker.start()
        wait_until(lambda: scenario.reached().attempts > attempts, REACH_TIMEOUT_S, "it is dealt out anew")
        cluster.goes_on()
        for worker in others:
            worker.kill()
        attempts = scenario.reached().attempts
        wait_until(lambda: scenario.reached().attempts > attempts, REACH_TIMEOUT_S, "it misses them")
        cluster.goes_on()
        feeder.stop()
        scenario.drain(cluster.coordinator)
        assert cluster.coordinator.stop(STOP_TIMEOUT_S) == 0, cluster.coordinator.said()
        assert first.stop(STOP_TIMEOUT_S) == 0, first.said()
    finally:
        cluster.kill()
    said = (scenario.folder / "coordinator.log").read_text()
    assert "more workers have come" in said
    assert said.count("goes on without all workers") >= 2
    for report in scenario.audit():
        assert report.passed, report.text()


def test_d01_d05_r21_connections_of_processes_that_live_on_break_and_nothing_is_lost_or_doubled(
    kafka: str, tmp_path: Path
):
    """Between two workers, and between one and the coordinator: each ended, then reset, in one run."""
    settings = {"runtime.restart.attempts": "100"}
    made = Scenario.make(kafka, tmp_path, job="count", parallelism=3, settings=settings)
    cluster = Cluster(made, 3, wanted=3)
    scenario, (one, other, third) = cluster.scenario, cluster.workers
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=1, pause_s=FEED_PAUSE_S)
    feeder.start()
    try:
        cluster.start()
        for how in Break:
            cluster.goes_on()
            between_workers = partial(break_connection, one.pid, tcp_between(one.pid, other.pid), how)
            failure = scenario.failure_of(between_workers)
            assert failure["error"] == AttemptFailed.__name__
            assert workers_named(failure) == {cluster.number(one), cluster.number(other)}, failure

            cluster.goes_on()
            number, coordinator = cluster.number(third), cluster.coordinator.pid
            control = partial(break_connection, coordinator, tcp_between(coordinator, third.pid), how)
            failure = scenario.failure_of(control)
            assert number in workers_named(failure), failure
            cluster.goes_on()
            assert cluster.number(third) == number, "it has come again"
        assert scenario.status()["restarts"] == 2 * len(Break)
        assert [worker.exit_code() for worker in cluster.workers] == [None] * 3
        feeder.stop()
        cluster.finish()
    finally:
        feeder.halt()
        cluster.kill()
