"""The processes of a job on the nodes of a cluster: whoever is gone is replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from processor.contracts.clock import Clock
from processor.runtime.cluster.ray.member import End, Member, Stage
from processor.runtime.supervisor import EXIT_GRACE_PASSED
from processor.telemetry.log import Log

LOOK_MS: Final = 500
"""Between two looks at the processes."""

AGAIN_MS: Final = 2_000
"""From the end of a process to the next one in its place: one that ends at once must not be started all the time."""

TELL_MS: Final = 10_000
"""How often it is said that a process waits for room."""

END_MS_MAX: Final = 8_000
"""For workers to end by themselves once the job has; then they are ended."""


class Wanted(Protocol):
    """See ``runtime.signals.StopSignals``."""

    @property
    def asked(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetParts:
    coordinator: Callable[[], Member]
    """Makes one; it is placed when there is room."""
    worker: Callable[[int, str], Member]
    """Likewise, from its number and the coordinator's address."""
    workers: int
    clock: Clock
    pause: Callable[[int], None]
    """Waits so many milliseconds, or until a stop is asked for the first time."""
    log: Log


class Fleet:
    """``run`` once."""

    def __init__(self, parts: FleetParts) -> None:
        self._parts = parts
        self._coordinator = _Slot("coordinator", parts)
        self._workers = [_Slot(f"worker {number}", parts) for number in range(parts.workers)]

    def run(self, wanted: Wanted) -> int:
        """Until the coordinator has ended by itself; returns its exit code. When that cannot be had because it was
        asked to stop and is lost, the one for a stop that was not seen to its end."""
        stopping = False
        try:
            while (code := self._turn(making=not wanted.asked)) is None:
                if wanted.asked and not stopping:
                    stopping = True
                    if not self._coordinator.ask_to_stop():
                        self._parts.log.warning("stopped before the job ran; the next start goes on")
                        return EXIT_GRACE_PASSED
                self._parts.pause(LOOK_MS)
            return code
        finally:
            self._end()

    def _turn(self, *, making: bool) -> int | None:
        ended = self._coordinator.turn(self._parts.coordinator if making else None)
        if ended is not None:
            if ended.chosen:
                return ended.exit_code
            for worker in self._workers:
                worker.give_up()  # they look for it where nobody is any more
            if not making:
                self._parts.log.warning("the coordinator was lost while stopping; the next start goes on")
                return EXIT_GRACE_PASSED
        address = self._coordinator.running_at()
        if address:
            for number, worker in enumerate(self._workers):
                worker.turn(self._maker(number, address) if making else None)
        return None

    def _maker(self, number: int, address: str) -> Callable[[], Member]:
        return lambda: self._parts.worker(number, address)

    def _end(self) -> None:
        """Nobody is left."""
        for worker in self._workers:
            worker.ask_to_stop()
        until_ms = self._parts.clock.monotonic_ms() + END_MS_MAX
        while any(worker.there() for worker in self._workers):
            if self._parts.clock.monotonic_ms() >= until_ms:
                break
            for worker in self._workers:
                worker.turn(None)
            self._parts.pause(LOOK_MS)
        for slot in (*self._workers, self._coordinator):
            slot.give_up()


class _Slot:
    """A place in the job, and who has it."""

    def __init__(self, name: str, parts: FleetParts) -> None:
        self._name = name
        self._clock = parts.clock
        self._log = parts.log
        self._member: Member | None = None
        self._not_before_ms = 0
        self._tell_ms = 0

    def there(self) -> bool:
        return self._member is not None

    def running_at(self) -> str:
        """Empty while its process does not run."""
        member = self._member
        return member.address if member is not None and member.stage is Stage.RUNNING else ""

    def turn(self, make: Callable[[], Member] | None) -> End | None:
        """Look at who has the place; let ``make`` give it to somebody when it is free. Returns how the one that had
        it has ended, once."""
        now_ms = self._clock.monotonic_ms()
        member = self._member
        if member is None:
            if make is not None and now_ms >= self._not_before_ms:
                self._member = make()
                self._tell_ms = now_ms + TELL_MS
            return None
        before = member.stage
        stage = member.look()
        if stage is Stage.RUNNING and before is not stage:
            self._log.info("started on a node", process=self._name, address=member.address)
        elif stage is Stage.PLACING and now_ms >= self._tell_ms:
            self._tell_ms = now_ms + TELL_MS
            self._log.warning("waits for a node with room", process=self._name, needs=str(member.room))
        if stage is not Stage.OVER:
            return None
        self._member = None
        self._not_before_ms = now_ms + AGAIN_MS
        assert member.end is not None
        log = self._log.info if member.end.exit_code == 0 else self._log.warning
        log("a process of the job has ended", process=self._name, why=member.end.why)
        return member.end

    def ask_to_stop(self) -> bool:
        """Whether there is somebody who can be asked."""
        if self._member is None or self._member.stage is not Stage.RUNNING:
            return False
        self._member.ask_to_stop()
        return True

    def give_up(self) -> None:
        if self._member is not None:
            self._member.give_up()
            self._member = None
