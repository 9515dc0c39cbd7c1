"""Elements in order, and barriers pulled out of their turn."""

from __future__ import annotations

from processor.channels.queue import ElementQueue
from processor.ids import Attempt, CheckpointId
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import Barrier, Element


def barrier(number: int) -> Barrier:
    return Barrier(attempt=Attempt(1), checkpoint=CheckpointId(number), kind=CheckpointKind.PERIODIC)


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise AssertionError("nobody asks whether values are equal")

    __hash__ = None  # type: ignore[assignment]


def test_a10_the_barrier_that_was_named_is_pulled_and_not_one_that_is_equal():
    queue: ElementQueue[Element] = ElementQueue()
    value = Batch(values=[Incomparable()], timestamps=[0])
    first, second = barrier(1), barrier(1)
    for element in (value, first, value, second):
        queue.put(element)
    in_front = queue.pull(second)
    assert [found is element for found, element in zip(in_front, (value, first, value), strict=True)] == [
        True
    ] * 3
    (left,) = queue.barriers()
    assert left is first
    (in_front_of_first,) = queue.pull(first)
    assert in_front_of_first is value
    assert not queue.barriers()
    assert [queue.pop() is value, queue.pop() is value, queue.front()] == [True, True, None]
