"""Background work of one attempt: every lane is a task of the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from processor.errors import Fenced
from processor.simulation.process import ProcessDied, SimulatedProcess
from processor.simulation.world import US_PER_MS, Task

T = TypeVar("T")

CLOSE_TIMEOUT_MS = 5_000
"""How long ``close`` waits for running work, as the executor with threads does."""

CLOSE_POLL_US = 1_000

TURN_US_MAX = 600
"""Longest time that one round of the delivering task takes, unless its steps are slow."""

BEGIN_US_MAX = 300
"""Until a lane that was idle begins."""


@dataclass(slots=True)
class _Work:
    run: Callable[[], Any]
    done: Callable[[Any], None]
    failed: Callable[[BaseException], None]


class SimulatedExecutor:
    """See ``processor.contracts.executor.Executor``."""

    def __init__(self, process: SimulatedProcess, *, turn_us_max: int = TURN_US_MAX) -> None:
        self._process = process
        self._turn_us_max = turn_us_max
        self._world = process.world
        self._chance = self._world.chance(f"executor of {process.name}")
        self._lanes: dict[str, deque[_Work]] = {}
        self._results: deque[Callable[[], None]] = deque()
        self._inbox: deque[Callable[[], None]] = deque()
        self._woken = False
        self._closing = False
        self._waiting: Task | None = None
        self._pausing: list[Task] = []

    def submit(
        self,
        lane: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._process.check()
        if self._closing:
            return
        queue = self._lanes.get(lane)
        if queue is not None:
            queue.append(_Work(work, done, failed))
            return
        self._lanes[lane] = deque((_Work(work, done, failed),))
        self._process.spawn(lane, lambda: self._serve(lane), delay_us=self._chance.randint(0, BEGIN_US_MAX))

    def deliver(self) -> bool:
        # A round takes time: a source that always has records must not keep the clock from moving.
        self._world.wait_us(self._chance.randint(1, self._turn_us_max))
        self._woken = False
        worked = False
        while self._results:
            self._results.popleft()()
            worked = True
        return worked

    def put(self, result: Callable[[], None]) -> None:
        """Have something called by ``deliver``; from the scheduler or any task."""
        if not self._closing:
            self._results.append(result)
            self.wake()

    def wake(self) -> None:
        self._woken = True
        if self._waiting is not None:
            self._world.unpark(self._waiting)

    def wait(self, timeout_ms: int) -> None:
        if self._woken or self._results:
            return
        self._waiting = self._world.running
        try:
            self._world.park(timeout_ms * US_PER_MS)
        finally:
            self._waiting = None

    def pause(self, pause_ms: int) -> None:
        task = self._world.running
        assert task is not None
        if not self._closing:
            self._pausing.append(task)
            try:
                self._world.park(pause_ms * US_PER_MS)
            finally:
                self._pausing.remove(task)
        self._process.check()
        if self._closing:
            raise Fenced("the attempt has ended")

    def close(self) -> bool:
        self._process.check()
        self._closing = True
        for queue in self._lanes.values():
            while len(queue) > 1:  # the first is the one that runs
                queue.pop()
        for task in self._pausing:
            self._world.unpark(task)
        deadline_us = self._world.now_us + CLOSE_TIMEOUT_MS * US_PER_MS
        while self._lanes and self._world.now_us < deadline_us:
            self._world.wait_us(CLOSE_POLL_US)
        self._results.clear()
        return not self._lanes

    def _serve(self, lane: str) -> None:
        queue = self._lanes[lane]
        while queue:
            work = queue[0]
            result = self._outcome(work)
            queue.popleft()
            if not self._closing:
                self.put(result)
        del self._lanes[lane]

    def _outcome(self, work: _Work) -> Callable[[], None]:
        try:
            value = work.run()
        except ProcessDied:
            raise
        except BaseException as error:
            caught = error
            return lambda: work.failed(caught)
        self._process.check()
        return lambda: work.done(value)
