"""Worker processes that come by themselves, over a network."""

from __future__ import annotations

import threading
from typing import Final

from processor.channels.addresses import Address
from processor.channels.credentials import Credentials
from processor.channels.doorway import Doorway, Later, Refuse, Verdict, Welcome
from processor.channels.handshake import Join, Opening
from processor.channels.poller import Poller
from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.errors import Unavailable
from processor.ids import JobName, WorkerId
from processor.runtime.members import Members
from processor.runtime.worker_pool import Gone, WorkerEvent
from processor.telemetry.log import Log

LOOK_MS: Final = 1_000
"""Longest wait of the thread at the door; whoever comes ends it."""

JOIN_TIMEOUT_MS: Final = 30_000
"""From being welcome to having joined. Whoever takes longer would keep its number from others."""


class JoiningPool:
    """See ``processor.runtime.worker_pool.WorkerPool``. Whoever comes waits at the door until a number is missing:
    more processes than workers are spare ones, and one takes the place of a worker that is gone."""

    def __init__(
        self,
        address: Address,
        workers: int,
        *,
        job: JobName,
        fingerprint: str,
        credentials: Credentials,
        clock: Clock,
        chance: Chance,
        log: Log,
    ) -> None:
        """Listens at once. ``fingerprint``: of the layout that workers must have. Raises SettingsError."""
        self._workers = tuple(WorkerId(number) for number in range(workers))
        self._job = job
        self._fingerprint = fingerprint
        self._clock = clock
        self._log = log
        self._poller = Poller()
        self._doorway = Doorway(
            address, poller=self._poller, clock=clock, chance=chance, credentials=credentials
        )
        self._members = Members()
        self.joined = self._members.joined
        self.wait = self._members.wait
        self.wakes = self._members.wakes
        self.send = self._members.send
        self.kill = self._members.cut
        self._lock = threading.Lock()
        self._missing: set[WorkerId] = set()
        """Whoever comes is one of them."""
        self._join_until_ms: dict[WorkerId, int] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._attend, name="door of the coordinator", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where workers come to."""
        return str(self._doorway.address)

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        return self._workers

    def start_missing(self) -> None:
        """Let those who wait at the door, and who come, be the workers that are not there."""
        there = self._members.there()
        with self._lock:
            self._missing.update(worker for worker in self._workers if worker not in there)
        self._poller.wake()

    def take(self) -> tuple[WorkerId, WorkerEvent] | None:
        while (taken := self._members.take()) is not None:
            worker, event = taken
            with self._lock:
                joining = self._join_until_ms.pop(worker, None) is not None
                if joining and isinstance(event, Gone):
                    # It has not been a worker yet: the next one at the door is.
                    self._missing.add(worker)
                    self._poller.wake()
                    continue
            return taken
        return None

    def close(self) -> None:
        """Nobody is a worker any more. Processes that came by themselves stay, and look for another coordinator."""
        self._closing.set()
        self._poller.wake()
        self._thread.join()
        self._members.close()

    # --- in the thread at the door

    def _attend(self) -> None:
        try:
            while not self._closing.is_set():
                try:
                    self._let_in()
                except Unavailable as error:
                    self._log.warning("cannot take a worker's connection for now", error=error)
                    self._closing.wait(LOOK_MS / 1_000)
                self._poller.wait(LOOK_MS)
        finally:
            self._doorway.close()
            self._poller.close()

    def _let_in(self) -> None:
        for worker, connection in self._doorway.receive(self._verdict):
            self._poller.forget(connection)
            with self._lock:
                self._missing.discard(worker)
                self._join_until_ms[worker] = self._clock.monotonic_ms() + JOIN_TIMEOUT_MS
            self._members.add(worker, connection)
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            late = [worker for worker, until_ms in self._join_until_ms.items() if now_ms >= until_ms]
        for worker in late:
            self._members.cut(worker)

    def _verdict(self, opening: Opening) -> Verdict:
        if not isinstance(opening, Join):
            return self._refused(f"this is the coordinator of job '{self._job}', not a worker")
        if opening.job != self._job:
            return self._refused(f"this is the coordinator of job '{self._job}', not of '{opening.job}'")
        if opening.fingerprint != self._fingerprint:
            return self._refused(
                "the coordinator has another version of the job, its settings or the product than this worker"
            )
        with self._lock:
            return Welcome(min(self._missing)) if self._missing else Later()

    def _refused(self, reason: str) -> Refuse:
        self._log.warning("turned somebody away who would be a worker", reason=reason)
        return Refuse(reason)
