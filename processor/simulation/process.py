"""A simulated process: runs, sleeps past everything (SIGSTOP to SIGCONT), dies (SIGKILL), ends."""

from __future__ import annotations

from collections.abc import Callable

from processor.simulation.world import Task, World


class ProcessDied(BaseException):
    """Raised in every call of a dead process that could have an effect, so that it has none.

    No Exception: production code tolerates those.
    """


class SimulatedProcess:
    """Its tasks and its fate. A dead process never runs again; what it still unwinds touches nothing."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.asleep_us = 0
        """Until when it sleeps."""
        self.exit_code: int | None = None
        """None while it runs, and when it was killed."""
        self.error: BaseException | None = None
        """What ended it by itself."""
        self._tasks: list[Task] = []
        self._when_over: list[Callable[[], None]] = []

    def when_over(self, told: Callable[[], None]) -> None:
        """Have this called by the scheduler once the process has ended, however it does."""
        self._when_over.append(told)

    def spawn(self, name: str, work: Callable[[], None], *, delay_us: int = 0) -> Task:
        """A task that ends quietly with the process."""
        self.check()

        def run() -> None:
            try:
                self.check()
                work()
            except ProcessDied:
                pass

        self._tasks = [task for task in self._tasks if not task.greenlet.dead]
        task = self.world.spawn(self, name, run, delay_us=delay_us)
        self._tasks.append(task)
        return task

    def start(self, main: Callable[[], int], ended: Callable[[SimulatedProcess], None]) -> None:
        """Run ``main``; when it ends by itself, the process is over with all its tasks."""

        def run() -> None:
            try:
                self.exit_code = main()
            except ProcessDied:
                return
            except BaseException as error:
                self.error = error
                self.exit_code = getattr(error, "exit_code", 1)
            self.world.note(
                self.name, f"exits with {self.exit_code}" + (f": {self.error}" if self.error else "")
            )
            self._over()
            self.world.later(0, lambda: ended(self))

        self.spawn("main", run)

    def check(self) -> None:
        """Called at every seam. Raises ProcessDied."""
        if not self.alive:
            raise ProcessDied(self.name)

    @property
    def sleeping(self) -> bool:
        return self.alive and self.asleep_us > self.world.now_us

    def kill(self) -> None:
        """SIGKILL. The caller, if it is one of its tasks, must call ``check`` next."""
        if self.alive:
            self._over()

    def sleep(self, duration_us: int) -> None:
        """SIGSTOP, and SIGCONT after that time. The caller, if it is one of its tasks, must wait next."""
        self.asleep_us = max(self.asleep_us, self.world.now_us + duration_us)

    def end_now(self) -> None:
        """The run is over: unwind all tasks at once. Not from within a task."""
        self.alive = False
        self._unwind()

    def _over(self) -> None:
        self.alive = False
        self.world.later(0, self._unwind)
        for told in self._when_over:
            self.world.later(0, told)

    def _unwind(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            self.world.unwind(task, ProcessDied(self.name))
