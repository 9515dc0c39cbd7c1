"""Whether a running job is in order: what probes of Kubernetes and of load balancers ask, decided from its status."""

from __future__ import annotations

from dataclasses import dataclass

from processor.contracts.job_control import JobStatus
from processor.protocol.job_status import JobStatus as Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """``why`` says it in words, also where all is well."""

    good: bool
    why: str


def readiness(status: JobStatus) -> Health:
    """Good while the job reads and writes; not while it recovers, waits for workers, or stops."""
    return Health(good=status.state == Stage.RUNNING.value, why=f"the job is {status.state}")


def liveness(status: JobStatus, hang_timeout_ms: int) -> Health:
    """Bad when the thread that decides has stood still for longer than any call may take. A job that fails and
    restarts is alive: a restart from outside would make nothing better."""
    age_ms = status.turn_age_ms
    if age_ms is None:
        return Health(
            good=True, why="the job is between two attempts, or begins one: what it waits for has an end"
        )
    return Health(
        good=age_ms <= hang_timeout_ms,
        why=f"the job's thread has last turned {age_ms} ms ago (runtime.hang_timeout: {hang_timeout_ms} ms)",
    )
