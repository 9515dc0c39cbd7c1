"""A channel inside one process: a bounded queue used by one thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from processor.records.batch import Batch
from processor.records.elements import Barrier, Element


class MemoryChannel:
    """Both ends of a channel between two subtasks of one worker.

    ``batches_max`` bounds the batches that wait. It is soft by what one step of the producer emits: the
    producer looks before a step, not inside it. Marks always go in, or a barrier could wait for itself.
    """

    def __init__(self, batches_max: int) -> None:
        self._elements: deque[Element] = deque()
        self._barriers: deque[Barrier] = deque()
        self._batches_max = batches_max
        self._batches = 0

    def ready(self) -> bool:
        return self._batches < self._batches_max

    def send(self, element: Element) -> None:
        if isinstance(element, Batch):
            self._batches += 1
        elif isinstance(element, Barrier):
            self._barriers.append(element)
        self._elements.append(element)

    def peek(self) -> Element | None:
        return self._elements[0] if self._elements else None

    def take(self) -> Element:
        element = self._elements.popleft()
        if isinstance(element, Batch):
            self._batches -= 1
        elif isinstance(element, Barrier):
            self._barriers.popleft()
        return element

    def barriers(self) -> Sequence[Barrier]:
        return self._barriers

    def overtake(self, barrier: Barrier) -> tuple[Element, ...]:
        # By identity: a batch may hold values whose comparison is anything.
        place = next(i for i, element in enumerate(self._elements) if element is barrier)
        in_front = tuple(islice(self._elements, place))
        del self._elements[place]
        self._barriers.remove(barrier)
        return in_front
