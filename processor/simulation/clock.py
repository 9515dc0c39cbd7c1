"""Clock and chance of a simulated process."""

from __future__ import annotations

from random import Random

from processor.simulation.process import SimulatedProcess
from processor.simulation.world import World

WALL_START_MS = 1_700_000_000_000
"""Where the wall clock of a simulated world begins."""


class WallClock:
    """The wall clock that all processes of a machine share; it may jump."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.offset_ms = 0

    def now_ms(self) -> int:
        return WALL_START_MS + self._world.now_ms + self.offset_ms


class SimulatedClock:
    """See ``processor.contracts.clock.Clock``."""

    def __init__(self, process: SimulatedProcess, wall: WallClock) -> None:
        self._process = process
        self._wall = wall

    def monotonic_ms(self) -> int:
        self._process.check()
        return self._process.world.now_ms

    def wall_ms(self) -> int:
        self._process.check()
        return self._wall.now_ms()


class SeededChance:
    """See ``processor.contracts.chance.Chance``."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def token(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
