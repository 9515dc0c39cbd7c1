"""What leaves a subtask: each record to the owner of its key, marks to everybody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.channels.memory import MemoryChannel
from processor.errors import EngineBug, UserCodeError, Where
from processor.ids import Attempt, CheckpointId, SplitId, StepName, owner_of
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import Barrier, EndOfInput, Idle, Watermark
from processor.records.key_groups import key_group
from processor.task.output_gate import InTurnOutput, KeyedOutput, OutputGate, PartitionedOutput
from tests.unit.task.kit import drain

LIMIT = 16


def channels(number: int, batches_max: int = 8) -> list[MemoryChannel]:
    return [MemoryChannel(batches_max) for _ in range(number)]


def keyed(keys) -> Batch:
    return Batch(values=list(range(len(keys))), timestamps=list(range(len(keys))), keys=list(keys))


@given(
    batches=st.lists(st.lists(st.text(max_size=2) | st.integers(0, 30), min_size=1, max_size=12), max_size=6),
    consumers=st.integers(1, 4),
)
def test_each_record_goes_once_to_the_owner_of_its_key_group_in_order(batches, consumers):
    senders = channels(consumers)
    output = KeyedOutput(senders, LIMIT)
    expected: list[list[tuple]] = [[] for _ in senders]
    for keys in batches:
        output.emit(keyed(keys))
        for number, key in enumerate(keys):
            expected[owner_of(key_group(key, LIMIT), consumers, LIMIT)].append((key, number, number))
    for sender, wanted in zip(senders, expected, strict=True):
        found = []
        while sender.peek() is not None:
            part = sender.take()
            assert isinstance(part, Batch)
            assert len(part) > 0, "no empty batch travels"
            found += list(zip(part.keys or (), part.values, part.timestamps, strict=True))
        assert found == wanted


def test_a_batch_that_goes_to_one_owner_is_not_copied():
    senders = channels(2)
    batch = keyed(["a"] * 3)
    KeyedOutput(senders, LIMIT).emit(batch)
    assert any(sender.peek() is batch for sender in senders)


def test_records_without_keys_on_a_keyed_edge_are_a_bug():
    with pytest.raises(EngineBug, match="carry keys"):
        KeyedOutput(channels(2), LIMIT).emit(Batch(values=[1], timestamps=[0]))


def test_forward_to_several_gives_whole_batches_in_turn():
    senders = channels(2)
    output = InTurnOutput(senders)
    for value in "abc":
        output.emit(Batch(values=[value], timestamps=[0]))
    assert [drain(sender) for sender in senders] == [[["a"], ["c"]], [["b"]]]


def test_producers_that_spread_do_not_all_begin_with_the_same_consumer():
    senders = channels(2)
    for producer in range(4):
        InTurnOutput(senders, first=producer).emit(Batch(values=[producer], timestamps=[0]))
    assert [drain(sender) for sender in senders] == [[[0], [2]], [[1], [3]]]


@given(
    batches=st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=12), max_size=6),
    consumers=st.integers(1, 4),
)
def test_each_record_goes_once_where_its_number_says_in_order(batches, consumers):
    senders = channels(consumers)
    output = PartitionedOutput(senders, lambda value: value[0], StepName("deal"))
    given_ = [[(number, place) for place, number in enumerate(numbers)] for numbers in batches]
    for values in given_:
        output.emit(Batch(values=values, timestamps=[0] * len(values)))
    for index, sender in enumerate(senders):
        found = [value for part in drain(sender) for value in part]
        assert found == [v for values in given_ for v in values if v[0] % consumers == index]


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (lambda value: 1 // (value - 1), "raised ZeroDivisionError"),
        (lambda value: "b" if value == 1 else 0, "gave 'b', which is no whole number"),
        (lambda value: value == 1 or 2, "gave True, which is no whole number"),
    ],
)
def test_what_gives_no_number_is_an_error_with_the_records_place(number, problem):
    batch = Batch(values=[0, 1, 2], timestamps=[0, 0, 0], split=SplitId("in/3"), offsets=[7, 8, 9])
    with pytest.raises(UserCodeError, match=problem) as raised:
        PartitionedOutput(channels(2), number, StepName("deal")).emit(batch)
    assert raised.value.where == Where(step=StepName("deal"), split=SplitId("in/3"), offset=8)


def test_marks_go_to_every_channel_of_every_output():
    first, second = channels(2), channels(1)
    gate = OutputGate([KeyedOutput(first, LIMIT), InTurnOutput(second)])
    for mark in (
        Watermark(5),
        Idle(),
        Barrier(attempt=Attempt(1), checkpoint=CheckpointId(3), kind=CheckpointKind.PERIODIC),
        EndOfInput(),
    ):
        gate.mark(mark)
    assert [drain(sender) for sender in (*first, *second)] == [[5, "idle", "barrier 3", "end"]] * 3


def test_one_full_channel_is_back_pressure_for_batches_and_not_for_marks():
    full, free = channels(2, batches_max=1)
    gate = OutputGate([InTurnOutput([full]), InTurnOutput([free])])
    assert gate.ready()
    full.send(Batch(values=["a"], timestamps=[0]))
    assert not gate.ready()
    gate.mark(Watermark(1))
    full.take()
    assert gate.ready()


def test_a_subtask_without_outputs_is_always_ready():
    assert OutputGate([]).ready()
