"""What a coordinator makes of its worker processes: they start, deploy, fail, hang, are gone, release."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from processor.errors import AttemptFailed, Elsewhere, JobError, Unavailable, UserCodeError
from processor.ids import Attempt, Incarnation, StepName, SubtaskId, WorkerId
from processor.protocol.messages import AllRunning, SubtaskRunning
from processor.protocol.worker_messages import (
    AwaitVisible,
    Counted,
    Deploy,
    Deployed,
    Heartbeat,
    Joined,
    Release,
    Released,
    Stack,
    TellStack,
    Visible,
    WorkerFailed,
)
from processor.runtime.failure_form import failure_of
from processor.runtime.remote_workers import RELEASE_MS_MAX, RemoteWorkers
from processor.runtime.worker_pool import Gone, WorkerEvent
from processor.runtime.workers import WorkersParts
from processor.settings.cluster import ClusterSettings
from processor.settings.model import RuntimeSettings, Settings
from processor.telemetry.log import get_log
from processor.telemetry.metrics import Metrics
from tests.unit.operators.kit import SetClock
from tests.unit.storage.entries_made import checkpoint

ATTEMPT = Attempt(4)
ONE, TWO = WorkerId(0), WorkerId(1)
SAME = "the same layout"
WAIT_MS = 2_000
RUNTIME = RuntimeSettings(workers=2, heartbeat_interval="100ms", heartbeat_timeout="1s", hang_timeout="10s")


def joined(worker: WorkerId, process: int = 100, fingerprint: str = SAME) -> Joined:
    return Joined(
        worker=worker,
        process=process,
        session=str(process),
        address=f"unix:/{worker}",
        fingerprint=fingerprint,
    )


@dataclass
class Pool:
    """Workers by script: ``wait`` lets the next thing happen, and time pass."""

    clock: SetClock
    workers: tuple[WorkerId, ...] = (ONE, TWO)
    there: dict[WorkerId, Joined] = field(default_factory=dict)
    events: deque[tuple[WorkerId, WorkerEvent]] = field(default_factory=deque)
    next: deque[Callable[[], None]] = field(default_factory=deque)
    sent: list[tuple[WorkerId, Any]] = field(default_factory=list)
    started: int = 0
    killed: list[WorkerId] = field(default_factory=list)

    def joined(self) -> dict[WorkerId, Joined]:
        return dict(self.there)

    def start_missing(self) -> None:
        self.started += 1

    def take(self) -> tuple[WorkerId, WorkerEvent] | None:
        if not self.events:
            return None
        worker, event = self.events.popleft()
        if isinstance(event, Joined):
            self.there[worker] = event
        elif isinstance(event, Gone):
            self.there.pop(worker, None)
        return worker, event

    def wait(self, timeout_ms: int) -> None:
        self.clock.now_ms += timeout_ms
        if self.next:
            self.next.popleft()()

    def wakes(self, wake: Callable[[], None]) -> None:
        pass

    def send(self, worker: WorkerId, message: Any) -> None:
        self.sent.append((worker, message))

    def kill(self, worker: WorkerId) -> None:
        self.killed.append(worker)

    def then(self, *said: tuple[WorkerId, WorkerEvent]) -> None:
        """Heard at the next wait."""
        self.next.append(lambda: self.events.extend(said))

    def told(self, kind: type) -> list[WorkerId]:
        return [worker for worker, message in self.sent if isinstance(message, kind)]


class Bench:
    def __init__(self, *, workers_min: int | None = None) -> None:
        self.workers_min = workers_min
        self.clock = SetClock()
        self.pool = Pool(self.clock)
        self.reports: list[Any] = []
        self.failures: list[BaseException] = []
        self.metrics = Metrics()
        self.stop = False
        self.publishers = _Publishers()
        around = cast(Any, _Around(self))
        self.workers = RemoteWorkers(
            WorkersParts(
                plan=cast(Any, None),
                around=around,
                publishers=cast(Any, self.publishers),
                publish_tools=cast(Any, None),
                report=self.reports.append,
                failed=self.failures.append,
                stop_asked=lambda: self.stop,
            ),
            cast(Any, self.pool),
            SAME,
            get_log("test"),
        )

    def grown(self, now_ms: int) -> bool:
        """As an attempt asks it: after a tick."""
        self.workers.tick(now_ms)
        return self.workers.grown(now_ms)

    def running_alone(self) -> Bench:
        """With one worker of two, while the other has not come."""
        self.pool.then((ONE, joined(ONE)))
        addresses = self.workers.addresses()
        self.pool.then((ONE, Deployed(attempt=ATTEMPT)))
        self.workers.deploy(replace(self.deploy(), addresses=addresses))
        return self

    def started(self) -> Bench:
        self.pool.then((ONE, joined(ONE)), (TWO, joined(TWO)))
        self.workers.addresses()
        return self

    def deploy(self) -> Deploy:
        return Deploy(
            attempt=ATTEMPT,
            incarnation=Incarnation("i"),
            entry=checkpoint(2, 3, 1),
            unconfirmed={},
            parallelism=2,
            addresses={ONE: "unix:/0", TWO: "unix:/1"},
        )

    def running(self) -> Bench:
        self.started()
        self.pool.then(*((worker, Deployed(attempt=ATTEMPT)) for worker in (ONE, TWO)))
        self.workers.deploy(self.deploy())
        return self

    def hear(self, *said: tuple[WorkerId, WorkerEvent]) -> None:
        self.pool.events.extend(said)
        self.workers.turn()


class _Publishers:
    """Of the coordinator: a recovery publishes there."""

    visible = True

    def wait_visible(self, timeout_ms: int) -> bool:
        return self.visible


class _Around:
    def __init__(self, bench: Bench) -> None:
        cluster = ClusterSettings(workers_min=bench.workers_min, worker_wait=f"{WAIT_MS}ms")
        self.settings = replace(Settings(), runtime=RUNTIME.model_copy(update={"cluster": cluster}))
        self.clock = bench.clock
        self.metrics = bench.metrics
        self.executor = _Executor()


class _Executor:
    def wake(self) -> None:
        pass


# --- starting


def test_d01_an_attempt_waits_until_all_workers_are_there():
    bench = Bench()
    bench.pool.then((TWO, joined(TWO)))
    bench.pool.then((ONE, joined(ONE)))
    assert bench.workers.addresses() == {ONE: "unix:/0", TWO: "unix:/1"}
    assert bench.pool.started == 1


def test_d01_a_worker_that_does_not_start_in_time_is_named():
    bench = Bench()
    bench.pool.then((ONE, joined(ONE)))
    with pytest.raises(Unavailable, match=r"did not start within 60000 ms: 1\. .*worker_start_timeout"):
        bench.workers.addresses()


def test_d01_a_worker_that_ends_while_it_starts_fails_the_attempt_and_says_why():
    bench = Bench()
    bench.pool.then((ONE, Gone(why="process 7 ended with exit code 69", exit_code=69)))
    with pytest.raises(AttemptFailed, match="worker 0 is gone: process 7 ended with exit code 69"):
        bench.workers.addresses()


@pytest.mark.parametrize("code", [64, 78])
def test_d01_a_worker_that_will_never_start_ends_the_job(code):
    bench = Bench()
    bench.pool.then((ONE, Gone(why=f"process 7 ended with exit code {code}", exit_code=code)))
    with pytest.raises(JobError, match=f"worker 0 could not start: process 7 ended with exit code {code}"):
        bench.workers.addresses()


def test_d01_what_ended_before_the_attempt_is_no_failure_of_it():
    bench = Bench()
    bench.pool.events.append((ONE, Gone(why="process 7 was ended by SIGKILL")))
    bench.started()
    assert bench.failures == []


def test_r21_a_worker_of_another_version_of_the_job_is_refused():
    bench = Bench()
    bench.pool.then((ONE, joined(ONE)), (TWO, joined(TWO, process=8, fingerprint="another")))
    with pytest.raises(JobError, match=r"worker 1 \(process 8\) has another version"):
        bench.workers.addresses()


def test_d05_where_fewer_will_do_the_others_are_waited_for_only_so_long():
    bench = Bench(workers_min=1)
    bench.pool.then((ONE, joined(ONE)))
    begun_ms = bench.clock.now_ms
    assert bench.workers.addresses() == {ONE: "unix:/0"}
    assert WAIT_MS <= bench.clock.now_ms - begun_ms < 2 * WAIT_MS


def test_d05_where_fewer_will_do_nobody_waits_once_all_are_there():
    bench = Bench(workers_min=1)
    begun_ms = bench.clock.now_ms
    assert bench.started().clock.now_ms - begun_ms < WAIT_MS


def test_d05_fewer_than_the_fewest_will_not_do():
    bench = Bench(workers_min=1)
    with pytest.raises(Unavailable, match=r"did not start within 60000 ms: 0, 1\."):
        bench.workers.addresses()


def test_d05_workers_that_come_later_are_told_of_when_they_have_stayed():
    bench = Bench(workers_min=1).running_alone()
    now_ms = bench.clock.now_ms
    assert not bench.grown(now_ms)
    bench.hear((TWO, joined(TWO)))
    assert not bench.grown(now_ms)
    assert not bench.grown(now_ms + WAIT_MS - 1)
    assert bench.grown(now_ms + WAIT_MS)
    assert not bench.grown(now_ms + WAIT_MS + 1), "not all the time"
    assert bench.grown(now_ms + 2 * WAIT_MS), "but again, when nothing has come of it"


def test_d05_one_that_comes_and_goes_takes_no_part_and_fails_nothing():
    bench = Bench(workers_min=1).running_alone()
    now_ms, started = bench.clock.now_ms, bench.pool.started
    bench.hear((TWO, joined(TWO)))
    assert not bench.grown(now_ms)
    bench.hear((TWO, Gone(why="it went")))
    assert bench.failures == []
    bench.workers.tick(now_ms + WAIT_MS - 1)
    assert bench.pool.started == started
    bench.workers.tick(now_ms + WAIT_MS)
    assert bench.pool.started == started + 1, "another may come in its place"
    assert not bench.grown(now_ms + WAIT_MS)
    bench.hear((TWO, joined(TWO, process=9)))
    assert not bench.grown(now_ms + WAIT_MS), "another one has to stay, too"
    bench.workers.release()
    assert bench.pool.told(Release) == [ONE]


def test_d05_whoever_takes_part_and_goes_fails_the_attempt():
    bench = Bench(workers_min=1).running_alone()
    bench.hear((ONE, Gone(why="killed")))
    assert [type(failure) for failure in bench.failures] == [AttemptFailed]


def test_somebody_who_wants_to_stop_does_not_wait_for_workers():
    bench = Bench()
    bench.stop = True
    with pytest.raises(Unavailable, match="asked to stop"):
        bench.workers.addresses()
    with pytest.raises(Unavailable, match="asked to stop"):
        bench.workers.deploy(bench.deploy())


def test_d04_whoever_has_not_answered_is_deployed_again():
    bench = Bench().started()
    bench.pool.then((ONE, Deployed(attempt=ATTEMPT)))
    for _ in range(25):  # more than a second
        bench.pool.then((TWO, Heartbeat(turn_age_ms=None)), (ONE, Heartbeat(turn_age_ms=0)))
    bench.pool.then((TWO, Deployed(attempt=Attempt(3))))
    bench.pool.then((TWO, Deployed(attempt=ATTEMPT)))
    bench.workers.deploy(bench.deploy())
    assert not bench.pool.next, "an answer about another attempt is none"
    told = bench.pool.told(Deploy)
    assert told.count(ONE) == 1
    assert told.count(TWO) == 2


def test_d02_what_keeps_a_worker_from_restoring_is_raised_as_it_was_there():
    bench = Bench().started()
    failed = failure_of(UserCodeError("open() raised.", remedy="Mend it."))
    bench.pool.then((TWO, WorkerFailed(attempt=ATTEMPT, failure=failed)))
    with pytest.raises(UserCodeError, match=r"open\(\) raised\. Mend it\.") as caught:
        bench.workers.deploy(bench.deploy())
    assert caught.value.elsewhere == Elsewhere(worker=TWO)


# --- running


def test_reports_go_to_the_coordinator_and_orders_to_every_worker():
    bench = Bench().running()
    report = SubtaskRunning(attempt=ATTEMPT, subtask=SubtaskId(StepName("count"), 1))
    bench.hear((TWO, report))
    assert bench.reports == [report]
    bench.workers.send(AllRunning(attempt=ATTEMPT))
    assert bench.pool.told(AllRunning) == [ONE, TWO]


def test_d01_a_worker_that_dies_fails_the_attempt():
    bench = Bench().running()
    bench.hear((TWO, Gone(why="process 9 was ended by SIGKILL")))
    (failure,) = bench.failures
    assert str(failure) == "worker 1 is gone: process 9 was ended by SIGKILL."
    assert isinstance(failure, AttemptFailed)
    assert failure.elsewhere == Elsewhere(worker=TWO)


def test_r21_a_failure_of_another_attempt_is_none():
    bench = Bench().running()
    failed = WorkerFailed(attempt=Attempt(3), failure=failure_of(AttemptFailed("old")))
    bench.hear((ONE, failed))
    assert bench.failures == []
    bench.hear((ONE, replace(failed, attempt=ATTEMPT)))
    assert [str(failure) for failure in bench.failures] == ["old"]


def beat(bench: Bench, passed_ms: int, *workers: WorkerId, age_ms: int = 0) -> None:
    bench.clock.now_ms += passed_ms
    bench.hear(*((worker, Heartbeat(turn_age_ms=age_ms)) for worker in workers))
    bench.workers.tick(bench.clock.monotonic_ms())


def test_d01_a_silent_worker_is_ended_and_fails_the_attempt():
    bench = Bench().running()
    beat(bench, 100, ONE, TWO)
    for _ in range(9):
        beat(bench, 100, ONE)
    assert bench.failures == []
    beat(bench, 100, ONE)
    assert bench.pool.killed == [TWO]
    assert "worker 1 was not heard of for 1000 ms" in str(bench.failures[0])


def test_d01_a_worker_that_hangs_is_asked_for_its_stack_and_then_ended():
    bench = Bench().running()
    age_ms = 0
    while not bench.pool.told(TellStack):
        assert bench.failures == []
        age_ms += 100
        beat(bench, 100, ONE, TWO, age_ms=age_ms)
    assert 5_000 <= age_ms < 6_000
    bench.hear((ONE, Stack(text="in a loop")))
    while not bench.failures:
        assert age_ms <= 10_000
        age_ms += 100
        beat(bench, 100, ONE, TWO, age_ms=age_ms)
    assert bench.pool.killed == [ONE, TWO]
    assert "has not turned for" in str(bench.failures[0])


def test_what_workers_count_is_counted_here_also_of_those_that_died():
    bench = Bench().running()

    def counted(value: int) -> Heartbeat:
        count = Counted(step=StepName("read"), name="records_in", value=value)
        lag = Counted(step=StepName("read"), name="lag_records", value=value)
        return Heartbeat(turn_age_ms=0, counters=(count,), gauges=(lag,))

    bench.hear((ONE, counted(5)), (TWO, counted(7)), (TWO, counted(9)))
    assert bench.metrics.snapshot().total("records_in") == 14
    bench.hear((TWO, Gone(why="")), (TWO, joined(TWO, process=101)), (TWO, counted(2)))
    snapshot = bench.metrics.snapshot()
    assert snapshot.total("records_in") == 16
    assert list(snapshot.gauges.values()) == [7], "what the dead measured is measured no more"


# --- ending


def test_r17_all_workers_must_see_their_output():
    for seen, visible in (((True, True), True), ((True, False), False), ((True, None), False)):
        bench = Bench().running()
        bench.pool.then(
            (TWO, Visible(attempt=Attempt(3), visible=True)),
            *(
                (worker, Visible(attempt=ATTEMPT, visible=answer))
                for worker, answer in zip((ONE, TWO), seen, strict=True)
                if answer is not None
            ),
        )
        assert bench.workers.wait_visible(5_000) is visible
        assert bench.pool.told(AwaitVisible) == [ONE, TWO]


def test_r17_what_a_recovery_has_published_must_be_seen_too():
    bench = Bench().running()
    bench.publishers.visible = False
    bench.pool.then(*((worker, Visible(attempt=ATTEMPT, visible=True)) for worker in (ONE, TWO)))
    assert bench.workers.wait_visible(5_000) is False


@pytest.mark.parametrize("gone", ["before", "while it waits"])
def test_r17_a_worker_that_is_gone_before_its_output_is_seen_fails_the_attempt(gone):
    """The next one publishes again what it had sent, and then it can be seen."""
    bench = Bench().running()
    if gone == "before":
        bench.hear((TWO, Gone(why="")))
    bench.pool.then((TWO, Gone(why="")), (ONE, Visible(attempt=ATTEMPT, visible=True)))
    with pytest.raises(AttemptFailed, match="worker 1 is gone"):
        bench.workers.wait_visible(5_000)


def test_r24_nothing_is_reported_any_more_while_a_job_ends():
    """A checkpoint decided then would be behind the last one, and the next start would go on from it."""
    bench = Bench().running()
    report = SubtaskRunning(attempt=ATTEMPT, subtask=SubtaskId(StepName("count"), 1))
    bench.pool.then((ONE, report), (ONE, Visible(attempt=ATTEMPT, visible=True)))
    bench.pool.then((TWO, report), (TWO, Visible(attempt=ATTEMPT, visible=True)))
    assert bench.workers.wait_visible(5_000)
    assert bench.reports == []


def test_r01_an_attempt_is_over_when_all_have_released_it():
    bench = Bench().running()
    bench.pool.then((ONE, Released(attempt=Attempt(3))), (TWO, Released(attempt=ATTEMPT)))
    bench.pool.then((ONE, Released(attempt=ATTEMPT)))
    bench.workers.release()
    assert not bench.pool.next, "an answer about another attempt is none"
    assert bench.pool.told(Release) == [ONE, TWO]
    assert bench.pool.killed == []


def test_r01_whoever_does_not_release_in_time_is_ended_and_the_dead_are_not_waited_for():
    bench = Bench().running()
    bench.hear((TWO, Gone(why="")))
    begun_ms = bench.clock.now_ms
    bench.workers.release()
    assert bench.pool.killed == [ONE]
    assert RELEASE_MS_MAX <= bench.clock.now_ms - begun_ms < 2 * RELEASE_MS_MAX
    assert bench.pool.started == 2, "the one that died starts meanwhile"


def test_what_was_never_deployed_has_nothing_to_release():
    bench = Bench().started()
    bench.workers.release()
    assert bench.pool.sent == []
