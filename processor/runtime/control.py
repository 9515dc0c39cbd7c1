"""What the outside asks of a running job, handed over to the thread that runs it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from processor.contracts.checkpoint_view import CheckpointsView
from processor.contracts.clock import Clock
from processor.contracts.job_control import JobStatus, Outcome
from processor.ids import CheckpointId, JobName
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.failure_history import AttemptFailure
from processor.protocol.job_status import JobState
from processor.protocol.messages import CheckpointKind
from processor.runtime.attempt import RunningAttempt
from processor.telemetry.checkpoint_summary import view
from processor.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    kind: CheckpointKind
    answer: Callable[[Outcome], None]
    directory: str = ""
    """Of a savepoint."""
    native: bool = False
    parallelism: int | None = None
    """Of a rescaling."""


class Control:
    """A JobControl. Requests come from any thread and wait until the job's thread takes them."""

    def __init__(
        self,
        job: JobName,
        state: JobState,
        metrics: Metrics,
        clock: Clock,
        statistics: CheckpointStatistics,
    ) -> None:
        self._statistics = statistics
        self._job = job
        self._state = state
        self._metrics = metrics
        self._clock = clock
        self._started_ms = clock.monotonic_ms()
        self._asked: deque[Asked] = deque()
        self.attempt: RunningAttempt | None = None
        self.turned_ms: int | None = None
        """When the job's thread last turned, on the monotonic clock; None: what it is at has deadlines of its own."""
        self.restarts = 0
        self.failures: tuple[AttemptFailure, ...] = ()
        """Of its attempts, newest first."""
        self.stop_asked: Callable[[], None] = lambda: None
        """Called when a stop is asked for while there is no attempt, from any thread."""

    def status(self) -> JobStatus:
        attempt = self.attempt
        driver = attempt.driver if attempt is not None else None
        coordinator = attempt.coordinator if attempt is not None else None
        recovered = attempt.recovered if attempt is not None else None
        counted = self._metrics.snapshot()
        turned_ms, now_ms = self.turned_ms, self._clock.monotonic_ms()
        return JobStatus(
            job=self._job,
            state=self._state.status.value,
            attempt=recovered.attempt if recovered is not None else 0,
            last_checkpoint=coordinator.decided if coordinator is not None else None,
            published_checkpoint=driver.published.checkpoint if driver is not None else None,
            records_in=counted.total("records_in"),
            records_out=counted.total("records_out"),
            restarts=self.restarts,
            uptime_ms=now_ms - self._started_ms,
            turn_age_ms=None if turned_ms is None else max(0, now_ms - turned_ms),
            waiting_for=", ".join(str(p) for p in coordinator.waiting_for())
            if coordinator is not None
            else "",
            counters=counted.by_step(but=("records_in", "records_out")),
            gauges=counted.gauges_by_step(),
            failures=self.failures,
        )

    def checkpoints(self, asked: CheckpointId | None) -> CheckpointsView:
        return view(self._statistics.picture(), self._clock, asked)

    def checkpoint(self, answer: Callable[[Outcome], None], *, full: bool = False) -> None:
        self._ask(Asked(kind=CheckpointKind.FULL if full else CheckpointKind.MANUAL, answer=answer))

    def savepoint(self, directory: str, answer: Callable[[Outcome], None], *, native: bool = False) -> None:
        self._ask(Asked(kind=CheckpointKind.SAVEPOINT, directory=directory, native=native, answer=answer))

    def stop(
        self,
        savepoint_directory: str | None,
        answer: Callable[[Outcome], None],
        *,
        drain: bool = False,
        native: bool = False,
    ) -> None:
        kind = CheckpointKind.DRAIN if drain else CheckpointKind.STOP
        self._ask(Asked(kind=kind, directory=savepoint_directory or "", native=native, answer=answer))

    def rescale(self, parallelism: int, answer: Callable[[Outcome], None]) -> None:
        self._ask(Asked(kind=CheckpointKind.RESCALE, parallelism=parallelism, answer=answer))

    def _ask(self, asked: Asked) -> None:
        self._asked.append(asked)
        attempt = self.attempt
        if attempt is not None:
            attempt.executor.wake()
        elif asked.kind.ends_job:
            self.stop_asked()

    def take(self) -> Asked | None:
        """The next request, in the job's thread."""
        return self._asked.popleft() if self._asked else None
