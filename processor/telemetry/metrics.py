"""Counters and gauges by step and name; read as data, by whoever wants to show them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from processor.ids import StepName

N = TypeVar("N", int, float)

SERIES_MAX: Final = 10_000
"""Different (step, name) pairs of one registry. Names never come from records; should one all the same,
memory stays bounded and ``series_refused`` tells."""

ENGINE = StepName("")
"""The step of what belongs to no step."""

SERIES_REFUSED: Final = "series_refused"
"""Counter of the engine: updates dropped because of SERIES_MAX."""


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """The name of one counter or gauge."""

    step: StepName
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSnapshot:
    """All values at one moment. Counters only grow within a process; gauges are the last value set."""

    counters: Mapping[Series, int] = field(default_factory=dict)
    gauges: Mapping[Series, float] = field(default_factory=dict)

    def total(self, name: str) -> int:
        """Sum of a counter over all steps; 0 when nobody counted."""
        return sum(value for series, value in self.counters.items() if series.name == name)

    def count(self, step: StepName, name: str) -> int:
        """One counter; 0 when nobody counted."""
        return self.counters.get(Series(step, name), 0)

    def by_step(self, *, but: Collection[str] = ()) -> Mapping[str, Mapping[str, int]]:
        """All counters, by step and name in their order, without those called ``but``."""
        return _by_step({series: value for series, value in self.counters.items() if series.name not in but})

    def gauges_by_step(self) -> Mapping[str, Mapping[str, float]]:
        """All gauges, by step and name in their order."""
        return _by_step(self.gauges)


class Metrics:
    """A registry. Calls come from any thread, once a batch or less often, so one lock is cheap enough."""

    def __init__(self, *, series_max: int = SERIES_MAX) -> None:
        self._series_max = series_max
        self._lock = threading.Lock()
        self._counters: dict[Series, int] = {}
        self._gauges: dict[Series, float] = {}
        self._elsewhere: dict[str, tuple[str, MetricsSnapshot]] = {}
        """The newest of other processes."""

    def count(self, step: StepName, name: str, by: int = 1) -> None:
        """Add to a counter. Raises ValueError when ``by`` is negative: counters only grow."""
        if by < 0:
            raise ValueError(f"counter '{name}' of step '{step}' cannot go back by {-by}")
        series = Series(step, name)
        with self._lock:
            if series in self._counters or self._has_room():
                self._counters[series] = self._counters.get(series, 0) + by
            else:
                self._refuse()

    def set(self, step: StepName, name: str, value: float) -> None:
        """Set a gauge."""
        series = Series(step, name)
        with self._lock:
            if series in self._gauges or self._has_room():
                self._gauges[series] = value
            else:
                self._refuse()

    def told(self, by: str, process: str, snapshot: MetricsSnapshot) -> None:
        """The newest values of another process. Of an earlier one in its place, what it has counted stays, and what
        it measured does not. ``process``: another for each."""
        with self._lock:
            before, last = self._elsewhere.get(by, (process, snapshot))
            if before != process:
                self._counters = _sum(self._counters, last.counters)
            self._elsewhere[by] = (process, snapshot)

    def counter_of(self, step: StepName) -> Callable[[str, int], None]:
        """The ``count`` that contexts hand to sources, sinks and operators."""

        def count(name: str, by: int) -> None:
            self.count(step, name, by)

        return count

    def snapshot(self) -> MetricsSnapshot:
        """Of this process and of those that told."""
        with self._lock:
            counters, gauges = dict(self._counters), dict(self._gauges)
            for _, told in self._elsewhere.values():
                counters = _sum(counters, told.counters)
                gauges = _sum(gauges, told.gauges)
        return MetricsSnapshot(counters=counters, gauges=gauges)

    def _has_room(self) -> bool:
        return len(self._counters) + len(self._gauges) < self._series_max

    def _refuse(self) -> None:
        refused = Series(ENGINE, SERIES_REFUSED)
        self._counters[refused] = self._counters.get(refused, 0) + 1


def _by_step(values: Mapping[Series, N]) -> dict[str, dict[str, N]]:
    found: dict[str, dict[str, N]] = {}
    for series, value in sorted(values.items()):
        found.setdefault(series.step, {})[series.name] = value
    return found


def _sum(one: Mapping[Series, N], other: Mapping[Series, N]) -> dict[Series, N]:
    """What is measured in several processes is measured of their parts, such as a lag."""
    total = dict(one)
    for series, value in other.items():
        total[series] = total[series] + value if series in total else value
    return total
