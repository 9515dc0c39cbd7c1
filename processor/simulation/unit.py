"""A unit of the service manager: starts a daemon, and starts it again when it did not end well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from processor.errors import DamagedFile, ProcessorError, Response
from processor.simulation.daemon import Daemon
from processor.simulation.process import SimulatedProcess
from processor.simulation.world import US_PER_MS, World

RESTART_MS = 200

TOLERATED = (Response.RESTART_FROM_CHECKPOINT, Response.RETRY_IN_PLACE, Response.STOP_QUIETLY)
"""What may end a process while things go wrong around it; anything else is loud."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoudEnd:
    """A process ended by an error that no fault of the simulation justifies."""

    process: str
    error: BaseException


class Unit:
    """One daemon at a time."""

    def __init__(
        self,
        world: World,
        name: str,
        make: Callable[[str], Daemon],
        *,
        mend: Callable[[], bool],
        ended_well: Callable[[Daemon], None],
    ) -> None:
        """``make`` makes a process and its daemon, named by the number of the start. ``mend`` restores files that
        were damaged, if there are any; ``ended_well`` hears of a daemon that has stopped or finished."""
        self.name = name
        self.daemon: Daemon | None = None
        self.starts = 0
        self.loud: list[LoudEnd] = []
        self.errors: list[BaseException] = []
        """Of every process that ended by one."""
        self.exit_code: int | None = None
        """Of its last process, once the unit has ended; 0 when that ended well."""
        self._world = world
        self._make = make
        self._mend = mend
        self._ended_well = ended_well
        self._retired = False

    @property
    def over(self) -> bool:
        """Nothing of it runs, and nothing will."""
        return self.exit_code is not None or (
            self._retired and (self.daemon is None or not self.daemon.process.alive)
        )

    def start(self) -> None:
        if self._retired or self.exit_code is not None:
            return
        self.starts += 1
        daemon = self.daemon = self._make(f"{self.name}.{self.starts}")
        self._world.note(daemon.process.name, "starts")
        daemon.process.start(daemon.main, self._ended)

    def killed(self) -> None:
        """The process was killed: it is started again."""
        self._again()

    def retire(self) -> None:
        """It is not started again."""
        self._retired = True

    def _ended(self, process: SimulatedProcess) -> None:
        error = process.error
        if error is not None:
            self.errors.append(error)
        if error is not None and _loud(error) and not (isinstance(error, DamagedFile) and self._mend()):
            self.loud.append(LoudEnd(process=process.name, error=error))
        if process.exit_code == 0 and self.daemon is not None and not self.daemon.fenced:
            self._ended_well(self.daemon)
        if process.exit_code == 0 or self._retired:
            self.exit_code = process.exit_code
            return
        self._again()

    def _again(self) -> None:
        self._world.later(RESTART_MS * US_PER_MS, self.start)


def _loud(error: BaseException) -> bool:
    return not isinstance(error, ProcessorError) or error.response not in TOLERATED
