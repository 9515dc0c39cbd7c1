"""A worker process: takes part in one attempt after another, as the coordinator says."""

from __future__ import annotations

from collections import deque

from processor.fault_points import FaultPoint
from processor.ids import Attempt
from processor.protocol.worker_messages import (
    AwaitVisible,
    Deploy,
    Heartbeat,
    Joined,
    Release,
    Released,
    TellStack,
    WorkerFailed,
)
from processor.runtime.attempt_part import AttemptPart, WorkerParts
from processor.runtime.counts import counted
from processor.runtime.failure_form import failure_of
from processor.runtime.message_codec import Message

UNOCCUPIED_WAIT_MS = 1_000
"""Between two looks while there is no attempt; whatever comes ends it."""


class WorkerHost:
    """``run`` is the process's main thread; the rest is called from any thread."""

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts
        self._inbox: deque[Message] = deque()
        self._part: AttemptPart | None = None
        self._over_until = Attempt(0)
        """The newest attempt that was released: of it, and of those before, nothing begins here again."""
        self._failed = False
        """The part keeps still until it is released."""
        self._turned_ms: int | None = None
        self._over = False

    # --- from any thread

    def received(self, message: Message) -> None:
        """What the coordinator says."""
        self._inbox.append(message)
        self._parts.peers.wake()

    def end(self) -> None:
        """The coordinator is gone: nothing of this process is wanted any more."""
        self._over = True
        self._parts.peers.wake()

    def heartbeat(self) -> Heartbeat:
        """How it is."""
        turned_ms = self._turned_ms
        age_ms = None if turned_ms is None else max(0, self._parts.clock.monotonic_ms() - turned_ms)
        counters, gauges = counted(self._parts.metrics.snapshot())
        return Heartbeat(turn_age_ms=age_ms, counters=counters, gauges=gauges)

    # --- in the main thread

    def run(self, joined: Joined) -> None:
        """Until ``end``."""
        self._parts.send(joined)
        try:
            while not self._over:
                self.turn()
        finally:
            self._close()

    def turn(self) -> None:
        """One round; waits a moment when there is nothing to do."""
        while self._inbox:
            self._handle(self._inbox.popleft())
        part = self._part
        if part is None or self._failed:
            self._turned_ms = None
            self._parts.peers.wait(UNOCCUPIED_WAIT_MS)
            return
        try:
            part.turn()
        except Exception as error:
            self._fail(part, error)
        self._turned_ms = self._parts.clock.monotonic_ms() if part.runs else None

    def _handle(self, message: Message) -> None:
        part = self._part
        match message:
            case Deploy():
                self._deploy(message)
            case Release(attempt=attempt):
                if part is None or part.attempt <= attempt:
                    self._parts.faults(FaultPoint.RELEASING)
                    self._close()
                    self._over_until = max(self._over_until, attempt)
                    self._parts.send(Released(attempt=attempt))
            case AwaitVisible(attempt=attempt):
                if part is not None and part.attempt == attempt:
                    part.await_visible(message)
            case TellStack():
                pass  # answered by the thread that received it
            case _:
                self._order(message)

    def _order(self, order: Message) -> None:
        part = self._part
        if part is None or self._failed:
            return
        try:
            part.handle(order)  # type: ignore[arg-type]
        except Exception as error:
            self._fail(part, error)

    def _deploy(self, deploy: Deploy) -> None:
        part = self._part
        if deploy.attempt <= self._over_until:
            return
        if part is not None and part.attempt >= deploy.attempt:
            if part.attempt == deploy.attempt and not self._failed:
                part.say_that_it_runs()
            return
        self._parts.faults(FaultPoint.DEPLOY_RECEIVED)
        self._close()
        try:
            self._part = AttemptPart(self._parts, deploy)
        except Exception as error:
            self._parts.send(WorkerFailed(attempt=deploy.attempt, failure=failure_of(error)))

    def _fail(self, part: AttemptPart, error: Exception) -> None:
        self._failed = True
        self._parts.say.debug("this worker's part of the attempt failed", error=error)
        self._parts.send(WorkerFailed(attempt=part.attempt, failure=failure_of(error)))

    def _close(self) -> None:
        part, self._part, self._failed = self._part, None, False
        if part is None:
            return
        try:
            part.close()
        except Exception as error:
            # What could not be closed is of an attempt that is over; the next one fences it.
            self._parts.say.warning("could not close everything of the attempt", error=error)
