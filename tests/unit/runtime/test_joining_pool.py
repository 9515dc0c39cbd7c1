"""Workers of other machines: they come by themselves, are numbered, go, and come again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.channels.addresses import TcpAddress, parse_address
from processor.channels.credentials import NO_CREDENTIALS, Credentials
from processor.channels.doorway import Later
from processor.channels.greeting import Dial
from processor.channels.handshake import Hello, Join
from processor.channels.poller import Poller
from processor.channels.socket_peers import SocketPeers
from processor.cli.job_reference import load_graph
from processor.errors import AttemptFailed, SettingsError
from processor.ids import Attempt, Incarnation, WorkerId
from processor.plugins import installed_plugins
from processor.protocol.worker_messages import Heartbeat, Release, Released
from processor.runtime.cluster.joining_pool import JOIN_TIMEOUT_MS, JoiningPool
from processor.runtime.cluster.joining_worker import JoiningWorker
from processor.runtime.cluster.network_address import network_address
from processor.runtime.system import SystemChance, SystemClock
from processor.runtime.worker_pool import Gone
from processor.runtime.worker_process import WorkerJob
from processor.settings.loading import load_settings
from processor.telemetry.log import get_log
from tests.unit.channels.certificates import Authority
from tests.unit.operators.kit import SetClock
from tests.waiting import wait_until

SECRET = Credentials(secret=b"of the job, and of nobody else")
ONE, TWO = WorkerId(0), WorkerId(1)
WAIT_S = 60.0


class Rig:
    """A coordinator's pool and some workers, each in a thread; one job."""

    def __init__(self, folder: Path, credentials: Credentials = SECRET) -> None:
        assignments = [f"checkpoint.directory={folder}/checkpoints", "runtime.heartbeat_interval=20ms"]
        assignments += [f"state.directory={folder}/state", "kafka.main.bootstrap_servers=127.0.0.1:1"]
        settings = load_settings(
            plugins=installed_plugins().settings_models(), environ={}, assignments=assignments
        ).settings
        self.job = WorkerJob(
            graph=load_graph("tests.integration.jobs:copy"), settings=settings, log=get_log("t")
        )
        self.credentials = credentials
        self._closing: list[Any] = []
        self.heard: list[tuple[WorkerId, Any]] = []

    def pool(self, workers: int = 2, at: str = "tcp:127.0.0.1:0", clock: Any = None) -> JoiningPool:
        made = JoiningPool(
            network_address(at, "test"),
            workers,
            job=self.job.graph.name,
            fingerprint=self.job.fingerprint,
            credentials=self.credentials,
            clock=clock or SystemClock(),
            chance=SystemChance(),
            log=get_log("t"),
        )
        self._closing.append(made.close)
        return made

    def worker(
        self, pool: JoiningPool, job: WorkerJob | None = None, credentials: Credentials | None = None
    ) -> Worker:
        made = Worker(
            JoiningWorker(
                job or self.job, network_address(pool.address, "test"), None, credentials or self.credentials
            )
        )
        self._closing.append(made.end)
        return made

    def hear(self, pool: JoiningPool) -> None:
        while (taken := pool.take()) is not None:
            self.heard.append(taken)

    def until_joined(self, pool: JoiningPool, *workers: WorkerId) -> None:
        def there() -> bool:
            self.hear(pool)
            return tuple(pool.joined()) == workers

        wait_until(there, WAIT_S, f"workers {workers} have joined")

    def until_heard(self, pool: JoiningPool, worker: WorkerId, kind: type) -> Any:
        def found() -> Any:
            self.hear(pool)
            return next((event for of, event in self.heard if of == worker and isinstance(event, kind)), None)

        return wait_until(found, WAIT_S, f"worker {worker} says {kind.__name__}")

    def close(self) -> None:
        for close in reversed(self._closing):
            close()


class Worker:
    def __init__(self, worker: JoiningWorker) -> None:
        self._worker = worker
        self.failed: AttemptFailed | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._worker.run()
        except AttemptFailed as error:
            self.failed = error

    def ended(self) -> str:
        """Waits until it ends by itself; why."""
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        assert self.failed is not None
        return str(self.failed)

    def end(self) -> None:
        self._worker.end()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def test_whoever_comes_is_numbered_and_heard(rig: Rig):
    pool = rig.pool()
    pool.start_missing()
    for _ in range(2):
        rig.worker(pool)
    rig.until_joined(pool, ONE, TWO)
    addresses = {said.address for said in pool.joined().values()}
    assert len(addresses) == 2
    assert all(address.startswith("tcp:127.0.0.1:") for address in addresses), "where the coordinator is"
    assert {said.fingerprint for said in pool.joined().values()} == {rig.job.fingerprint}
    rig.until_heard(pool, TWO, Heartbeat)
    pool.send(ONE, Release(attempt=Attempt(3)))
    assert rig.until_heard(pool, ONE, Released) == Released(attempt=Attempt(3))


def test_nobody_is_a_worker_before_one_is_missing_and_a_spare_one_takes_the_place_of_one_that_is_gone(
    rig: Rig,
):
    pool = rig.pool(workers=1)
    first = rig.worker(pool)
    pool.start_missing()
    rig.until_joined(pool, ONE)
    before = pool.joined()[ONE]
    rig.worker(pool)  # a spare one
    first.end()
    rig.until_heard(pool, ONE, Gone)
    assert pool.joined() == {}, "it may still have to release: whoever comes waits until it is wanted"
    pool.start_missing()
    rig.until_joined(pool, ONE)
    assert pool.joined()[ONE].session != before.session


def test_r21_of_one_that_was_killed_nothing_follows_and_it_comes_again(rig: Rig):
    pool = rig.pool(workers=1)
    pool.start_missing()
    rig.worker(pool)
    rig.until_joined(pool, ONE)
    pool.kill(ONE)
    rig.until_heard(pool, ONE, Gone)
    assert rig.heard[-1] == (ONE, Gone(why="the connection was ended here"))
    assert pool.take() is None
    pool.start_missing()
    rig.until_joined(pool, ONE)


def test_a_worker_joins_the_coordinator_that_comes_after_one_that_is_gone(rig: Rig):
    first = rig.pool(workers=1)
    first.start_missing()
    rig.worker(first)
    rig.until_joined(first, ONE)
    first.close()
    second = rig.pool(workers=1, at=first.address)
    second.start_missing()
    rig.until_joined(second, ONE)


def test_two_coordinators_cannot_have_one_address(rig: Rig):
    pool = rig.pool()
    with pytest.raises(SettingsError, match=r"nothing can listen on tcp:127\.0\.0\.1"):
        rig.pool(at=pool.address)


def test_a_worker_with_another_secret_is_turned_away(rig: Rig):
    pool = rig.pool(workers=1)
    pool.start_missing()
    stranger = rig.worker(pool, credentials=Credentials(secret=b"a guess"))
    assert "does not know the job's secret" in stranger.ended()
    rig.worker(pool)
    rig.until_joined(pool, ONE)
    assert rig.heard[0][1] == pool.joined()[ONE], "nothing was heard of the stranger"


def test_r21_a_worker_of_another_version_is_turned_away_and_told_why(rig: Rig):
    pool = rig.pool(workers=1)
    pool.start_missing()
    other = replace(
        rig.job,
        settings=replace(
            rig.job.settings,
            runtime=rig.job.settings.runtime.model_copy(update={"elements_per_turn": 3}),
        ),
    )
    assert "another version of the job, its settings or the product" in rig.worker(pool, other).ended()
    rig.worker(pool)
    rig.until_joined(pool, ONE)


def test_r21_a_worker_of_another_job_is_turned_away(rig: Rig):
    pool = rig.pool(workers=1)
    pool.start_missing()
    other = replace(rig.job, graph=load_graph("tests.integration.jobs:count"))
    said = rig.worker(pool, other).ended()
    assert f"the coordinator of job '{rig.job.graph.name}', not of '{other.graph.name}'" in said


def test_a_worker_that_is_sent_to_another_worker_is_told_so(rig: Rig):
    pool = rig.pool(workers=1)
    peers = SocketPeers(
        TWO,
        rig.job.graph.name,
        TcpAddress("127.0.0.1", 0),
        clock=SystemClock(),
        chance=SystemChance(),
        credentials=SECRET,
    )
    lost = Worker(JoiningWorker(rig.job, network_address(peers.address, "test"), None, SECRET))

    def turned_away() -> bool:
        peers.wait(10)
        return lost.failed is not None

    wait_until(turned_away, WAIT_S, "it is turned away")
    assert "this is worker 1 of job" in lost.ended()
    peers.close()
    hello = Hello(
        job=rig.job.graph.name,
        incarnation=Incarnation("i"),
        attempt=Attempt(1),
        worker=ONE,
        peer=TWO,
        nonce="0" * 32,
    )
    assert pool._verdict(hello) != Later()


def test_how_machines_reach_each_other_is_no_part_of_a_version(rig: Rig):
    settings = rig.job.settings
    cluster = settings.runtime.cluster.model_copy(update={"listen": "tcp:other:1"})
    elsewhere = replace(settings, runtime=settings.runtime.model_copy(update={"cluster": cluster}))
    assert replace(rig.job, settings=elsewhere).fingerprint == rig.job.fingerprint


def test_who_is_welcome_and_does_not_join_in_time_keeps_its_number_from_nobody(rig: Rig):
    clock = SetClock()
    pool = rig.pool(workers=1, clock=clock)
    pool.start_missing()
    poller = Poller()
    dial = Dial(
        "the coordinator",
        parse_address(pool.address),
        lambda: Join(job=rig.job.graph.name, fingerprint=rig.job.fingerprint, nonce="0" * 32),
        credentials=SECRET,
        poller=poller,
        clock=SystemClock(),
    )
    silent = wait_until(dial.step, WAIT_S, "it is welcome")
    assert dial.worker == ONE
    rig.worker(pool)
    clock.now_ms += JOIN_TIMEOUT_MS
    rig.until_joined(pool, ONE)
    assert not [event for _, event in rig.heard if isinstance(event, Gone)], "it has not been a worker yet"
    assert silent is not None
    poller.forget(silent)
    silent.close()
    poller.close()


def test_workers_join_over_tls(tmp_path: Path):
    rig = Rig(tmp_path, Credentials(tls=Authority(tmp_path).tls("worker")))
    try:
        pool = rig.pool()
        pool.start_missing()
        for _ in range(2):
            rig.worker(pool)
        rig.until_joined(pool, ONE, TWO)
        pool.send(TWO, Release(attempt=Attempt(3)))
        assert rig.until_heard(pool, TWO, Released) == Released(attempt=Attempt(3))
    finally:
        rig.close()


def test_nobody_waits_for_workers_on_a_network_without_a_secret(rig: Rig):
    rig.credentials = NO_CREDENTIALS
    with pytest.raises(SettingsError, match=r"by anybody.*secret_file"):
        rig.pool()


@pytest.mark.parametrize("text", ["tcp:host", "unix:/run/x", "host:7000"])
def test_what_is_no_address_on_a_network_is_refused_and_named(text: str):
    with pytest.raises(SettingsError, match=r"runtime\.cluster\.listen.*tcp:host:port"):
        network_address(text, "runtime.cluster.listen")
