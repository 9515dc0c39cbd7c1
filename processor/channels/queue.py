"""Elements in order, of which barriers are seen ahead of their turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Generic, TypeVar

from processor.records.elements import Barrier

T = TypeVar("T")


class ElementQueue(Generic[T]):
    """The consumer's end of a channel, whatever its elements come by."""

    def __init__(self) -> None:
        self._elements: deque[T | Barrier] = deque()
        self._barriers: deque[Barrier] = deque()

    def put(self, element: T | Barrier) -> None:
        if isinstance(element, Barrier):
            self._barriers.append(element)
        self._elements.append(element)

    def front(self) -> T | Barrier | None:
        return self._elements[0] if self._elements else None

    def pop(self) -> T | Barrier:
        element = self._elements.popleft()
        if isinstance(element, Barrier):
            self._barriers.popleft()
        return element

    def barriers(self) -> Sequence[Barrier]:
        return self._barriers

    def pull(self, barrier: Barrier) -> tuple[T | Barrier, ...]:
        """Take a barrier out of its turn; returns what was in front of it, which stays."""
        place = _place(self._elements, barrier)
        in_front = tuple(islice(self._elements, place))
        del self._elements[place]
        del self._barriers[_place(self._barriers, barrier)]
        return in_front


def _place(among: Iterable[object], wanted: object) -> int:
    """By identity: a batch may hold values whose comparison is anything, and two barriers may be equal."""
    return next(place for place, element in enumerate(among) if element is wanted)
