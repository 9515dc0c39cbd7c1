"""The commands of docker/kubernetes, run as its pods would run them: without Kubernetes, as plain processes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.kafka.dev_server import free_ports
from examples.job_process import JobProcess
from processor.channels.credentials import SECRET_CHARS_MIN
from processor.ids import CheckpointId
from tests.integration.command import COMMAND_TIMEOUT_S
from tests.integration.scenario import REACH_TIMEOUT_S, RUNNING, STOP_TIMEOUT_S, Scenario
from tests.manifests.pods import SETTINGS, Container, container, manifest
from tests.waiting import wait_until

pytestmark = pytest.mark.kafka

WORKERS = 2


class Pods:
    """A coordinator and two workers. What differs from a cluster: addresses, paths, and where the job is."""

    def __init__(self, scenario: Scenario) -> None:
        secret = scenario.folder / "joining-secret"
        secret.write_text(secrets.token_hex(SECRET_CHARS_MIN))
        self.scenario = scenario.with_settings(
            {
                "runtime.workers": str(WORKERS),
                "runtime.cluster.secret_file": str(secret),
                "runtime.cluster.shared_directory": "true",
            }
        )
        joining, *channels = free_ports(1 + WORKERS)
        self._replaced = {
            "/etc/processor/settings/settings.yaml": str(SETTINGS),
            manifest("Service", "coordinator")["metadata"]["name"]: "127.0.0.1",
            ":7070": f":{joining}",
        }
        self._environment = {
            **{f"PROCESSOR__{name.upper().replace('.', '__')}": value for name, value in self._assigned()},
            "JOB": scenario.reference,
            "JOB_NAME": scenario.job_name,
            "SAVEPOINTS": str(scenario.folder / "savepoints"),
        }
        self.of_coordinator = self._container("coordinator")
        self.coordinator = self.process(self.of_coordinator.arguments, "coordinator")
        self.workers = [
            self.process(self._container("worker").arguments, f"worker-{number}", {":7071": f":{port}"})
            for number, port in enumerate(channels)
        ]

    def _assigned(self) -> Iterator[tuple[str, str]]:
        for assignment in self.scenario.assignments:
            name, _, value = assignment.partition("=")
            yield name, value

    def _container(self, component: str) -> Container:
        found = container(component)
        return replace(found, environment={**found.environment, **self._environment})

    def process(
        self, arguments: Sequence[str], name: str, replaced: Mapping[str, str] | None = None
    ) -> JobProcess:
        words = list(arguments)
        for there, here in {**self._replaced, **(replaced or {})}.items():
            words = [word.replace(there, here) for word in words]
        return self.scenario.process_of(words, name)

    def start(self, process: JobProcess) -> None:
        process.start(self._environment)

    def execute(self, arguments: Sequence[str], name: str) -> tuple[int, str]:
        """As a probe or hook does in the coordinator's container: exit code, and what it said."""
        process = self.process(arguments, name)
        self.log(name).unlink(missing_ok=True)
        self.start(process)
        return process.wait(COMMAND_TIMEOUT_S), process.said()

    def log(self, name: str) -> Path:
        return self.scenario.folder / f"{name}.log"

    def ready(self) -> bool:
        code, said = self.execute(self.of_coordinator.probe("readinessProbe"), "ready")
        assert code in (0, 1), said
        assert self.coordinator.exit_code() is None, self.coordinator.said()
        return code == 0

    def running_from(self) -> CheckpointId:
        """What the coordinator says it went on from last."""
        found = re.findall(rf'{RUNNING}.*"checkpoint": (\d+)', self.log("coordinator").read_text())
        return CheckpointId(int(found[-1]))

    def kill(self) -> None:
        for process in (self.coordinator, *self.workers):
            process.kill()


@pytest.fixture
def pods(kafka: str, tmp_path: Path) -> Iterator[Pods]:
    made = Pods(Scenario.make(kafka, tmp_path, job="count", parallelism=2))
    yield made
    made.kill()


def test_r24_a_pod_that_is_ended_leaves_a_savepoint_and_the_next_one_goes_on_from_it(pods: Pods):
    scenario = pods.scenario
    scenario.feed(200)
    pods.start(pods.coordinator)
    assert not pods.ready(), "its workers are not there"
    for worker in pods.workers:
        pods.start(worker)
    wait_until(pods.ready, REACH_TIMEOUT_S, f"the job runs; it said:\n{pods.coordinator.said()}")
    code, said = pods.execute(pods.of_coordinator.probe("livenessProbe"), "live")
    assert (code, "has last turned" in said) == (0, True), said
    scenario.drain(pods.coordinator)

    scenario.feed(200, first=200)
    code, said = pods.execute(pods.of_coordinator.pre_stop, "pre-stop")
    assert code == 0, said
    assert pods.coordinator.wait(STOP_TIMEOUT_S) == 0, pods.coordinator.said()
    assert [worker.exit_code() for worker in pods.workers] == [None] * WORKERS, "they wait for the next one"
    savepoint = said.splitlines()[-1]
    assert Path(savepoint).parent == scenario.folder / "savepoints"
    code, told = pods.execute(["savepoint", "verify", savepoint], "verify")
    assert code == 0, told

    pods.start(pods.coordinator)
    wait_until(pods.ready, REACH_TIMEOUT_S, f"it goes on; it said:\n{pods.coordinator.said()}")
    assert f"stopped: checkpoint {pods.running_from()}\n" in said, "nothing was done since"
    scenario.drain(pods.coordinator)
    code, said = pods.execute(pods.of_coordinator.pre_stop, "pre-stop")
    assert code == 0, said
    assert said.splitlines()[-1] != savepoint, "the first one is not written over"
    assert pods.coordinator.wait(STOP_TIMEOUT_S) == 0, pods.coordinator.said()
    for worker in pods.workers:
        assert worker.stop(STOP_TIMEOUT_S) == 0, worker.said()
    scenario.check()
