"""A job whose workers come by themselves, over TCP: whoever of them is killed, nothing is lost or doubled."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.kafka.dev_server import free_ports
from examples.job_process import JobProcess
from processor.channels.credentials import SECRET_CHARS_MIN
from tests.integration.scenario import REACH_TIMEOUT_S, STOP_TIMEOUT_S, Feeder, Scenario
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.kill]

WORKERS = 2
FEED_PAUSE_S = 0.2


class Cluster:
    """A coordinator, and more workers than it needs, each a process that the test starts."""

    def __init__(self, scenario: Scenario, workers: int) -> None:
        secret = scenario.folder / "secret"
        secret.write_text(secrets.token_hex(SECRET_CHARS_MIN))
        self.scenario = scenario.with_settings(
            {
                "runtime.workers": str(WORKERS),
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
        """Waits until the newest attempt has published something new."""
        before = self.scenario.reached()

        def published() -> bool:
            assert self.coordinator.exit_code() is None, self.coordinator.said()
            now = self.scenario.reached()
            return now.checkpoint > before.checkpoint + 2 and now.published_by == now.attempts

        wait_until(published, REACH_TIMEOUT_S, f"it goes on; it said:\n{self.coordinator.said()}")


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[Cluster]:
    settings = {"runtime.restart.attempts": "100"}
    made = Cluster(Scenario.make(kafka, tmp_path, job="count", parallelism=2, settings=settings), WORKERS + 1)
    yield made
    made.kill()


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
    scenario.drain(cluster.coordinator)
    assert cluster.coordinator.stop(STOP_TIMEOUT_S) == 0, cluster.coordinator.said()
    for worker in cluster.workers:
        assert worker.stop(STOP_TIMEOUT_S) == 0, worker.said()
    for report in scenario.audit():
        assert report.passed, report.text()
