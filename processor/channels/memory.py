"""A channel inside one process: a bounded queue used by one thread."""

from __future__ import annotations

from collections.abc import Sequence

from processor.channels.queue import ElementQueue
from processor.records.batch import Batch
from processor.records.elements import Barrier, Element


class MemoryChannel:
    """Both ends of a channel between two subtasks of one worker.

    ``batches_max`` bounds the batches that wait. It is soft by what one step of the producer emits: the
    producer looks before a step, not inside it. Marks always go in, or a barrier could wait for itself.
    """

    def __init__(self, batches_max: int) -> None:
        self._queue: ElementQueue[Element] = ElementQueue()
        self._batches_max = batches_max
        self._batches = 0

    def ready(self) -> bool:
        return self._batches < self._batches_max

    def send(self, element: Element) -> None:
        if isinstance(element, Batch):
            self._batches += 1
        self._queue.put(element)

    def peek(self) -> Element | None:
        return self._queue.front()

    def take(self) -> Element:
        element = self._queue.pop()
        if isinstance(element, Batch):
            self._batches -= 1
        return element

    def barriers(self) -> Sequence[Barrier]:
        return self._queue.barriers()

    def overtake(self, barrier: Barrier) -> tuple[Element, ...]:
        return self._queue.pull(barrier)
