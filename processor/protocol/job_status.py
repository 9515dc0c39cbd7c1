"""The states of a job and how one follows another (D3)."""

from __future__ import annotations

from enum import StrEnum

from processor.invariant import invariant


class JobStatus(StrEnum):
    CREATED = "created"
    RECOVERING = "recovering"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILING = "failing"
    RESTARTING = "restarting"
    FINISHED = "finished"
    STOPPED = "stopped"
    FENCED = "fenced"
    FAILED = "failed"


_FOLLOWS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.CREATED: frozenset({JobStatus.RECOVERING, JobStatus.FAILED}),
    JobStatus.RECOVERING: frozenset(
        {JobStatus.RUNNING, JobStatus.FAILING, JobStatus.FENCED, JobStatus.STOPPED, JobStatus.FINISHED}
    ),
    JobStatus.RUNNING: frozenset(
        {JobStatus.STOPPING, JobStatus.FAILING, JobStatus.FENCED, JobStatus.FINISHED}
    ),
    JobStatus.STOPPING: frozenset(
        {JobStatus.RUNNING, JobStatus.STOPPED, JobStatus.FINISHED, JobStatus.FAILING, JobStatus.FENCED}
    ),
    JobStatus.FAILING: frozenset({JobStatus.RESTARTING, JobStatus.FAILED, JobStatus.STOPPED}),
    JobStatus.RESTARTING: frozenset({JobStatus.RECOVERING, JobStatus.STOPPED}),
    JobStatus.FINISHED: frozenset(),
    JobStatus.STOPPED: frozenset(),
    JobStatus.FENCED: frozenset(),
    JobStatus.FAILED: frozenset(),
}


class JobState:
    """Where a job is. What is not in the table can't happen."""

    def __init__(self) -> None:
        self.status = JobStatus.CREATED

    def to(self, status: JobStatus) -> None:
        invariant(status in _FOLLOWS[self.status], f"a {self.status} job does not become {status}")
        self.status = status

    @property
    def over(self) -> bool:
        return not _FOLLOWS[self.status]
