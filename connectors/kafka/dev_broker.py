"""The Kafka to develop and test against: found, or started and stopped, whatever this machine has.

Looked for in this order: `KAFKA_BOOTSTRAP_SERVERS`; Docker, if a daemon answers, by `docker/compose.yaml`;
else a real broker from Kafka's own jars, through Maven and a Java runtime.

`up`, `down` and `status` are for one broker that programs share, kept in `build/kafka` of the checkout.
`start_broker` and `start_cluster` are for tests that need brokers of their own, to kill and to pause.
Also a program, for `make kafka-up`, which needs nothing else of the project.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from connectors.kafka import dev_docker
from connectors.kafka.dev_jars import DEFAULT_VERSION, MissingToolError, exclusively, kafka_jars, project_root
from connectors.kafka.dev_server import (
    HOST,
    START_TIMEOUT_S,
    BrokerProcess,
    BrokerStartError,
    Cluster,
    brokers_answering,
    free_ports,
    is_port_free,
    start_broker,
    start_cluster,
    wait_answering,
)

__all__ = [
    "DEFAULT_VERSION",
    "BrokerProcess",
    "BrokerStartError",
    "Cluster",
    "MissingToolError",
    "Origin",
    "Status",
    "brokers_answering",
    "down",
    "free_ports",
    "start_broker",
    "start_cluster",
    "status",
    "up",
]

BOOTSTRAP_VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"

USAGE = "python -m connectors.kafka.dev_broker up [VERSION]|down|status|jars [VERSION]"

USUAL_PORT = 9092
"""Where the shared broker listens when nothing else does: the port that people try first."""

OUTSIDE_TIMEOUT_S = 15.0
"""How long a Kafka named by the environment may take to answer."""


class Origin(Enum):
    """Where the Kafka in use comes from."""

    ENVIRONMENT = "KAFKA_BOOTSTRAP_SERVERS"
    DOCKER = "Docker"
    JARS = "Kafka's own jars"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What there is now. `bootstrap` is None exactly when `origin` is NOWHERE."""

    origin: Origin
    bootstrap: str | None
    answers: bool
    pid: int | None = None
    log: Path | None = None


def shared_directory() -> Path:
    """Where the shared broker keeps its state: `build/kafka` of the checkout."""
    return project_root() / "build" / "kafka"


def up(directory: Path | None = None, *, version: str = DEFAULT_VERSION, port: int | None = None) -> str:
    """Find or start the shared broker; returns its bootstrap servers once it answers. Safe to call again.

    Raises MissingToolError when there is nothing to run Kafka with, BrokerStartError when it stays silent.
    """
    outside = os.environ.get(BOOTSTRAP_VARIABLE)
    if outside:
        if not brokers_answering(outside, OUTSIDE_TIMEOUT_S):
            raise BrokerStartError(
                f"{BOOTSTRAP_VARIABLE} is {outside}, but no Kafka answers there within "
                f"{OUTSIDE_TIMEOUT_S:.0f} s. Start it, or unset the variable to have a broker started here."
            )
        return outside
    directory = directory or shared_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with exclusively(directory / "lock"):
        now = _status_of(directory)
        if now.bootstrap is not None and now.answers:
            return now.bootstrap
        _down(directory)  # what is there does not answer
        port = port or (USUAL_PORT if is_port_free(USUAL_PORT) else free_ports(1)[0])
        if dev_docker.daemon_answers():
            try:
                return _up_in_docker(directory, port)
            except (dev_docker.DockerFailedError, BrokerStartError) as failed:
                print(
                    f"Docker is there, but Kafka did not start in it; using its jars: {failed}",
                    file=sys.stderr,
                )
        return start_broker(directory / "broker", version=version, port=port).bootstrap


def down(directory: Path | None = None) -> None:
    """Stop the shared broker and drop its data; one that the environment names is left alone."""
    directory = directory or shared_directory()
    if not directory.exists():
        return
    with exclusively(directory / "lock"):
        _down(directory)


def status(directory: Path | None = None) -> Status:
    """What `up` would find, without starting anything."""
    outside = os.environ.get(BOOTSTRAP_VARIABLE)
    if outside:
        return Status(
            origin=Origin.ENVIRONMENT,
            bootstrap=outside,
            answers=brokers_answering(outside, OUTSIDE_TIMEOUT_S) > 0,
        )
    return _status_of(directory or shared_directory())


def _status_of(directory: Path) -> Status:
    broker = BrokerProcess.attached(directory / "broker")
    if broker is not None:
        return Status(
            origin=Origin.JARS,
            bootstrap=broker.bootstrap,
            answers=brokers_answering(broker.bootstrap) > 0,
            pid=broker.pid,
            log=broker.log,
        )
    container = _container(directory)
    if container is not None:
        return Status(origin=Origin.DOCKER, bootstrap=container, answers=brokers_answering(container) > 0)
    return Status(origin=Origin.NOWHERE, bootstrap=None, answers=False)


def _up_in_docker(directory: Path, port: int) -> str:
    bootstrap = f"{HOST}:{port}"
    # Written down first: containers of a start that failed half-way are found and removed by `down`.
    (directory / "docker.json").write_text(json.dumps({"bootstrap": bootstrap}))
    try:
        dev_docker.compose_up(_compose_file(), port=port, project=_compose_project(directory))
        wait_answering(bootstrap, brokers=1, timeout_s=START_TIMEOUT_S, check=lambda: None)
    except BaseException:
        _down(directory)
        raise
    return bootstrap


def _down(directory: Path) -> None:
    broker = BrokerProcess.attached(directory / "broker")
    if broker is not None:
        broker.kill()  # its data goes too: nothing is there to be ended in order
    shutil.rmtree(directory / "broker", ignore_errors=True)
    if _container(directory) is not None:
        # Without its daemon no container runs: what is written down is old.
        if dev_docker.daemon_answers():
            dev_docker.compose_down(_compose_file(), project=_compose_project(directory))
        (directory / "docker.json").unlink()


def _container(directory: Path) -> str | None:
    try:
        bootstrap = json.loads((directory / "docker.json").read_text())["bootstrap"]
    except FileNotFoundError:
        return None
    return str(bootstrap)


def _compose_file() -> Path:
    return project_root() / "docker" / "compose.yaml"


def _compose_project(directory: Path) -> str:
    """One compose project a folder, so that a test's Kafka is not the developer's."""
    if directory == shared_directory():
        return dev_docker.PROJECT
    return f"{dev_docker.PROJECT}-{hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:12]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """`up`, `down`, `status` or `jars`, for the Makefile; prints where what was asked for is."""
    chosen = list(sys.argv[1:] if arguments is None else arguments)
    try:
        match chosen:
            case ["up"]:
                print(up())
            case ["up", version]:
                print(up(version=version))
            case ["down"]:
                down()
            case ["jars"]:
                print(kafka_jars())
            case ["jars", version]:
                print(kafka_jars(version))
            case ["status"]:
                now = status()
                print(describe(now))
                return 0 if now.answers else 1
            case _:
                print(f"usage: {USAGE}", file=sys.stderr)
                return 2
    except (MissingToolError, BrokerStartError, dev_docker.DockerFailedError, ValueError) as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


def describe(now: Status) -> str:
    """One line for a person: where Kafka is, and whether it answers."""
    if now.bootstrap is None:
        return "no Kafka runs; `make kafka-up` starts one"
    answer = "answers" if now.answers else "does not answer"
    process = "" if now.pid is None else f", pid {now.pid}, log {now.log}"
    return f"{now.bootstrap} {answer} (from {now.origin.value}{process})"


if __name__ == "__main__":
    raise SystemExit(main())
