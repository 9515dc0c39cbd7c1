"""The states of a job and how one follows another (D3)."""

from __future__ import annotations

from enum import StrEnum

from processor.protocol.state_table import State, StateTable


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


_JOB = StateTable(
    "job",
    JobStatus.CREATED,
    {
        JobStatus.CREATED: (JobStatus.RECOVERING, JobStatus.FAILED),
        JobStatus.RECOVERING: (
            JobStatus.RUNNING,
            JobStatus.FAILING,
            JobStatus.FENCED,
            JobStatus.STOPPED,
            JobStatus.FINISHED,
        ),
        JobStatus.RUNNING: (JobStatus.STOPPING, JobStatus.FAILING, JobStatus.FENCED, JobStatus.FINISHED),
        JobStatus.STOPPING: (
            JobStatus.RUNNING,
            JobStatus.STOPPED,
            JobStatus.FINISHED,
            JobStatus.FAILING,
            JobStatus.FENCED,
            JobStatus.RESTARTING,
        ),
        JobStatus.FAILING: (JobStatus.RESTARTING, JobStatus.FAILED, JobStatus.STOPPED),
        JobStatus.RESTARTING: (JobStatus.RECOVERING, JobStatus.STOPPED),
        JobStatus.FINISHED: (),
        JobStatus.STOPPED: (),
        JobStatus.FENCED: (),
        JobStatus.FAILED: (),
    },
)


class JobState(State[JobStatus]):
    """Where a job is."""

    def __init__(self) -> None:
        super().__init__(_JOB)
