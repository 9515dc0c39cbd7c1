"""A lock between tasks of one process, where production has one between threads."""

from __future__ import annotations

from types import TracebackType

from processor.simulation.process import SimulatedProcess

POLL_US = 500


class SimulatedLock:
    """Waits for its turn in simulated time: a real lock would stop the whole world."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self._held = False

    def __enter__(self) -> bool:
        self._process.check()
        while self._held:
            self._process.world.wait_us(POLL_US)
        self._held = True
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held = False
