"""Real Kafka brokers run from Kafka's own jars: one, or a cluster, each a process to kill or to pause."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from connectors.kafka.dev_jars import DEFAULT_VERSION, find_java, kafka_jars
from connectors.kafka.dev_process import POLL_INTERVAL_S, ProcessIdentity, spawn

HOST = "127.0.0.1"
"""Brokers for development are reached from this machine only."""

HEAP_MAX = "512m"
"""Heap of one broker; a cluster of three must fit beside the tests on a small machine."""

START_TIMEOUT_S = 90.0
"""From the start of the processes to the first answer; 3-5 s on an idle machine."""

METADATA_TIMEOUT_S = 2.0
"""How long one metadata request may take; the wait for a broker repeats it."""

STOP_GRACE_S = 15.0
"""What a broker gets to shut down in order before SIGKILL."""

FORMAT_TIMEOUT_S = 60.0
"""What formatting a data folder may take; about 1 s."""

FEATURES_VARIABLE = "KAFKA_FEATURES"
"""Feature levels of new brokers, such as ``transaction.version=1``: to run tests against older protocols."""

PORTS = range(18_000, 32_000)
"""Below the ports that systems lend to outgoing connections. From that range, a client that tries to reach
its dead broker can be lent the broker's own port, connect to itself, and keep the broker from coming back."""

PORT_TRIES_MAX = 200
LOG_TAIL_CHARACTERS = 3_000
RECORD = "broker.json"


class BrokerStartError(RuntimeError):
    """A broker ended, or did not answer in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProcess:
    """A broker as it was started: a handle on one process, not on whatever runs in its folder later.

    `bootstrap` is HOST:PORT for clients, `directory` holds its settings, its data and `broker.log`.
    """

    bootstrap: str
    pid: int
    directory: Path
    version: str
    started: str

    @classmethod
    def attached(cls, directory: Path) -> Self | None:
        """The broker that was started last in a folder; None when none was, or when it no longer runs."""
        try:
            record = json.loads((directory / RECORD).read_text())
        except FileNotFoundError:
            return None
        broker = cls(
            bootstrap=record["bootstrap"],
            pid=record["pid"],
            directory=directory,
            version=record["version"],
            started=record["started"],
        )
        return broker if broker.is_running() else None

    @property
    def identity(self) -> ProcessIdentity:
        """The process, guarded against a recycled pid."""
        return ProcessIdentity(pid=self.pid, started=self.started)

    @property
    def log(self) -> Path:
        """Where the broker writes what it does."""
        return self.directory / "broker.log"

    def is_running(self) -> bool:
        """Whether the process is there; a paused one is."""
        return self.identity.is_running()

    def stop(self) -> None:
        """End the broker in order, by SIGKILL if that takes too long."""
        self.identity.stop(STOP_GRACE_S)

    def kill(self) -> None:
        """SIGKILL the broker and wait until it is gone. Its data stays."""
        self.identity.kill()

    def pause(self) -> None:
        """Stop the process where it stands (SIGSTOP); its connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def restart(self) -> BrokerProcess:
        """Stop the broker if it runs, start it on the same data and the same port; returns the new handle."""
        self.stop()
        broker = _launch(self.directory, self.bootstrap, self.version)
        _wait_ready([broker], START_TIMEOUT_S)
        return broker

    def _signal(self, number: signal.Signals) -> None:
        if not self.identity.signal(number):
            raise ProcessLookupError(f"the broker at {self.bootstrap} (pid {self.pid}) no longer runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Brokers that are controllers too; each can be killed, paused and restarted by itself."""

    brokers: tuple[BrokerProcess, ...]

    @property
    def bootstrap(self) -> str:
        """All brokers, for a client's `bootstrap.servers`."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def with_restarted(self, index: int) -> Cluster:
        """Restart one broker; returns the cluster with its new handle in place of the old one."""
        renewed = self.brokers[index].restart()
        return Cluster(brokers=(*self.brokers[:index], renewed, *self.brokers[index + 1 :]))

    def stop(self) -> None:
        """End all brokers. All get SIGTERM before the first is waited for: without a majority of controllers
        a broker that shuts down in order would wait for an answer until its time is over."""
        for broker in self.brokers:
            broker.identity.signal(signal.SIGCONT)
            broker.identity.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_GRACE_S
        for broker in self.brokers:
            broker.identity.wait_gone(max(0.0, deadline - time.monotonic()))
            broker.kill()

    def kill(self) -> None:
        """SIGKILL all brokers."""
        for broker in self.brokers:
            broker.kill()


def start_broker(
    directory: Path,
    *,
    version: str = DEFAULT_VERSION,
    properties: Mapping[str, str] | None = None,
    port: int | None = None,
) -> BrokerProcess:
    """Start one broker (its own controller) with its data in `directory`, and wait until it answers.

    `properties` are added to, and win over, the settings for development. Without `port` a free one is
    taken. The broker outlives the calling program: whoever starts one stops it.

    Raises MissingToolError without Java or Maven, BrokerStartError when it ends or stays silent.
    """
    ports = free_ports(2)
    if port is not None:
        ports[0] = port
    broker = _start_all([directory], version, properties or {}, ports)[0]
    return broker


def start_cluster(
    directory: Path,
    *,
    brokers: int = 3,
    version: str = DEFAULT_VERSION,
    properties: Mapping[str, str] | None = None,
) -> Cluster:
    """Start a cluster of brokers that are controllers too, in `directory/broker-1` and so on.

    From three brokers on, topics have three replicas and two must be in sync.
    """
    directories = [directory / f"broker-{number + 1}" for number in range(brokers)]
    started = _start_all(directories, version, properties or {}, free_ports(2 * brokers))
    return Cluster(brokers=tuple(started))


def free_ports(count: int) -> list[int]:
    """Ports of this machine on which nothing listens, outside the range lent to outgoing connections."""
    chance = random.SystemRandom()
    free: list[int] = []
    for _ in range(PORT_TRIES_MAX):
        if len(free) == count:
            return free
        port = chance.choice(PORTS)
        if port not in free and is_port_free(port):
            free.append(port)
    raise BrokerStartError(f"found no {count} free ports from {PORTS.start} to {PORTS.stop - 1}")


def is_port_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def brokers_answering(bootstrap: str, timeout_s: float = METADATA_TIMEOUT_S) -> int:
    """How many brokers a metadata request names; 0 when nothing answers in time."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "log_level": 0,  # that nothing listens yet is expected, and no news for a terminal
        "error_cb": _ignore,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 200,
    }
    client = AdminClient(settings)
    try:
        return len(client.list_topics(timeout=timeout_s).brokers)
    except KafkaException:
        return 0


def wait_answering(bootstrap: str, *, brokers: int, timeout_s: float, check: Callable[[], None]) -> None:
    """Wait until a metadata request names that many brokers; `check` raises when waiting is in vain."""
    deadline = time.monotonic() + timeout_s
    while brokers_answering(bootstrap) < brokers:
        check()
        if time.monotonic() > deadline:
            raise BrokerStartError(f"Kafka at {bootstrap} did not answer within {timeout_s:.0f} s")
        time.sleep(POLL_INTERVAL_S)


def _ignore(_error: object) -> None:
    return


def _start_all(
    directories: Sequence[Path], version: str, properties: Mapping[str, str], ports: Sequence[int]
) -> list[BrokerProcess]:
    """Settings, storage, processes, answer. Leaves no process behind when one of them does not come up."""
    voters = ",".join(f"{number + 1}@{HOST}:{ports[2 * number + 1]}" for number, _ in enumerate(directories))
    cluster_id = _cluster_id()
    for number, directory in enumerate(directories):
        directory.mkdir(parents=True, exist_ok=True)
        settings = {
            **_settings(number + 1, directory, voters, len(directories)),
            **_listeners(ports[2 * number], ports[2 * number + 1]),
            **properties,
        }
        lines = [f"{name}={value}\n" for name, value in sorted(settings.items())]
        (directory / "server.properties").write_text("".join(lines))
        _format(directory, version, cluster_id)
    started: list[BrokerProcess] = []
    try:
        for number, directory in enumerate(directories):
            started.append(_launch(directory, f"{HOST}:{ports[2 * number]}", version))
        _wait_ready(started, START_TIMEOUT_S)
    except BaseException:
        for broker in started:
            broker.kill()
        raise
    return started


def _settings(node: int, directory: Path, voters: str, brokers: int) -> dict[str, str]:
    replicas = str(min(brokers, 3))
    in_sync = "2" if brokers >= 3 else "1"
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": voters,
        "log.dirs": os.fspath(directory / "data"),
        # A misspelt topic must be an error, not a new and empty topic.
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        # Event time of tests is often long ago, and a week counts by the records' own timestamps.
        "log.retention.ms": "-1",
        # A killed broker is let in again only after its session: 9 s by default, for every restart of a test.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "500",
        # The cleaner's default buffer, 128 MiB, would be a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }


def _listeners(client_port: int, controller_port: int) -> dict[str, str]:
    return {
        "listeners": f"CLIENT://{HOST}:{client_port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"CLIENT://{HOST}:{client_port}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
    }


def _cluster_id() -> str:
    """A random id in Kafka's spelling; Kafka refuses one that begins with a hyphen."""
    while True:
        spelled = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not spelled.startswith("-"):
            return spelled


def _java_command(version: str, *flags: str) -> list[str]:
    return [
        os.fspath(find_java()),
        f"-Xmx{HEAP_MAX}",
        "-Djava.awt.headless=true",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
        *flags,
        "-cp",
        os.fspath(kafka_jars(version) / "*"),
    ]


def _format(directory: Path, version: str, cluster_id: str) -> None:
    """Make the data folder, unless there is one: a broker started twice in a folder keeps its data."""
    data = directory / "data"
    if (data / "meta.properties").exists():
        return
    shutil.rmtree(data, ignore_errors=True)  # left by a format that was interrupted
    done = subprocess.run(
        [
            *_java_command(version, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={cluster_id}",
            f"--config={directory / 'server.properties'}",
            *(f"--feature={feature}" for feature in os.environ.get(FEATURES_VARIABLE, "").split()),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=FORMAT_TIMEOUT_S,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-LOG_TAIL_CHARACTERS:]
        raise BrokerStartError(f"Kafka could not format {data}. It said:\n{said}")


def _launch(directory: Path, bootstrap: str, version: str) -> BrokerProcess:
    """Start the process and write down which it is, so that another program can stop it."""
    identity = spawn(
        [*_java_command(version), "kafka.Kafka", os.fspath(directory / "server.properties")],
        log=directory / "broker.log",
        environment=os.environ,
    )
    broker = BrokerProcess(
        bootstrap=bootstrap,
        pid=identity.pid,
        directory=directory,
        version=version,
        started=identity.started,
    )
    record = {"bootstrap": bootstrap, "pid": broker.pid, "started": broker.started, "version": version}
    (directory / RECORD).write_text(json.dumps(record))
    return broker


def _wait_ready(brokers: Sequence[BrokerProcess], timeout_s: float) -> None:
    def check() -> None:
        for broker in brokers:
            if not broker.is_running():
                tail = broker.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]
                raise BrokerStartError(f"the broker at {broker.bootstrap} ended. Its log ends:\n{tail}")

    for broker in brokers:
        wait_answering(broker.bootstrap, brokers=len(brokers), timeout_s=timeout_s, check=check)
