"""The link between two subtasks of one worker: in order, bounded, open for marks."""

from __future__ import annotations

from processor.channels.memory import MemoryChannel
from processor.records.batch import Batch
from processor.records.elements import Element, Watermark


def batch(value) -> Batch:
    return Batch(values=[value], timestamps=[0])


def test_elements_come_out_in_the_order_in_which_they_went_in():
    channel = MemoryChannel(10)
    elements: list[Element] = [batch("a"), Watermark(1), batch("b"), Watermark(2)]
    for element in elements:
        channel.send(element)
    assert channel.peek() is elements[0]
    assert channel.peek() is elements[0], "looking takes nothing"
    assert [channel.take() for _ in elements] == elements
    assert channel.peek() is None


def test_batches_are_bounded_and_taking_one_makes_room():
    channel = MemoryChannel(2)
    channel.send(batch("a"))
    assert channel.ready()
    channel.send(batch("b"))
    assert not channel.ready()
    channel.take()
    assert channel.ready()


def test_the_bound_is_soft_by_what_one_step_emits():
    channel = MemoryChannel(1)
    for value in range(3):
        channel.send(batch(value))
    assert not channel.ready()
    for _ in range(2):
        channel.take()
        assert not channel.ready()
    channel.take()
    assert channel.ready()


def test_marks_take_no_room_so_that_no_barrier_waits_for_itself():
    channel = MemoryChannel(1)
    channel.send(batch("a"))
    for time_ms in range(100):
        channel.send(Watermark(time_ms))
    channel.take()
    assert channel.ready()
