"""A JobControl without a job: it remembers what it was asked, and answers when the test says so."""

from __future__ import annotations

import queue
from collections.abc import Callable

from processor.contracts.checkpoint_view import CheckpointsView
from processor.contracts.job_control import JobStatus, Outcome
from processor.ids import CheckpointId, JobName
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.telemetry.checkpoint_summary import view
from tests.unit.operators.kit import SetClock

STATUS = JobStatus(
    job=JobName("counts"),
    state="RUNNING",
    attempt=3,
    last_checkpoint=8,
    published_checkpoint=7,
    records_in=1_234,
    records_out=99,
    restarts=2,
    uptime_ms=61_500,
    waiting_for="",
    counters={"read": {"records_skipped": 3}},
    gauges={"read": {"back_pressure_percent": 83.4}, "count": {"in_flight_bytes": 40_960}},
)


class FakeJob:
    """With ``outcome`` every request is answered at once; without, the test answers from ``asked``."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.outcome = outcome
        self.failure: Exception | None = None
        self.now = STATUS
        self.statistics = CheckpointStatistics()
        self.asked: queue.SimpleQueue[tuple[str, str | None, Callable[[Outcome], None]]] = queue.SimpleQueue()

    def status(self) -> JobStatus:
        if self.failure is not None:
            raise self.failure
        return self.now

    def checkpoints(self, asked: CheckpointId | None) -> CheckpointsView:
        return view(self.statistics.picture(), SetClock(), asked)

    def checkpoint(self, answer: Callable[[Outcome], None], *, full: bool = False) -> None:
        self._asked("full checkpoint" if full else "checkpoint", None, answer)

    def savepoint(self, directory: str, answer: Callable[[Outcome], None], *, native: bool = False) -> None:
        self._asked("native savepoint" if native else "savepoint", directory, answer)

    def stop(
        self,
        savepoint_directory: str | None,
        answer: Callable[[Outcome], None],
        *,
        drain: bool = False,
        native: bool = False,
    ) -> None:
        what = "drain" if drain else "stop"
        self._asked(f"native {what}" if native else what, savepoint_directory, answer)

    def rescale(self, parallelism: int, answer: Callable[[Outcome], None]) -> None:
        self._asked(f"rescale to {parallelism}", None, answer)

    def _asked(self, what: str, directory: str | None, answer: Callable[[Outcome], None]) -> None:
        self.asked.put((what, directory, answer))
        if self.outcome is not None:
            answer(self.outcome)
