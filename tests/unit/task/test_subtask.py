"""A subtask with real operators: the cut and its completion, timers, pressure, the end, closing."""

from __future__ import annotations

import pytest

from processor.channels.memory import MemoryChannel
from processor.contracts.completion import Completion
from processor.errors import EngineBug, Unavailable
from processor.ids import Attempt, CheckpointId
from processor.operators.operator import EMPTY_SNAPSHOT, OperatorSnapshot
from processor.operators.outbox_sink import OutboxSink
from processor.protocol.messages import (
    AbortCheckpoint,
    AcknowledgementMetrics,
    CheckpointCompleted,
    CheckpointDecided,
    CheckpointKind,
    InjectBarrier,
    SubtaskPressed,
)
from processor.records.batch import Batch
from processor.records.elements import Barrier, EndOfInput
from processor.task.back_pressure import BACK_PRESSURED_MS
from processor.task.channel_intake import ChannelIntake
from processor.task.input_gate import InputChannel, InputGate
from tests.unit.operators.kit import SetClock
from tests.unit.task.kit import ATTEMPT, MemorySink, Outside, PassOn, Rig


def batch(*values) -> Batch:
    return Batch(values=list(values), timestamps=[0] * len(values))


def barrier(checkpoint: int, kind: CheckpointKind = CheckpointKind.PERIODIC) -> Barrier:
    return Barrier(attempt=Attempt(1), checkpoint=CheckpointId(checkpoint), kind=kind)


class Inner:
    """A subtask between channels."""

    def __init__(self, *operators, channels: int = 1, **more) -> None:
        self.rig = Rig(operators or (PassOn(),), **more)
        self.channels = [MemoryChannel(100) for _ in range(channels)]
        gate = InputGate([InputChannel(input=0, receiver=channel) for channel in self.channels])
        self.rig.subtask.connect(ChannelIntake(self.rig.subtask, gate))

    def feed(self, *elements, channel: int = 0) -> Inner:
        for element in elements:
            self.channels[channel].send(element)
        self.rig.run()
        return self

    def abort(self, checkpoint: int) -> None:
        order = AbortCheckpoint(attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint), reason="")
        self.rig.subtask.handle(order)

    def decided(self, checkpoint: int) -> None:
        order = CheckpointDecided(attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint), publications=())
        self.rig.subtask.handle(order)

    def inject(self, checkpoint: int, *, decided: int) -> None:
        """The order, which tells a subtask without sources only that it comes."""
        order = InjectBarrier(
            attempt=ATTEMPT,
            checkpoint=CheckpointId(checkpoint),
            kind=CheckpointKind.PERIODIC,
            decided=CheckpointId(decided),
        )
        self.rig.subtask.handle(order)


def test_time_counts_as_back_pressure_from_a_look_at_a_full_channel_to_the_next_look():
    inner = Inner(batches_max=1)
    clock, counted = inner.rig.clock, inner.rig.counted
    inner.feed(batch("a"), batch("b"))
    assert counted == {}, "it has just become full"
    for passed_ms in (30, 0, 20):
        clock.now_ms += passed_ms
        assert not inner.rig.step()
    assert counted == {BACK_PRESSURED_MS: 50}, "it is seen while it lasts"
    assert inner.rig.sent() == [["a"]]
    clock.now_ms += 5
    inner.rig.run()
    assert counted == {BACK_PRESSURED_MS: 55}
    assert inner.rig.sent() == [["b"]]
    inner.rig.run()
    clock.now_ms += 1_000
    inner.rig.run()
    assert counted == {BACK_PRESSURED_MS: 55}, "whoever has nothing to take is not kept from it"


class Told(PassOn):
    """Remembers what became of checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, int]] = []

    def completed(self, checkpoint: CheckpointId) -> None:
        self.heard.append(("completed", checkpoint))

    def aborted(self, checkpoint: CheckpointId) -> None:
        self.heard.append(("aborted", checkpoint))


class Failing(PassOn):
    """Its completions raise what they are told to."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error: BaseException | None = error
        self.discarded = 0

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        operator = self

        class Broken:
            def run(self) -> OperatorSnapshot:
                if operator.error is not None:
                    raise operator.error
                return EMPTY_SNAPSHOT

            def discard(self) -> None:
                operator.discarded += 1

        return Broken()


# --- the cut


def test_a11_the_barrier_goes_on_before_the_snapshot_is_written():
    inner = Inner().feed(batch("a"), barrier(1), batch("b"))
    assert inner.rig.sent() == [["a"], "barrier 1", ["b"]]
    assert inner.rig.reports == [], "nothing is written in the subtask's thread"
    (ack,) = inner.rig.acknowledged()
    assert (ack.attempt, ack.checkpoint, ack.snapshot.subtask) == (
        ATTEMPT,
        1,
        inner.rig.subtask.id,
    )


def test_r09_every_acknowledgement_lists_all_undecided_outboxes():
    inner = Inner(OutboxSink(MemorySink(Outside())))
    inner.feed(batch("a"), barrier(1), batch("b"), barrier(2))
    first, second = inner.rig.acknowledged()
    assert [box.cut for box in first.snapshot.outboxes] == [1]
    assert [box.cut for box in second.snapshot.outboxes] == [1, 2]
    inner.abort(1)
    inner.decided(2)
    third = inner.feed(batch("c"), barrier(3)).rig.acknowledged()[-1]
    assert [box.cut for box in third.snapshot.outboxes] == [3]


def test_r09_reading_up_to_a_barrier_goes_on_though_the_outbox_is_full():
    operator = PassOn()
    operator.full = True
    inner = Inner(operator)
    for element in (batch("a"), barrier(1)):
        inner.channels[0].send(element)
    inner.rig.run(pressed=True)
    assert inner.rig.sent() == [["a"], "barrier 1"]


def test_a13_a_completion_that_fails_declines_by_name_and_discards():
    operator = Failing(Unavailable("no space left on device"))
    inner = Inner(operator).feed(barrier(1))
    (declined,) = inner.rig.declined()
    assert (declined.checkpoint, declined.subtask) == (1, inner.rig.subtask.id)
    assert declined.reason == "Unavailable: no space left on device"
    assert operator.discarded == 2, "by the chain and by the subtask: it is idempotent"
    operator.error = None
    assert inner.feed(barrier(2)).rig.acknowledged()[-1].checkpoint == 2


def test_a_bug_in_a_completion_is_no_failed_checkpoint_that_may_be_tolerated():
    inner = Inner(Failing(EngineBug("a block is too long"))).feed(barrier(1))
    with pytest.raises(EngineBug, match="too long"):
        inner.rig.executor.settle()


def test_r22_an_aborted_checkpoint_is_acknowledged_all_the_same():
    inner = Inner().feed(barrier(1))
    inner.abort(1)
    assert [ack.checkpoint for ack in inner.rig.acknowledged()] == [1], "its files are known, and condemned"


def test_r26_a_barrier_of_an_aborted_checkpoint_cuts_nothing():
    inner = Inner(channels=2).feed(barrier(1))
    inner.abort(1)
    inner.feed(barrier(1), channel=1)
    assert inner.rig.acknowledged() == []
    inner.feed(barrier(2)).feed(barrier(2), channel=1)
    assert [ack.checkpoint for ack in inner.rig.acknowledged()] == [2]


def test_late_news_of_decisions_and_completions_do_nothing_bad():
    inner = Inner(OutboxSink(MemorySink(Outside()))).feed(batch("a"), barrier(1))
    for _ in range(2):
        inner.decided(1)
        inner.rig.subtask.handle(CheckpointCompleted(attempt=ATTEMPT, checkpoint=CheckpointId(1)))
        inner.abort(1)
    inner.feed(barrier(2))
    assert inner.rig.acknowledged()[-1].snapshot.outboxes == ()


def test_a14_operators_hear_of_a_completed_and_of_an_aborted_checkpoint_once_and_in_order():
    told = Told()
    inner = Inner(told)
    for checkpoint in (1, 1, 3, 2, 3):
        inner.rig.subtask.handle(CheckpointCompleted(attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint)))
        inner.abort(checkpoint + 10)
    assert told.heard == [
        ("completed", 1), ("aborted", 11), ("completed", 3), ("aborted", 13),
    ]  # fmt: skip


def test_r22_the_order_for_a_barrier_tells_of_the_decision_whose_news_was_lost():
    inner = Inner(OutboxSink(MemorySink(Outside())))
    inner.feed(batch("a"), barrier(1))
    inner.inject(2, decided=1)
    ack = inner.feed(batch("b"), barrier(2)).rig.acknowledged()[-1]
    assert [box.cut for box in ack.snapshot.outboxes] == [2]
    assert ack.built_on == 1
    inner.inject(3, decided=0)  # late
    assert inner.feed(barrier(3)).rig.acknowledged()[-1].built_on == 1


def test_a12_an_acknowledgement_says_how_long_its_parts_took_and_how_much_it_wrote():
    inner = Inner(OutboxSink(MemorySink(Outside())), channels=2)
    clock = inner.rig.clock
    inner.inject(1, decided=0)
    clock.now_ms += 30
    inner.feed(batch("a"), barrier(1))
    clock.now_ms += 20
    inner.feed(barrier(1), channel=1)
    clock.now_ms += 5
    (ack,) = inner.rig.acknowledged()
    (box,) = ack.snapshot.outboxes
    assert ack.metrics == AcknowledgementMetrics(
        start_delay_ms=30,
        alignment_ms=20,
        synchronous_ms=0,
        asynchronous_ms=5,
        outbox_bytes=box.file.bytes,
        files=1,
    )
    assert ack.metrics.bytes == box.file.bytes


# --- pressure


def pressed(inner: Inner) -> int:
    inner.rig.subtask.pressed()
    return sum(isinstance(report, SubtaskPressed) for report in inner.rig.reports)


def test_r09_pressure_is_told_once_and_again_after_it_was_gone():
    operator = PassOn()
    inner = Inner(operator)
    assert pressed(inner) == 0
    operator.full = True
    assert pressed(inner) == 1
    assert pressed(inner) == 1
    operator.full = False
    pressed(inner)
    operator.full = True
    assert pressed(inner) == 2


def test_r09_who_is_still_full_after_a_decision_or_an_abort_asks_again():
    """Else the sources would hold still until the next periodic checkpoint, however long that is."""
    operator = PassOn()
    operator.full = True
    inner = Inner(operator)
    pressed(inner)
    inner.abort(1)
    assert pressed(inner) == 2
    inner.decided(2)
    assert pressed(inner) == 3


# --- timers and the end


def test_r28_processing_time_starts_at_the_checkpoint_and_never_goes_back():
    operator = PassOn()
    clock = SetClock(5_000)
    inner = Inner(operator, clock=clock, reached_ms=8_000)
    operator.timer_ms = 7_000
    inner.rig.step()
    assert operator.seen == [("timer", 8_000)], "the machine's clock is behind; the checkpoint's time counts"
    clock.now_ms = 9_000
    operator.timer_ms = 9_000
    inner.rig.step()
    clock.now_ms = 1_000  # set back by hand
    operator.timer_ms = 9_000
    inner.rig.step()
    assert operator.seen[1:] == [("timer", 9_000), ("timer", 9_000)]
    (ack,) = inner.feed(barrier(1)).rig.acknowledged()
    assert ack.snapshot.processing_time_ms == 9_000


def test_a_timer_waits_for_room_downstream():
    operator = PassOn()
    inner = Inner(operator, batches_max=1).feed(batch("a"))
    operator.timer_ms = 0
    assert not inner.rig.step()
    inner.rig.sent()
    assert inner.rig.step()
    assert inner.rig.sent() == [["timer"]]


def test_nothing_comes_behind_the_end_of_input():
    operator = PassOn()
    inner = Inner(operator).feed(batch("a"), EndOfInput())
    operator.timer_ms = 0
    inner.rig.run()
    assert inner.rig.sent()[-1] == "end"
    assert inner.rig.subtask.next_processing_time_ms() is None
    (ack,) = inner.feed(barrier(1, CheckpointKind.LAST)).rig.acknowledged()
    assert ack.snapshot.finished


def test_close_discards_what_is_being_written():
    operator = Failing(Unavailable("too late"))
    inner = Inner(operator).feed(barrier(1))
    inner.rig.subtask.close()
    assert operator.discarded == 1
