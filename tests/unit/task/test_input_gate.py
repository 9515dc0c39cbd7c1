"""What enters a subtask: fair turns, alignment, the minimum of watermarks."""

from __future__ import annotations

from processor.channels.memory import MemoryChannel
from processor.ids import Attempt, CheckpointId
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import MAX_TIME_MS, Barrier, EndOfInput, Idle, Watermark
from processor.task.input_gate import (
    AllEnded,
    AllIdle,
    CutNow,
    EventTime,
    InputChannel,
    InputGate,
    Nothing,
    Records,
)


def batch(*values) -> Batch:
    return Batch(values=list(values), timestamps=[0] * len(values))


def barrier(checkpoint: int, kind: CheckpointKind = CheckpointKind.PERIODIC) -> Barrier:
    return Barrier(attempt=Attempt(1), checkpoint=CheckpointId(checkpoint), kind=kind)


class Gate:
    def __init__(self, channels: int, inputs=None) -> None:
        self.channels = [MemoryChannel(100) for _ in range(channels)]
        self.gate = InputGate(
            [
                InputChannel(input=input, receiver=channel)
                for input, channel in zip(inputs or range(channels), self.channels, strict=True)
            ]
        )
        self.now_ms = 0

    def put(self, channel: int, *elements) -> Gate:
        for element in elements:
            self.channels[channel].send(element)
        return self

    def next(self):
        return self.gate.next(self.now_ms)

    def all(self) -> list:
        """Every event until nothing comes, without those that mean nothing."""
        events = []
        while (event := self.next()) is not None:
            if not isinstance(event, Nothing):
                events.append(short(event))
        return events


def short(event):
    match event:
        case Records(input=input, batch=found):
            return (input, *found.values)
        case EventTime(time_ms=time_ms):
            return time_ms
        case CutNow(checkpoint=checkpoint):
            return f"cut {checkpoint}"
        case AllIdle():
            return "idle"
        case AllEnded():
            return "ended"


def test_one_element_at_a_time_and_none_when_there_is_none():
    gate = Gate(1).put(0, batch("a"), batch("b"))
    assert short(gate.next()) == (0, "a")
    assert short(gate.next()) == (0, "b")
    assert gate.next() is None


def test_channels_take_turns_so_that_a_full_one_starves_nobody():
    gate = Gate(3)
    for number in range(4):
        gate.put(0, batch(f"a{number}"))
    gate.put(1, batch("b")).put(2, batch("c"))
    assert gate.all() == [(0, "a0"), (1, "b"), (2, "c"), (0, "a1"), (0, "a2"), (0, "a3")]


def test_records_name_the_input_and_not_the_channel():
    gate = Gate(3, inputs=[0, 0, 1]).put(1, batch("x")).put(2, batch("y"))
    assert gate.all() == [(0, "x"), (1, "y")]


# --- barriers


def test_a_channel_that_delivered_the_barrier_waits_for_the_others():
    gate = Gate(2).put(0, batch("a"), barrier(1), batch("after")).put(1, batch("b1"), batch("b2"))
    assert gate.all() == [(0, "a"), (1, "b1"), (1, "b2")], "what is behind the barrier is not read"
    gate.put(1, barrier(1), batch("b3"))
    assert gate.all() == ["cut 1", (0, "after"), (1, "b3")]


def test_a09_the_alignment_time_is_from_the_first_barrier_to_the_last():
    gate = Gate(2).put(0, barrier(1))
    gate.now_ms = 100
    assert gate.all() == []
    gate.now_ms = 160
    event = gate.put(1, barrier(1)).next()
    assert isinstance(event, CutNow)
    assert event.alignment_ms == 60


def test_one_channel_aligns_by_itself_in_no_time():
    event = Gate(1).put(0, barrier(1)).next()
    assert isinstance(event, CutNow)
    assert event.alignment_ms == 0


def test_an_aborted_checkpoint_lets_its_channels_run_again():
    gate = Gate(2).put(0, barrier(1), batch("after"))
    assert gate.all() == []
    gate.gate.over(CheckpointId(1))
    assert gate.all() == [(0, "after")]


def test_r26_the_barrier_of_an_aborted_checkpoint_is_late():
    gate = Gate(2).put(0, barrier(1), batch("a"))
    gate.all()
    gate.gate.over(CheckpointId(1))
    assert gate.put(1, barrier(1), batch("b")).all() == [(0, "a"), (1, "b")]
    assert gate.put(0, barrier(2)).put(1, barrier(2)).all() == ["cut 2"]


def test_a09_barriers_still_come_behind_the_end_of_input():
    gate = Gate(2).put(0, EndOfInput(), barrier(1)).put(1, batch("b"), barrier(1), EndOfInput())
    assert gate.all() == [(1, "b"), "cut 1", "ended"]


# --- event time


def test_event_time_is_the_minimum_over_channels_and_never_goes_back():
    gate = Gate(2).put(0, Watermark(10))
    assert gate.all() == []
    assert gate.put(1, Watermark(7)).all() == [7]
    assert gate.put(1, Watermark(20)).all() == [10]
    assert gate.put(0, Watermark(3)).all() == []
    assert gate.put(0, Watermark(15)).all() == [15]


def test_an_idle_channel_holds_nobody_back():
    gate = Gate(2).put(0, Watermark(10)).put(1, Idle())
    assert gate.all() == [10]


def test_all_idle_is_told_once_and_time_is_told_again_afterwards():
    gate = Gate(2).put(0, Watermark(10), Idle()).put(1, Watermark(12), Idle())
    assert gate.all() == [10, 12, "idle"]
    assert gate.put(0, Idle()).all() == []
    assert gate.put(0, Watermark(11)).all() == [12], "not back, but told: who waits below knows we are there"


def test_records_do_not_wake_a_channel_that_never_tells_the_time():
    """A union of a source with event time and one without: the second says once that it is idle."""
    gate = Gate(2).put(1, Idle(), batch("no time"))
    assert gate.all() == [(1, "no time")]
    assert gate.put(0, Watermark(10)).all() == [10]


def test_a_channel_that_has_not_said_anything_holds_event_time():
    gate = Gate(2).put(0, Watermark(10), Watermark(20)).put(1, batch("b"))
    assert gate.all() == [(1, "b")]


def test_an_ended_channel_holds_nobody_back_and_the_last_ends_all():
    gate = Gate(2).put(0, Watermark(5)).put(1, EndOfInput())
    assert gate.all() == [5]
    assert not gate.gate.ended
    assert gate.put(0, Watermark(MAX_TIME_MS), EndOfInput()).all() == [MAX_TIME_MS, "ended"]
    assert gate.gate.ended


def test_ended_beside_idle_is_idle():
    gate = Gate(2).put(0, EndOfInput()).put(1, Watermark(3), Idle())
    assert gate.all() == [3, "idle"]
