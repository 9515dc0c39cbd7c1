"""The way to the brokers: what becomes of each request. What connectors' simulated twins see of the world."""

from __future__ import annotations

from collections.abc import Callable

from processor.contracts.simulated import Fate
from processor.simulation.clock import WALL_START_MS
from processor.simulation.injection import Injection
from processor.simulation.process import SimulatedProcess
from processor.simulation.world import US_PER_MS, World

QUICK_US_MAX = 1_500
SLOW_MS_MAX = 4_000
LATE_MS_MAX = 60_000
SOON_LATE_MS_MAX = 5_000
MARKER_QUICK_MS_MAX = 12
LEADER_AWAY_MS_MAX = 12_000
MARKER_LATE_MS_MAX = 2_500


class SimulatedNetwork:
    """See ``processor.contracts.simulated.OutsideWorld``."""

    def __init__(self, world: World, injection: Injection) -> None:
        self._world = world
        self._injection = injection
        self._chance = world.chance("network")
        self._nonces = 0
        self._away_until_us = 0
        self._cut_until_us: dict[SimulatedProcess, int] = {}

    # --- faults

    def away(self, duration_us: int) -> None:
        """The brokers answer nobody for so long."""
        self._away_until_us = max(self._away_until_us, self._world.now_us + duration_us)

    def cut(self, process: SimulatedProcess, duration_us: int) -> None:
        """The process does not reach the brokers for so long."""
        self._cut_until_us[process] = self._world.now_us + duration_us

    # --- the world as connectors see it

    def now_ms(self) -> int:
        return WALL_START_MS + self._world.now_ms

    def wait(self, wait_ms: int) -> None:
        self._check()
        self._world.wait_us(wait_ms * US_PER_MS)

    def exchange(self, request: str, client: int) -> Fate:
        task = self._world.running
        if task is None:  # who looks from outside of the world
            return Fate.DELIVERED
        process = task.process
        process.check()
        faults, draw, who = self._injection.faults, self._injection.draw, process.name
        delay_us = self._chance.randint(50, QUICK_US_MAX)
        # Clients read ahead in the background: a slow answer there keeps nobody waiting.
        slow = 0.0 if request.startswith("Fetch") else faults.request_slow
        if draw("request slow", slow, who, f"slow: {request}"):
            delay_us = self._chance.randint(1, SLOW_MS_MAX) * US_PER_MS
        self._world.wait_us(delay_us)
        now_us = self._world.now_us
        if self._away_until_us > now_us or self._cut_until_us.get(process, 0) > now_us:
            return Fate.REQUEST_LOST
        if draw("request lost", faults.request_lost, who, f"lost: {request}"):
            return Fate.REQUEST_LOST
        if draw("answer lost", faults.answer_lost, who, f"no answer to: {request}"):
            return Fate.ANSWER_LOST
        if draw("request doubled", faults.request_doubled, who, f"twice: {request}"):
            return Fate.DOUBLED
        return Fate.DELIVERED

    def late(self, request: str) -> int | None:
        faults, draw = self._injection.faults, self._injection.draw
        if not draw("comes late", faults.lost_comes_late, "network", f"comes late: {request}"):
            return None
        longest = LATE_MS_MAX if self._chance.random() < 0.1 else SOON_LATE_MS_MAX
        return self._chance.randint(1, longest)

    def nonce(self) -> str:
        self._nonces += 1
        return f"nonce-{self._nonces}"

    def stale_read(self, group: str) -> bool:
        faults = self._injection.faults
        return self._injection.draw("stale read", faults.stale_reads, "network", f"stale read of {group}")

    def visible_after_ms(self, partition: str) -> int:
        faults = self._injection.faults
        if self._injection.draw("late marker", faults.late_markers, "network", f"late marker: {partition}"):
            return self._chance.randint(1, MARKER_LATE_MS_MAX)
        return self._chance.randint(0, MARKER_QUICK_MS_MAX)

    def leader_away_ms(self, partition: str) -> int:
        faults = self._injection.faults
        if not self._injection.draw("leader lost", faults.leaders_lost, "network", f"no leader: {partition}"):
            return 0
        return self._injection.chance("leader lost").randint(1, LEADER_AWAY_MS_MAX)

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._world.later(delay_ms * US_PER_MS, act)

    def _check(self) -> None:
        task = self._world.running
        if task is not None:
            task.process.check()
