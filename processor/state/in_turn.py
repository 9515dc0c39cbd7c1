"""Places of a table in memory that are looked at in turn, a few at a time, while others come and go."""

from __future__ import annotations

from typing import Any

from processor.state.front import Front
from processor.state.map_values import MapValues
from processor.state.memory_values import MemoryValues


class Turns:
    """Every place that stays is given out in each round. Each call costs what it gives out, and what has gone since:
    no dict is looked through for its next few."""

    __slots__ = ("_at", "_gone", "_places")

    def __init__(self) -> None:
        self._places: list[Any] = []
        self._gone: set[Any] = set()
        """Of the places, those that are no more; they may come again."""
        self._at = 0

    def came(self, place: Any) -> None:
        """It was not there before."""
        if place in self._gone:
            self._gone.remove(place)
        else:
            self._places.append(place)

    def went(self, place: Any) -> None:
        """It was there before."""
        self._gone.add(place)

    def next(self, places_max: int) -> list[Any]:
        """Some places, as many as a round has at most. Where others have gone, one may come a little early.

        What has gone is let go of on the way and does not count: else each removal would cost two looks, and who
        looks at two places for each that comes would never be done with those that go.
        """
        places, gone = self._places, self._gone
        found: list[Any] = []
        for _ in range(len(places)):
            if len(found) == places_max:
                break
            if self._at >= len(places):
                self._at = 0
            place = places[self._at]
            if place not in gone:
                found.append(place)
                self._at += 1
                continue
            gone.remove(place)
            last = places.pop()
            if self._at < len(places):
                places[self._at] = last
        return found


class _InTurn(Front):
    """A front that also gives out what it has, in turn."""

    __slots__ = ()

    get: Any
    _turns: Turns

    def put(self, key: Any, value: Any) -> None:
        if value is not None and self.get(key) is None:
            self._turns.came(key)
        super().put(key, value)

    def remove(self, key: Any) -> None:
        if self.get(key) is not None:
            self._turns.went(key)
        super().remove(key)

    def some(self, places_max: int) -> list[tuple[Any, Any]]:
        """See ``KeyedState.some``."""
        return [(place, self.get(place)) for place in self._turns.next(places_max)]


class ValuesInTurn(_InTurn, MemoryValues):
    """See ``MemoryValues``."""

    __slots__ = ("_turns",)

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._turns = Turns()

    def restored(self) -> None:
        super().restored()
        for place, _ in self._store.entries():
            self._turns.came(place)


class MapsInTurn(_InTurn, MapValues):
    """See ``MapValues``."""

    __slots__ = ("_turns",)

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._turns = Turns()

    def restored(self) -> None:
        super().restored()
        for place, _ in self._store.entries():
            self._turns.came(place)
