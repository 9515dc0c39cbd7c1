"""What leaves a subtask: each record to the owner of its key, marks to everybody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.channels.memory import MemoryChannel
from processor.errors import EngineBug
from processor.ids import Attempt, CheckpointId, owner_of
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import Barrier, EndOfInput, Idle, Watermark
from processor.records.key_groups import key_group
from processor.task.output_gate import ForwardOutput, KeyedOutput, OutputGate
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
    output = ForwardOutput(senders)
    for value in "abc":
        output.emit(Batch(values=[value], timestamps=[0]))
    assert [drain(sender) for sender in senders] == [[["a"], ["c"]], [["b"]]]


def test_marks_go_to_every_channel_of_every_output():
    first, second = channels(2), channels(1)
    gate = OutputGate([KeyedOutput(first, LIMIT), ForwardOutput(second)])
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
    gate = OutputGate([ForwardOutput([full]), ForwardOutput([free])])
    assert gate.ready()
    full.send(Batch(values=["a"], timestamps=[0]))
    assert not gate.ready()
    gate.mark(Watermark(1))
    full.take()
    assert gate.ready()


def test_a_subtask_without_outputs_is_always_ready():
    assert OutputGate([]).ready()
