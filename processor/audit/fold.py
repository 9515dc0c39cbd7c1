"""The expected answer, and how an answer met differs from it. Shares nothing with the engine.

Two kinds: running counts by key, and sequences that come out as they went in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Deviation(StrEnum):
    """What can be wrong with one record of the output."""

    DUPLICATE = "duplicate"
    OUT_OF_ORDER = "out of order"
    INVENTED = "invented"
    """Nothing read so far, nor anything behind it, gives this record."""
    AHEAD = "ahead"
    """It belongs to input behind the newest decided checkpoint: right only while the job runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldFigures:
    """How the output differs from the fold of the input."""

    expected: int
    """Records that must be there."""
    met: int
    """Records that are there."""
    losses: int
    deviations: dict[Deviation, int]
    lost_examples: tuple[str, ...]


EXAMPLES_MAX = 5


class CountFold:
    """A running count by key: the n-th record of a key gives n, for n = 1, 2, 3, … in this order."""

    def __init__(self) -> None:
        self._must: dict[Hashable, int] = {}
        self._may: dict[Hashable, int] = {}
        self._seen: dict[Hashable, int] = {}
        self._gaps: defaultdict[Hashable, set[int]] = defaultdict(set)
        self._before = 0
        self._met = 0
        self._deviations: Counter[Deviation] = Counter()

    def before(self, keys: Iterable[Hashable]) -> None:
        """Input that is counted but whose output is elsewhere: it was read before this output began."""
        must, seen = self._must, self._seen
        for key in keys:
            must[key] = seen[key] = must.get(key, 0) + 1
            self._before += 1

    def expect(self, keys: Iterable[Hashable]) -> None:
        """Input whose output must be there."""
        must, get = self._must, self._must.get
        for key in keys:
            must[key] = get(key, 0) + 1

    def allow(self, keys: Iterable[Hashable]) -> None:
        """Input behind the newest decided checkpoint; after all that is expected."""
        may, get = self._may, self._may.get
        for key in keys:
            may[key] = get(key, 0) + 1

    def meet(self, key: Hashable, count: int) -> Deviation | None:
        """One record of the output, in the order of its partition."""
        self._met += 1
        seen = self._seen.get(key, 0)
        must = self._must.get(key, 0)
        if count == seen + 1 and count <= must:  # the plain case
            self._seen[key] = count
            return None
        deviation = self._deviation(key, count, seen, must)
        if deviation is not None:
            self._deviations[deviation] += 1
        return deviation

    def _deviation(self, key: Hashable, count: int, seen: int, must: int) -> Deviation | None:
        if count < 1 or count > must + self._may.get(key, 0):
            return Deviation.INVENTED
        if count <= seen:
            if count not in self._gaps.get(key, ()):
                return Deviation.DUPLICATE
            self._gaps[key].discard(count)
            return Deviation.OUT_OF_ORDER
        if count > seen + 1:
            self._gaps[key].update(range(seen + 1, count))
        self._seen[key] = count
        return Deviation.AHEAD if count > must else None

    def count_of(self, key: Hashable) -> int:
        """How often a key was expected."""
        return self._must.get(key, 0)

    def counts(self) -> dict[Hashable, int]:
        """All keys with how often they were expected."""
        return self._must

    def figures(self) -> FoldFigures:
        lost = 0
        examples: list[str] = []
        for key, must in self._must.items():
            seen = self._seen.get(key, 0)
            missing = sorted(n for n in self._gaps.get(key, ()) if n <= must)
            missing += range(seen + 1, must + 1)
            lost += len(missing)
            if missing and len(examples) < EXAMPLES_MAX:
                examples.append(f"key {key!r:.60}: {len(missing)} of 1-{must}, first {missing[0]}")
        return FoldFigures(
            expected=sum(self._must.values()) - self._before,
            met=self._met,
            losses=lost,
            deviations=dict(self._deviations),
            lost_examples=tuple(examples),
        )


class SequenceFold:
    """Items that come out as they went in: within each group in order, each as often as it went in.

    A group without an order (records of one key that lie in several input partitions) is compared as a
    multiset.
    """

    def __init__(self) -> None:
        self._items: defaultdict[Hashable, list[Hashable]] = defaultdict(list)
        self._must: Counter[Hashable] = Counter()
        self._next: defaultdict[Hashable, int] = defaultdict(int)
        self._places: dict[Hashable, dict[Hashable, list[int]]] = {}
        self._taken: defaultdict[Hashable, set[int]] = defaultdict(set)
        self._unordered: set[Hashable] = set()
        self._met = 0
        self._deviations: Counter[Deviation] = Counter()

    def expect(self, group: Hashable, item: Hashable) -> None:
        """An item that must come out; all of them before those that may."""
        self._items[group].append(item)
        self._must[group] += 1

    def allow(self, group: Hashable, item: Hashable) -> None:
        """An item behind the newest decided checkpoint."""
        self._items[group].append(item)

    def disorder(self, group: Hashable) -> None:
        """The group has no order that could be kept."""
        self._unordered.add(group)

    def meet(self, group: Hashable, item: Hashable) -> Deviation | None:
        """One record of the output, in the order of its partition."""
        self._met += 1
        at = self._next[group]
        items = self._items.get(group, ())
        if at < len(items) and items[at] == item and group not in self._taken:
            self._next[group] = at + 1
            deviation = Deviation.AHEAD if at >= self._must[group] else None
        else:
            deviation = self._search(group, item)
        if deviation is not None:
            self._deviations[deviation] += 1
        return deviation

    def _search(self, group: Hashable, item: Hashable) -> Deviation | None:
        """The item is not the next one. From here on the group is looked up place by place."""
        places = self._places.get(group)
        if places is None:
            places = {}
            for place, known in enumerate(self._items.get(group, ())):
                places.setdefault(known, []).append(place)
            self._places[group] = places
            self._taken[group] = set(range(self._next[group]))
        if item not in places:
            return Deviation.INVENTED
        taken = self._taken[group]
        free = [place for place in places[item] if place not in taken]
        if not free:
            return Deviation.DUPLICATE
        later = [place for place in free if place >= self._next[group]]
        place = (later or free)[0]
        taken.add(place)
        self._next[group] = max(self._next[group], place + 1)
        if place >= self._must[group]:
            return Deviation.AHEAD
        return None if later or group in self._unordered else Deviation.OUT_OF_ORDER

    def figures(self) -> FoldFigures:
        lost = 0
        examples: list[str] = []
        for group, must in self._must.items():
            taken = self._taken.get(group)
            reached = self._next[group]
            missing = (
                [place for place in range(must) if place not in taken]
                if taken is not None
                else range(reached, must)
            )
            lost += len(missing)
            if missing and len(examples) < EXAMPLES_MAX:
                first = self._items[group][missing[0]]
                examples.append(f"{group!r:.60}: {len(missing)} of {must}, first {first!r:.60}")
        return FoldFigures(
            expected=sum(self._must.values()),
            met=self._met,
            losses=lost,
            deviations=dict(self._deviations),
            lost_examples=tuple(examples),
        )
