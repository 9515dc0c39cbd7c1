"""A Docker engine for tests: the one that answers, or one installed and started here while they run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from connectors.kafka import dev_docker
from connectors.kafka.dev_process import spawn
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = Path("/sys/class/net/docker0")
"""The network that dockerd makes and leaves behind."""

ENGINE_START_S = 60.0
ENGINE_STOP_S = 30.0
APT_S = 600.0
PULL_S = 180.0
BUILD_S = 600.0
PACKAGES = ["docker.io", "docker-compose", "debootstrap", "iptables"]
APACHE_IMAGE = "apache/kafka:4.1.0"
BASE_IMAGE = "processor-base:local"
LOCAL_KAFKA_IMAGE = "processor-kafka:local"


class NoDockerError(Exception):
    """There is no Docker here and none can be had; the message is the reason to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A Docker engine that answers to a client with this environment."""

    environment: Mapping[str, str]

    def run(self, *command: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run a program against this engine, in the checkout; its exit code is the caller's to judge."""
        return run(command, timeout_s=timeout_s, environment={**os.environ, **self.environment})


@contextmanager
def docker_engine() -> Iterator[Engine]:
    """An engine. One that was started here is stopped at the end; what it stored is kept in build/docker.

    Raises NoDockerError with the reason when there is none and none can be started.
    """
    if dev_docker.daemon_answers():
        yield Engine(environment={})
        return
    if os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        raise NoDockerError("no Docker daemon answers, and only root on Debian can install and start one")
    _install()
    data = ROOT / "build" / "docker"
    data.mkdir(parents=True, exist_ok=True)
    log = data / "dockerd.log"
    # The path of a Unix socket has at most 107 characters: it cannot lie in a test's own folder.
    with tempfile.TemporaryDirectory(prefix="dockerd-") as short:
        environment = {"DOCKER_HOST": f"unix://{short}/docker.sock"}
        bridge_was_there = BRIDGE.exists()
        daemon = spawn(
            [
                shutil.which("dockerd") or "/usr/sbin/dockerd",
                f"--host={environment['DOCKER_HOST']}",
                f"--data-root={data / 'root'}",
                f"--exec-root={short}/exec",
                f"--pidfile={short}/pid",
            ],
            log=log,
            environment=os.environ,
        )
        engine = Engine(environment=environment)
        try:
            answered = wait_until(
                lambda: _answer(engine, gone=not daemon.is_running()),
                ENGINE_START_S,
                "dockerd answers",
            )
            if answered == "gone":
                tail = log.read_text(errors="replace")[-600:]
                raise NoDockerError(f"dockerd could not be started here; its log ends: {tail}")
            yield engine
        finally:
            daemon.stop(ENGINE_STOP_S)
            if BRIDGE.exists() and not bridge_was_there and shutil.which("ip"):
                engine.run("ip", "link", "delete", BRIDGE.name, timeout_s=ENGINE_STOP_S)


def base_image(engine: Engine) -> str:
    """An image that the project's own images can be based on, made here by debootstrap.

    Raises NoDockerError when it cannot be made.
    """
    made = engine.run("docker/base-image", BASE_IMAGE, timeout_s=BUILD_S)
    if made.returncode != 0:
        raise NoDockerError(f"no base image could be made: {made.stdout}{made.stderr}")
    return BASE_IMAGE


def kafka_image(engine: Engine, kafka_version: str) -> str:
    """KAFKA_IMAGE if set, else Apache's image if it can be pulled, else one made here from Kafka's jars."""
    asked = os.environ.get("KAFKA_IMAGE")
    if asked:
        return asked
    if _pulled(engine):
        return APACHE_IMAGE
    base = base_image(engine)
    made = engine.run(
        "docker",
        "build",
        "--quiet",
        "--file=docker/kafka/Dockerfile",
        f"--build-arg=BASE_IMAGE={base}",
        f"--build-arg=KAFKA_VERSION={kafka_version}",
        f"--tag={LOCAL_KAFKA_IMAGE}",
        ".",
        timeout_s=BUILD_S,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return LOCAL_KAFKA_IMAGE


def run(
    command: Sequence[str], *, timeout_s: float, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program in the checkout with its output captured."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
    )


def _answer(engine: Engine, *, gone: bool) -> str:
    if gone:
        return "gone"
    asked = engine.run("docker", "info", timeout_s=ENGINE_START_S)
    return "answers" if asked.returncode == 0 else ""


def _pulled(engine: Engine) -> bool:
    if engine.run("docker", "image", "inspect", APACHE_IMAGE, timeout_s=PULL_S).returncode == 0:
        return True
    try:
        return engine.run("docker", "pull", "--quiet", APACHE_IMAGE, timeout_s=PULL_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _install() -> None:
    tools = ["dockerd", "docker-compose", "debootstrap", "iptables"]
    if all(shutil.which(tool) for tool in tools):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        done = run(["apt-get", "--quiet", *command], timeout_s=APT_S, environment=environment)
        if done.returncode != 0:
            raise NoDockerError(f"apt-get {command[0]} failed: {(done.stdout + done.stderr)[-600:]}")
