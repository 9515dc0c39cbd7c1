"""A job on a Ray cluster of several nodes: nodes are lost on the way, and no record is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.job_process import JobProcess
from tests.integration import jobs
from tests.integration.ray_nodes import RayNodes, ray_nodes
from tests.integration.scenario import STOP_TIMEOUT_S, Feeder, Scenario
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

NODES = 3
WORKERS = 2
CPUS = 3.0
"""Of each node: one that is left has room for the whole job."""
GOES_ON_S = 120.0
FEED_PAUSE_S = 0.2
MODULE = "shipped_jobs"


class RayJob:
    """The job, started by a driver that is on no node. Its module is in a folder that no node has: Ray brings it."""

    def __init__(self, scenario: Scenario, nodes: RayNodes, sources: Path) -> None:
        self.scenario, self.nodes = scenario, nodes
        self.driver: JobProcess = scenario.process("driver", "--cluster", nodes.address)
        self._environment = {"PYTHONPATH": str(sources), **nodes.environment}

    def start(self) -> None:
        self.driver.start(self._environment)
        self.goes_on()

    def goes_on(self) -> None:
        self.scenario.goes_on(self.driver, GOES_ON_S)


@pytest.fixture
def job(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayJob]:
    sources = tmp_path / "sources"
    sources.mkdir()
    shutil.copy(jobs.__file__, sources / f"{MODULE}.py")
    monkeypatch.syspath_prepend(sources)  # for the audit
    settings = {
        "runtime.workers": str(WORKERS),
        "runtime.restart.attempts": "1000",
        "runtime.cluster.shared_directory": "true",
        "runtime.cluster.ray.working_directory": str(sources),
    }
    scenario = Scenario.make(
        kafka, tmp_path / "job", job="count", parallelism=2, settings=settings, module=MODULE
    )
    with ray_nodes(NODES, CPUS) as nodes:
        made = RayJob(scenario, nodes, sources)
        yield made
        made.driver.kill()


@pytest.mark.kill(2)
def test_g4_r29_two_of_three_nodes_are_lost_and_nothing_is_lost_or_doubled(job: RayJob):
    scenario, nodes = job.scenario, job.nodes
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=1, pause_s=FEED_PAUSE_S)
    feeder.start()
    job.start()
    [coordinators, workers] = nodes.with_process("run"), nodes.with_process("worker")
    assert len(coordinators) == 1
    beside = [node for node in workers if node not in coordinators]
    assert beside, "workers are spread over nodes"
    attempts = scenario.reached().attempts
    nodes.kill(beside[0])
    job.goes_on()
    assert scenario.reached().attempts > attempts
    attempts = scenario.reached().attempts
    [coordinator] = nodes.with_process("run")
    nodes.kill(coordinator)
    job.goes_on()
    assert scenario.reached().attempts > attempts
    feeder.stop()
    scenario.drain(job.driver)
    assert job.driver.stop(STOP_TIMEOUT_S) == 0, job.driver.said()
    wait_until(
        lambda: not nodes.with_process("worker") and not nodes.with_process("run"),
        GOES_ON_S,
        "no process of the job is left on a node",
    )
    for report in scenario.audit():
        assert report.passed, report.text()
