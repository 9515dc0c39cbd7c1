"""Puts faults into a run: draws by the seed, counts, and stops when faults stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from processor.fault_points import OF_WORKERS, FaultPoint
from processor.simulation.faults import VICTIM, Act, Faults
from processor.simulation.world import US_PER_MS, World

ACT_AT_POINT = (Act.KILL, Act.KILL, Act.SLEEP, Act.REPLACE, Act.REPLACE, Act.CUT, Act.AWAY, Act.CRASH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Which of the faults that a seed brings are let happen; for cutting a failing seed down."""

    first: int | None = None
    """Only so many."""
    without: frozenset[int] = frozenset()
    """None of these, by their numbers."""


NO_LIMIT = Limit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A named point that is struck: the first time it is passed after a moment."""

    after_ms: int
    point: FaultPoint
    act: Act


RARE_SHARE = 0.5
"""Of the strikes of a case with rare points: at one of them."""


def applies(point: FaultPoint, act: Act) -> bool:
    """Whether an act can happen at a point. While a job stops with a savepoint nobody replaces it: what another
    process publishes behind the savepoint could not be taken back (R3)."""
    return not (point is FaultPoint.SAVEPOINT_WRITTEN and act is Act.REPLACE)


class Injection:
    """All draws about faults of one run."""

    def __init__(
        self,
        world: World,
        faults: Faults,
        limit: Limit = NO_LIMIT,
        rare_points: Sequence[FaultPoint] = (),
        *,
        in_workers: bool = False,
    ) -> None:
        """``in_workers``: there are worker processes, which pass points of their own."""
        self.faults = faults
        self.by_kind: Counter[str] = Counter()
        self.cells: Counter[tuple[str, str, str]] = Counter()
        """Struck points: (point, victim, act)."""
        self.passed: Counter[FaultPoint] = Counter()
        self.met: Counter[str] = Counter()
        """What faults have led to between workers and their coordinator, in words."""
        self.numbered = 0
        self.stopped = False
        self._world = world
        self._limit = limit
        self._chances: dict[str, Random] = {}
        self._strikes = self._planned(rare_points, in_workers)

    @property
    def active(self) -> bool:
        return not self.stopped and self._world.now_ms < self.faults.until_ms

    def stop(self) -> None:
        """No more faults, whatever the time."""
        self.stopped = True

    def draw(self, kind: str, probability: float, who: str, what: str) -> bool:
        """Whether a fault of a kind happens now; if so it is counted and noted."""
        if not probability or not self.active:
            return False
        if self.chance(kind).random() >= probability:
            return False
        return self.happens(kind, who, what)

    def happens(self, kind: str, who: str, what: str) -> bool:
        """Count and note a fault; False when the limit keeps it from happening."""
        self.numbered += 1
        number = self.numbered
        if (self._limit.first is not None and number > self._limit.first) or number in self._limit.without:
            return False
        self.by_kind[kind] += 1
        self._world.note(who, f"FAULT {number}: {what}")
        return True

    def chance(self, kind: str) -> Random:
        """One stream for each kind of fault."""
        chance = self._chances.get(kind)
        if chance is None:
            chance = self._chances[kind] = self._world.chance(f"fault {kind}")
        return chance

    def passing(self, point: FaultPoint, who: str) -> Act | None:
        """What is done to the process that passes the point now."""
        self.passed[point] += 1
        if not self._strikes or not self.active:
            return None
        for strike in self._strikes:
            if strike.point is point and self._world.now_ms >= strike.after_ms:
                self._strikes.remove(strike)
                if not self.happens(f"point {strike.act}", who, f"{strike.act} at {point}"):
                    return None
                self.cells[point.value, VICTIM[strike.act], strike.act.value] += 1
                return strike.act
        return None

    def _planned(self, rare_points: Sequence[FaultPoint], in_workers: bool) -> list[Strike]:
        chance = self._world.chance("points")
        points = [point for point in FaultPoint if point not in OF_WORKERS]
        strikes = []
        for _ in range(self._number(chance)):
            rare = bool(rare_points) and chance.random() < RARE_SHARE
            strikes.append(self._strike(chance, rare_points if rare else points, at_once=rare))
        if in_workers:
            # A draw of its own: a seed with workers strikes the other points as it does without.
            chance = self._world.chance("points of workers")
            strikes += [self._strike(chance, OF_WORKERS) for _ in range(self._number(chance))]
        return sorted(strikes, key=lambda strike: strike.after_ms)

    def _number(self, chance: Random) -> int:
        """Of strikes, ``Faults.points`` on average."""
        points, number = self.faults.points, 0
        while chance.random() < points / (1 + points):
            number += 1
        return number

    def _strike(self, chance: Random, points: Sequence[FaultPoint], *, at_once: bool = False) -> Strike:
        point, act = chance.choice(points), chance.choice(ACT_AT_POINT)
        return Strike(
            after_ms=0 if at_once else chance.randrange(max(1, self.faults.until_ms)),
            point=point,
            act=act if applies(point, act) else Act.SLEEP,
        )

    def next_us(self, kind: str, per_minute: float) -> int | None:
        """Until the next fault of a rate; None when there is none."""
        if not per_minute:
            return None
        return int(self.chance(kind).expovariate(per_minute) * 60_000 * US_PER_MS)
