"""What the outside may ask of a running job: the one entry of the control socket, the command line, and
later of the HTTP API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from processor.contracts.checkpoint_view import CheckpointsView
from processor.ids import CheckpointId, JobName
from processor.protocol.failure_history import AttemptFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A picture of a running job, cheap to take and safe to show."""

    job: JobName
    state: str
    attempt: int
    last_checkpoint: int | None
    published_checkpoint: int | None
    records_in: int
    records_out: int
    restarts: int
    uptime_ms: int
    waiting_for: str
    """What holds up checkpoints, such as a sink cluster that cannot be reached (R13); "" when nothing."""
    turn_age_ms: int | None = None
    """How long ago the job's thread last turned; None while an attempt begins or ends, and between two."""
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Every other counter of this process by step and name, such as ``records_skipped``."""
    gauges: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What is measured now, by step and name, such as ``back_pressure_percent``."""
    failures: tuple[AttemptFailure, ...] = ()
    """Of its attempts in this process, newest first; those of long ago are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Answer to a request: a checkpoint (and a path, for a savepoint), or the reason it was refused."""

    checkpoint: CheckpointId | None = None
    path: str = ""
    refused: str = ""


class JobControl(Protocol):
    """Calls come from any thread; answers are delivered exactly once, from the job's thread."""

    def status(self) -> JobStatus: ...

    def checkpoints(self, asked: CheckpointId | None) -> CheckpointsView:
        """What became of its checkpoints; of ``asked`` also what every subtask said."""
        ...

    def checkpoint(self, answer: Callable[[Outcome], None], *, full: bool = False) -> None:
        """Take a checkpoint now; with ``full`` one that lists no file of an earlier one."""
        ...

    def savepoint(self, directory: str, answer: Callable[[Outcome], None], *, native: bool = False) -> None:
        """Write a savepoint, in the canonical format or as a copy of the backend's ``native`` files."""
        ...

    def stop(
        self,
        savepoint_directory: str | None,
        answer: Callable[[Outcome], None],
        *,
        drain: bool = False,
        native: bool = False,
    ) -> None:
        """Take a last checkpoint (or savepoint), publish it, end (R24). With ``drain`` sources end before it, and
        what waits for event time comes out: the job has finished."""
        ...

    def rescale(self, parallelism: int, answer: Callable[[Outcome], None]) -> None:
        """Go on from a checkpoint taken now with so many subtasks of each step that does not say itself (D5). The
        answer comes when they run."""
        ...
