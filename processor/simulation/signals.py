"""SIGTERM for a simulated process."""

from __future__ import annotations

from collections.abc import Callable

from processor.simulation.process import SimulatedProcess
from processor.simulation.world import US_PER_MS, Task


class SimulatedSignals:
    """See ``processor.runtime.supervisor.AskedToStop``."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self._asked = False
        self._look = False
        self._waiting: Task | None = None
        self.wake: Callable[[], None] = lambda: None

    @property
    def asked(self) -> bool:
        self._process.check()
        return self._asked

    def ask(self) -> None:
        """SIGTERM, from the scheduler or another process."""
        self._asked = True
        self.wake()
        self.look_up()

    def look_up(self) -> None:
        self._look = True
        if self._waiting is not None:
            self._process.world.unpark(self._waiting)

    def wait(self, timeout_ms: int) -> None:
        self._process.check()
        if not self._look:
            self._waiting = self._process.world.running
            try:
                self._process.world.park(timeout_ms * US_PER_MS)
            finally:
                self._waiting = None
        self._look = self._asked


class NoSocket:
    """Nobody reaches a simulated job by a socket."""

    def start(self) -> None:
        return None
