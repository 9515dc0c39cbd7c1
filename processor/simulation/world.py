"""Simulated time, and tasks of which one runs at a time: who is next is the seed's choice.

A task is a greenlet. Whoever would block (a wait, a request, a write) returns to the scheduler, which takes the
earliest event; among those of one moment the seed chooses. Nothing here looks at the machine's clock, and no
set or dict is iterated whose order is not that of insertion: one seed, one run.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Final

from greenlet import getcurrent, greenlet

from processor.simulation.trace import Trace

if TYPE_CHECKING:
    from processor.simulation.process import SimulatedProcess

US_PER_MS: Final = 1_000


class StepLimitReached(Exception):
    """The run has not come to its end: somebody waits for ever, or in circles."""


class Task:
    """One line of execution of one process."""

    __slots__ = ("greenlet", "name", "number", "process", "ticket")

    def __init__(self, name: str, number: int, process: SimulatedProcess) -> None:
        self.name = name
        self.number = number
        self.process = process
        self.ticket = 0
        """Which wait it is in: events of an earlier one are void."""
        self.greenlet: greenlet

    def __str__(self) -> str:
        return f"{self.process.name}/{self.name}"


class World:
    """Everything of one run hangs on one world."""

    def __init__(self, seed: int, *, steps_max: int, trace: Trace | None = None) -> None:
        """``steps_max``: events after which a run counts as hanging."""
        self.seed = seed
        self.trace = trace or Trace()
        self.now_us = 0
        self.steps = 0
        self.steps_max = steps_max
        self.over = False
        """Set by ``stop``: nothing runs any more, and whoever is unwound has no effect."""
        self._events: list[tuple[int, float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._tasks = 0
        self._schedule = self.chance("schedule")
        self._hub: greenlet | None = None
        self._running: Task | None = None

    # --- chance and time

    def chance(self, purpose: str) -> Random:
        """A stream of its own for each purpose, so that one more draw here changes nothing there."""
        return Random(f"{self.seed}/{purpose}")

    @property
    def now_ms(self) -> int:
        return self.now_us // US_PER_MS

    def note(self, who: str, what: str) -> None:
        self.trace.note(self.now_us, who, what)

    # --- events

    def later(self, delay_us: int, act: Callable[[], None]) -> None:
        """Call ``act`` in the scheduler after a delay; it must not wait."""
        self._sequence += 1
        heappush(self._events, (self.now_us + max(0, delay_us), self._schedule.random(), self._sequence, act))

    def run(self, done: Callable[[], bool]) -> None:
        """Events in order until ``done``. Raises StepLimitReached, also when nothing is left to happen."""
        self._hub = getcurrent()
        while not done():
            if not self._events:
                raise StepLimitReached("nothing is left to happen, and the run is not done")
            self.steps += 1
            if self.steps > self.steps_max:
                raise StepLimitReached(f"the run is not done after {self.steps_max} steps")
            time_us, _, _, act = heappop(self._events)
            self.now_us = max(self.now_us, time_us)
            act()

    # --- tasks

    @property
    def running(self) -> Task | None:
        """The task that runs now; None in the scheduler."""
        return self._running

    def spawn(
        self, process: SimulatedProcess, name: str, work: Callable[[], None], *, delay_us: int = 0
    ) -> Task:
        """A new task of a process. ``work`` must not raise anything but the process's death."""
        self._tasks += 1
        task = Task(name, self._tasks, process)
        task.greenlet = greenlet(work, parent=self._hub)
        self.later(delay_us, lambda: self._resume(task, 0))
        return task

    def wait_us(self, delay_us: int) -> None:
        """In a task: let others run until the time has passed. In the scheduler: nothing."""
        task = self._running
        if task is None:
            return
        ticket = task.ticket
        self.later(delay_us, lambda: self._resume(task, ticket))
        self._switch(task)

    def park(self, timeout_us: int) -> None:
        """In a task: wait until somebody unparks it, or the time has passed."""
        self.wait_us(timeout_us)

    def unpark(self, task: Task) -> None:
        """End the wait that the task is in, if it is in one."""
        ticket = task.ticket
        self.later(0, lambda: self._resume(task, ticket))

    def _switch(self, task: Task) -> None:
        hub = self._hub
        assert hub is not None
        task.process.check()
        self._running = None
        try:
            hub.switch()
        finally:
            self._running = task
        task.process.check()

    def _resume(self, task: Task, ticket: int) -> None:
        if task.ticket != ticket or task.greenlet.dead or not task.process.alive:
            return
        asleep_us = task.process.asleep_us
        if asleep_us > self.now_us:
            self.later(asleep_us - self.now_us, lambda: self._resume(task, ticket))
            return
        task.ticket += 1
        self.trace.step(self.now_us, task.number)
        self._enter(task, lambda: task.greenlet.switch())

    def unwind(self, task: Task, error: BaseException) -> None:
        """In the scheduler: raise ``error`` where the task waits, and let it end."""
        if task.greenlet:  # it has begun, and has not ended
            self._enter(task, lambda: task.greenlet.throw(error))

    def _enter(self, task: Task, switch: Callable[[], object]) -> None:
        task.greenlet.parent = getcurrent()
        self._running = task
        try:
            switch()
        finally:
            self._running = None
