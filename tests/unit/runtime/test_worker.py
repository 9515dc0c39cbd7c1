"""One worker: steps its subtasks, holds the sources when any is full, publishes what is decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from processor.errors import LogConflict, Unavailable
from processor.fault_points import no_faults
from processor.ids import Attempt, CheckpointId, Incarnation, Marker, PublisherId, StepName, SubtaskId
from processor.protocol.entries import OutboxFile
from processor.protocol.messages import (
    AbortCheckpoint,
    AllRunning,
    CheckpointDecided,
    CheckpointKind,
    HoldSources,
    InjectBarrier,
    Order,
    Publication,
    PublicationDone,
    PublicationUnanswered,
    RefreshMarkers,
    SubtaskPressed,
    SubtaskRunning,
)
from processor.records.rows import RowBlock
from processor.runtime.worker import RUNNING_AGAIN_MS, Worker
from processor.storage.outbox import OutboxWriter, encode_block
from processor.storage.outbox_files import OutboxFiles
from processor.task.publication import PublishTools
from tests.unit.operators.kit import SetClock
from tests.unit.storage.memory_files import MemoryFiles
from tests.unit.task.kit import ATTEMPT, OnDemand, Outside, PassOn
from tests.unit.task.test_source_intake import Source

INCARNATION = Incarnation("first")


def publisher(index: int = 0) -> PublisherId:
    from processor.ids import JobName

    return PublisherId(JobName("job"), StepName("out"), index)


def marker(checkpoint: int, rows: int) -> Marker:
    return Marker(incarnation=INCARNATION, attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint), rows=rows)


class OutsidePublishers:
    """What ``Publishers`` is to a worker, over an Outside."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def of(self, identity: PublisherId):
        return self._outside.publisher(identity)


class Bench:
    def __init__(
        self, *sources: Source, publishes: Callable[[PublisherId], bool] = lambda identity: True
    ) -> None:
        self.outside = Outside()
        self.files = MemoryFiles()
        self.executor = OnDemand()
        self.clock = SetClock()
        self.reports: list = []
        self.failures: list[BaseException] = []
        tools = PublishTools(
            outboxes=OutboxFiles(self.files),
            sealed=lambda attempt: False,
            timeout_ms=1_000,
            clock=self.clock,
            pause=self._pause,
            faults=no_faults,
        )
        self.sources = sources
        self.worker = Worker(
            attempt=ATTEMPT,
            incarnation=INCARNATION,
            subtasks=[source.rig.subtask for source in sources],
            publishes=publishes,
            publishers=OutsidePublishers(self.outside),  # type: ignore[arg-type]
            publish_tools=tools,
            executor=self.executor,
            report=self.reports.append,
            failed=self.failures.append,
        )

    def _pause(self, pause_ms: int) -> None:
        self.clock.now_ms += pause_ms

    def order(self, checkpoint: int, *rows: str, index: int = 0) -> CheckpointDecided:
        writer = OutboxWriter(self.files, f"{checkpoint}-{index}.outbox")
        writer.write(encode_block(RowBlock(topic="out", values=[row.encode() for row in rows])))
        box = OutboxFile(
            publisher=publisher(index),
            cut=CheckpointId(checkpoint),
            file=writer.finish(),
            rows=len(rows),
        )
        publication = Publication(
            publisher=publisher(index), outboxes=(box,), expected=marker(checkpoint - 1, 0)
        )
        self.outside.markers.setdefault(publisher(index), marker(checkpoint - 1, 0))
        return CheckpointDecided(
            attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint), publications=(publication,)
        )


def test_it_says_that_its_subtasks_run():
    bench = Bench(Source({"a/0": []}), Source({"b/0": []}))
    bench.worker.start()
    assert [type(report) for report in bench.reports] == [SubtaskRunning] * 2


def test_a02_that_subtasks_run_is_said_again_until_the_coordinator_knows():
    bench = Bench(Source({"a/0": []}))
    bench.worker.start()
    for passed_ms in (0, RUNNING_AGAIN_MS - 1):
        bench.worker.tick(1_000 + passed_ms)
    assert len(bench.reports) == 1
    bench.worker.tick(1_000 + RUNNING_AGAIN_MS)
    bench.worker.tick(1_000 + 2 * RUNNING_AGAIN_MS)
    assert bench.reports == [SubtaskRunning(attempt=ATTEMPT, subtask=bench.sources[0].rig.subtask.id)] * 3
    bench.worker.handle(AllRunning(attempt=Attempt(9)))
    bench.worker.tick(1_000 + 3 * RUNNING_AGAIN_MS)
    assert len(bench.reports) == 4, "an answer of another attempt is none"
    bench.worker.handle(AllRunning(attempt=ATTEMPT))
    bench.worker.tick(1_000 + 9 * RUNNING_AGAIN_MS)
    assert len(bench.reports) == 4


def test_a_turn_steps_every_subtask_and_says_whether_anything_was_done():
    bench = Bench(Source({"a/0": ["x"]}), Source({"b/0": ["y"]}))
    assert bench.worker.step()
    assert [source.rig.sent() for source in bench.sources] == [[["x"], "idle"], [["y"], "idle"]]
    assert not bench.worker.step()


def test_r09_one_full_subtask_holds_all_sources_but_no_barrier():
    full = PassOn()
    bench = Bench(Source({"a/0": ["x"]}), Source({"b/0": ["y"]}, operators=[full]))
    full.full = True
    assert not bench.worker.step()
    assert [source.reader.polls for source in bench.sources] == [0, 0]
    assert sum(isinstance(r, SubtaskPressed) for r in bench.sources[1].rig.reports) == 1
    inject = InjectBarrier(attempt=ATTEMPT, checkpoint=CheckpointId(1), kind=CheckpointKind.PERIODIC)
    bench.worker.handle(inject)
    assert bench.worker.step()
    assert [source.rig.sent() for source in bench.sources] == [["barrier 1"]] * 2
    full.full = False
    assert bench.worker.step()
    assert [source.reader.polls for source in bench.sources] == [1, 1]


def held(chain: str, until: int) -> HoldSources:
    return HoldSources(attempt=ATTEMPT, subtask=SubtaskId(StepName(chain), 0), until=CheckpointId(until))


@pytest.mark.parametrize("ends", ["decided", "given up", "told by a barrier"])
def test_r09_a_full_subtask_elsewhere_holds_sources_until_its_checkpoint_is_over(ends):
    bench = Bench(Source({"a/0": ["x"]}))
    bench.worker.handle(held("elsewhere", 3))
    assert not bench.worker.step()
    for checkpoint in (2, 3):
        assert bench.sources[0].reader.polls == 0
        number = CheckpointId(checkpoint)
        order: Order
        match ends:
            case "decided":
                order = CheckpointDecided(attempt=ATTEMPT, checkpoint=number, publications=())
            case "given up":
                order = AbortCheckpoint(attempt=ATTEMPT, checkpoint=number, reason="")
            case _:
                order = InjectBarrier(
                    attempt=ATTEMPT,
                    checkpoint=CheckpointId(checkpoint + 1),
                    kind=CheckpointKind.PERIODIC,
                    decided=number,
                )
        bench.worker.handle(order)
        while bench.worker.step():  # a barrier goes first
            pass
    assert bench.sources[0].reader.polls > 0


def test_r09_a_late_order_to_hold_sources_and_one_of_our_own_do_nothing():
    bench = Bench(Source({"a/0": ["x"]}))
    bench.worker.handle(CheckpointDecided(attempt=ATTEMPT, checkpoint=CheckpointId(3), publications=()))
    bench.worker.handle(held("elsewhere", 3))
    bench.worker.handle(held(bench.sources[0].rig.subtask.id.chain, 9))
    assert bench.worker.step()
    assert bench.sources[0].reader.polls == 1


def test_r10_what_another_worker_publishes_is_left_to_it():
    bench = Bench(publishes=lambda identity: identity.subtask == 1)
    bench.worker.handle(bench.order(2, "a", index=0))
    bench.worker.handle(bench.order(2, "b", index=1))
    bench.worker.handle(RefreshMarkers(attempt=ATTEMPT, markers=((publisher(0), marker(1, 0)),)))
    bench.executor.settle()
    assert bench.outside.rows() == [b"b"]
    assert [report.publisher.subtask for report in bench.reports] == [1]
    assert bench.outside.markers[publisher(0)] == marker(1, 0)


def test_r21_an_order_of_another_attempt_does_nothing():
    bench = Bench(Source({"a/0": []}))
    inject = InjectBarrier(attempt=Attempt(9), checkpoint=CheckpointId(1), kind=CheckpointKind.PERIODIC)
    bench.worker.handle(inject)
    bench.worker.step()
    assert bench.sources[0].rig.acknowledged() == []


def test_what_is_decided_is_published_in_the_background_and_reported():
    bench = Bench()
    order = bench.order(2, "a", "b")
    bench.worker.handle(order)
    assert bench.outside.rows() == []
    bench.executor.settle()
    assert bench.outside.rows() == [b"a", b"b"]
    assert bench.reports == [
        PublicationDone(
            attempt=ATTEMPT,
            checkpoint=CheckpointId(2),
            publisher=publisher(),
            marker=marker(2, 2),
        )
    ]


def test_a_doubled_order_publishes_once():
    bench = Bench()
    order = bench.order(2, "a")
    bench.worker.handle(order)
    bench.worker.handle(order)
    bench.executor.settle()
    assert bench.outside.rows() == [b"a"]
    assert [type(report) for report in bench.reports] == [PublicationDone] * 2


def test_r13_a_late_order_to_publish_does_nothing_once_a_newer_one_came():
    """What it asks for is out, and its outbox may be deleted: reading it would look like damage."""
    bench = Bench()
    first, second = bench.order(2, "a"), bench.order(3, "b")
    second = replace(
        second, publications=tuple(replace(p, expected=marker(2, 1)) for p in second.publications)
    )
    for order in (first, second):
        bench.worker.handle(order)
        bench.executor.settle()
    bench.files.content.clear()
    bench.worker.handle(first)
    bench.executor.settle()
    assert bench.outside.rows() == [b"a", b"b"]
    assert bench.failures == []
    assert len(bench.reports) == 2


def test_r14_a_late_refresh_of_a_marker_that_has_moved_on_is_dropped():
    """It would find a marker it does not know, and take it for somebody else's."""
    bench = Bench()
    bench.worker.handle(bench.order(2, "a"))
    bench.executor.settle()
    lanes = len(bench.executor.lanes)
    old = RefreshMarkers(attempt=ATTEMPT, markers=((publisher(), marker(1, 0)),))
    bench.worker.handle(old)
    assert len(bench.executor.lanes) == lanes
    bench.worker.handle(RefreshMarkers(attempt=ATTEMPT, markers=((publisher(), marker(2, 1)),)))
    bench.executor.settle()
    assert len(bench.executor.lanes) == lanes + 1, "the one that is out is written again"
    assert bench.failures == []
    assert bench.outside.markers[publisher()] == marker(2, 1)


def test_r13_publishes_of_one_identity_are_one_lane_and_identities_are_apart():
    bench = Bench()
    bench.worker.handle(bench.order(2, "a"))
    bench.worker.handle(bench.order(2, "b", index=1))
    bench.worker.handle(bench.order(3, "c"))
    assert bench.executor.lanes == [
        f"publish {publisher(0)}",
        f"publish {publisher(1)}",
        f"publish {publisher(0)}",
    ]


def test_r25_no_answer_is_reported_and_everything_else_ends_the_attempt():
    bench = Bench()
    order = bench.order(2, "a")
    bench.outside.down = True
    bench.worker.handle(order)
    bench.executor.settle()
    (report,) = bench.reports
    assert isinstance(report, PublicationUnanswered)
    assert "nobody answers" in report.reason
    assert bench.failures == []
    bench.outside.down = False
    bench.outside.markers.clear()
    bench.worker.handle(order)
    bench.executor.settle()
    assert [type(failure) for failure in bench.failures] == [LogConflict]


def test_the_next_timer_is_the_earliest_of_all_subtasks():
    operators = [PassOn(), PassOn(), PassOn()]
    bench = Bench(*(Source({f"{i}/0": []}, operators=[op]) for i, op in enumerate(operators)))
    assert bench.worker.next_processing_time_ms() is None
    operators[2].timer_ms = 70
    operators[0].timer_ms = 90
    assert bench.worker.next_processing_time_ms() == 70


def test_close_closes_all_and_raises_the_first_error():
    first, second = Source({"a/0": []}), Source({"b/0": []})
    bench = Bench(first, second)

    def broken() -> None:
        raise Unavailable("the client hangs")

    second.reader.close = broken  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="hangs"):
        bench.worker.close()
    assert first.reader.closed
