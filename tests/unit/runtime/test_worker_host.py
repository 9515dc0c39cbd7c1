"""What a worker process makes of what it is told: one attempt at a time, and never an older one again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from processor.contracts.connection import Connection
from processor.errors import AttemptFailed
from processor.fault_points import FaultPoint
from processor.ids import Attempt, Incarnation, WorkerId
from processor.protocol.messages import AllRunning
from processor.protocol.worker_messages import AwaitVisible, Deploy, Release, Released, Visible, WorkerFailed
from processor.runtime.attempt_part import WorkerParts
from processor.runtime.worker_host import WorkerHost
from processor.telemetry.log import get_log
from processor.telemetry.metrics import Metrics
from tests.unit.operators.kit import SetClock
from tests.unit.runtime.kit import CountedChance, JobRun
from tests.unit.storage.entries_made import checkpoint
from tests.unit.task.kit import OnDemand

HERE, THERE = WorkerId(0), WorkerId(1)


class Peers:
    """The other worker never comes; what is asked is noted."""

    address = "unix:/0"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.unreachable = False

    def connect(self, incarnation: Incarnation, attempt: Attempt, addresses: Mapping[WorkerId, str]) -> None:
        self.asked.append(f"connect {attempt} {sorted(addresses)}")

    def connected(self) -> Mapping[WorkerId, Connection] | None:
        if self.unreachable:
            raise AttemptFailed("worker 1 cannot be reached")
        return None

    def wait(self, timeout_ms: int) -> None:
        self.asked.append("wait")

    def wake(self) -> None:
        return None

    def disconnect(self) -> None:
        self.asked.append("disconnect")

    def close(self) -> None:
        return None


class Bench:
    def __init__(self, root: Path) -> None:
        run = JobRun(root)
        self.peers = Peers()
        self.executor = OnDemand()
        self.said: list[Any] = []
        self.passed: list[FaultPoint] = []
        self.host = WorkerHost(
            WorkerParts(
                worker=HERE,
                graph=run.job().graph(),
                settings=run.settings,
                store=run.store,
                backend=cast(Any, None),
                clock=SetClock(),
                chance=CountedChance(),
                metrics=Metrics(),
                peers=self.peers,
                executor=lambda: self.executor,
                send=self.said.append,
                faults=self.passed.append,
                settled=nullcontext,
                say=get_log("test"),
            )
        )

    def told(self, *messages: Any) -> list[str]:
        """What the peers are asked because of these."""
        self.peers.asked.clear()
        for message in messages:
            self.host.received(message)
        self.host.turn()
        return self.peers.asked


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def deploy(attempt: int) -> Deploy:
    return Deploy(
        attempt=Attempt(attempt),
        incarnation=Incarnation("first"),
        entry=checkpoint(2, 1, 1),
        unconfirmed={},
        parallelism=2,
        addresses={HERE: "unix:/0", THERE: "unix:/1"},
    )


def release(attempt: int) -> Release:
    return Release(attempt=Attempt(attempt))


def test_r01_the_part_of_an_older_attempt_is_closed_before_the_next_begins(bench: Bench):
    assert bench.told(deploy(3)) == ["connect 3 [1]"]
    assert bench.told(deploy(4)) == ["disconnect", "connect 4 [1]"]
    assert bench.passed == [FaultPoint.DEPLOY_RECEIVED] * 2


def test_r21_what_was_sent_about_an_older_attempt_closes_nothing(bench: Bench):
    bench.told(deploy(4))
    assert bench.told(deploy(3)) == []
    assert bench.told(release(3)) == []
    assert bench.said == [], "nobody waits for a word about attempt 3 any more"
    assert bench.told(deploy(4)) == [], "it is under way"


def test_r01_a_release_is_answered_when_everything_is_closed_and_as_often_as_it_comes(bench: Bench):
    bench.told(deploy(4))
    assert bench.told(release(4)) == ["disconnect", "wait"]
    assert bench.told(release(4)) == ["wait"]
    assert bench.said == [Released(attempt=Attempt(4))] * 2
    bench.told(deploy(5))
    bench.told(release(6))
    assert bench.said[2:] == [Released(attempt=Attempt(6))], "nothing of an attempt before is open either"


def test_r21_an_attempt_that_was_released_never_begins_again(bench: Bench):
    bench.told(deploy(4), release(4))
    assert bench.told(deploy(3), deploy(4)) == ["wait"]
    assert bench.told(release(3), deploy(5)) == ["connect 5 [1]"]


def test_r17_it_says_of_the_attempt_here_alone_whether_its_output_can_be_read(bench: Bench):
    bench.told(deploy(4))
    for attempt in (3, 5, 4):
        bench.told(AwaitVisible(attempt=Attempt(attempt), timeout_ms=1_000))
        bench.executor.settle()
    assert bench.said == [Visible(attempt=Attempt(4), visible=True)]


def test_d02_a_part_that_has_failed_keeps_still_until_it_is_released(bench: Bench):
    bench.peers.unreachable = True
    bench.told(deploy(4))
    (failed,) = bench.said
    assert isinstance(failed, WorkerFailed)
    assert failed.attempt == Attempt(4)
    assert bench.told(deploy(4), AllRunning(attempt=Attempt(4))) == ["wait"]
    assert bench.said == [failed]
    assert bench.host.heartbeat().turn_age_ms is None, "it does not hang"
    bench.told(release(4))
    assert bench.said[1:] == [Released(attempt=Attempt(4))]
    bench.peers.unreachable = False
    assert bench.told(deploy(5)) == ["connect 5 [1]"]
