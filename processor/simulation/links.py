"""Links between coordinator and worker that lose, double and delay what they carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from processor.contracts.executor import Executor
from processor.protocol.messages import Order, Report
from processor.simulation.executor import SimulatedExecutor
from processor.simulation.injection import Injection
from processor.simulation.process import SimulatedProcess
from processor.simulation.world import US_PER_MS

LATE_MS_MAX = 3_000
QUICK_US_MAX = 500


class Wires:
    """The links of one process; they outlive its attempts, so that what is late meets the next one."""

    def __init__(self, process: SimulatedProcess, injection: Injection) -> None:
        self._process = process
        self._injection = injection
        self._chance = process.world.chance(f"links of {process.name}")
        self._ends: dict[str, tuple[SimulatedExecutor, Callable[[Any], None]]] = {}

    def attempt(self, executor: Executor) -> AttemptLinks:
        """The links of a new attempt: from now on everything arrives there."""
        assert isinstance(executor, SimulatedExecutor)
        return AttemptLinks(self, executor)

    def connect(self, name: str, executor: SimulatedExecutor, deliver: Callable[[Any], None]) -> None:
        self._ends[name] = (executor, deliver)

    def send(self, name: str, message: object) -> None:
        self._process.check()
        faults, draw = self._injection.faults, self._injection.draw
        who, what = self._process.name, type(message).__name__
        if draw("message lost", faults.message_lost, who, f"{what} is lost"):
            return
        self._carry(name, message)
        if draw("message doubled", faults.message_doubled, who, f"{what} comes twice"):
            self._carry(name, message)

    def _carry(self, name: str, message: object) -> None:
        faults, draw = self._injection.faults, self._injection.draw
        what = type(message).__name__
        delay_us = self._chance.randint(0, QUICK_US_MAX)
        if draw("message late", faults.message_late, self._process.name, f"{what} is late"):
            delay_us = self._chance.randint(1, LATE_MS_MAX) * US_PER_MS
        self._process.world.later(delay_us, lambda: self._arrive(name, message))

    def _arrive(self, name: str, message: object) -> None:
        executor, deliver = self._ends[name]
        executor.put(lambda: deliver(message))


class AttemptLinks:
    """See ``processor.runtime.links.Links``."""

    def __init__(self, wires: Wires, executor: SimulatedExecutor) -> None:
        self._wires = wires
        self._executor = executor

    def orders(self, deliver: Callable[[Order], None]) -> Callable[[Order], None]:
        self._wires.connect("orders", self._executor, deliver)
        return lambda order: self._wires.send("orders", order)

    def reports(self, deliver: Callable[[Report], None]) -> Callable[[Report], None]:
        self._wires.connect("reports", self._executor, deliver)
        return lambda report: self._wires.send("reports", report)
