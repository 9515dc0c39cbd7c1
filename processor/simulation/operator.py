"""The person in front of a simulated job: starts it, waits, stops it, starts it again. Never fails, never sleeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from processor.contracts.job_control import Outcome
from processor.ids import SplitId
from processor.protocol.entries import CheckpointEntry
from processor.runtime.start_options import StartOptions
from processor.simulation.world import US_PER_MS

if TYPE_CHECKING:
    from processor.simulation.simulation import Simulation

LOOK_MS: Final = 50
"""How often the operator looks."""

SETTLE_MS: Final = 1_500
"""After everything was read and published: for timers that are still due."""

QUIET_MS: Final = 3_000
"""After everything has ended: for markers on their way."""

ASK_AGAIN_MS: Final = 400


class Operator:
    """What a script of a case can do. Everything waits in simulated time."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world

    # --- waiting

    def wait(self, wait_ms: int) -> None:
        self._world.wait_us(wait_ms * US_PER_MS)

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.wait(LOOK_MS)

    def after_faults(self) -> None:
        """Wait until faults have stopped and all input is written."""
        simulation = self._simulation
        self.until(lambda: not simulation.injection.active and simulation.fed)

    # --- the job

    def start(self, options: StartOptions | None = None, *, parallelism: int | None = None) -> None:
        """Start a daemon. The one before has ended."""
        self._simulation.start_unit(options or StartOptions(), parallelism)

    def drain(self) -> None:
        """Wait until all input is read and its output is published, and timers have had their time."""
        self.until(self._read_and_published)
        self.wait(SETTLE_MS)
        # What timers have put out since then is in a checkpoint that begins now or later.
        newest = self._published_id()
        self.until(lambda: self._published_id() > newest + 1 and self._read_and_published())

    def stop(self) -> None:
        """SIGTERM to every process, and wait until all have ended."""
        for unit in self._simulation.chaos.units:
            if unit.daemon is not None and not unit.over:
                unit.daemon.signals.ask()
        self.ended()

    def ended(self) -> None:
        """Wait until no unit runs; what ends from now on is not started again, unless it fails."""
        self.until(lambda: all(unit.over for unit in self._simulation.chaos.units))

    def stop_with_savepoint(self, path: str) -> None:
        """Ask until a savepoint is written and the job has stopped."""
        answers: list[Outcome] = []
        while True:
            asked = self._ask_stop(path, answers)
            if asked:
                self.until(lambda: bool(answers) or all(u.over for u in self._simulation.chaos.units))
                if answers and not answers[-1].refused:
                    break
                answers.clear()
            self.wait(ASK_AGAIN_MS)
        self.ended()

    def _ask_stop(self, path: str, answers: list[Outcome]) -> bool:
        for unit in self._simulation.chaos.units:
            if unit.daemon is not None and unit.daemon.published is not None and unit.daemon.control:
                unit.daemon.control.stop(path, answers.append)
                return True
        return False

    def quiet(self) -> None:
        """Wait until everything on its way has arrived."""
        self.wait(QUIET_MS)

    # --- what is published

    def _newest(self) -> CheckpointEntry | None:
        """The newest published checkpoint that a process which runs knows of."""
        known = [
            unit.daemon.published
            for unit in self._simulation.chaos.units
            if unit.daemon is not None and unit.daemon.published is not None
        ]
        return max(known, key=lambda entry: entry.place, default=None)

    def _published_id(self) -> int:
        entry = self._newest()
        return entry.checkpoint if entry is not None else 0

    def _read_and_published(self) -> bool:
        entry = self._newest()
        if entry is None:
            return False
        reached: Mapping[SplitId, int] = {
            split: position.next
            for subtask in entry.subtasks
            for source in subtask.sources
            for split, position in source.positions.items()
        }
        return all(reached.get(split, -1) >= end for split, end in self._simulation.input_ends().items())


def run_and_stop(operator: Operator) -> None:
    """Start, let things go wrong, wait until all is out, stop."""
    operator.start()
    operator.after_faults()
    operator.drain()
    operator.stop()
    operator.quiet()


def run_to_the_end(operator: Operator) -> None:
    """Of a bounded job: start, and wait until it has ended by itself."""
    operator.start()
    operator.ended()
    operator.quiet()
