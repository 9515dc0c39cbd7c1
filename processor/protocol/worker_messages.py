"""What coordinator and worker processes say to each other beside the orders and reports within an attempt.

Every message names its attempt, or the process it is of; one of another attempt is never acted on (R21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from processor.ids import Attempt, Incarnation, Position, SplitId, StepName, WorkerId
from processor.protocol.entries import CheckpointEntry

# --- coordinator to worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """Close what is of an older attempt, then restore this worker's part of the subtasks and run them."""

    attempt: Attempt
    incarnation: Incarnation
    entry: CheckpointEntry
    """The checkpoint to restore, its steps named as the job names them now."""
    unconfirmed: Mapping[StepName, Mapping[SplitId, Position]]
    """By source: splits that were found and are in no position of the checkpoint."""
    parallelism: int
    """Of steps that do not say themselves."""
    addresses: Mapping[WorkerId, str]
    """All workers of the attempt, and where each takes connections of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The attempt is over: close everything that is of it, and say so."""

    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitVisible:
    """Wait until everything that was published here can be read (R17), and say whether it can."""

    attempt: Attempt
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TellStack:
    """Its stepping thread has not turned for long: what is it doing?"""


ToWorker = Deploy | Release | AwaitVisible | TellStack

# --- worker to coordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A worker process is there, and has no attempt."""

    worker: WorkerId
    process: int
    """Its number on its machine."""
    session: str
    """Random, another each time that it joins: what it counts begins anew with it."""
    address: str
    """Where it takes connections of other workers."""
    fingerprint: str
    """Of the job's layout and this release: workers of another version of the job are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One counter or gauge of a worker process: counters only grow."""

    step: StepName
    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Said by a thread of its own, however busy the one that steps is."""

    turn_age_ms: int | None
    """How long ago that one last turned; None while there is nothing to turn."""
    counters: tuple[Counted, ...] = ()
    gauges: tuple[Counted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """Everything is restored; the subtasks run."""

    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error as data: its class within ``processor.errors``, and what it says."""

    kind: str
    message: str
    remedy: str = ""
    step: str | None = None
    split: str | None = None
    offset: int | None = None
    row: int | None = None
    """Of a row that is refused for good."""
    cause: str = ""
    """The class of what an author's function raised; "" where there is none."""
    trace: str = ""
    """Where it was raised, for people; "" where that would not help them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFailed:
    """The worker's part of the attempt cannot go on. It keeps still until it is released."""

    attempt: Attempt
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Nothing of the attempt, or of one before it, is open here any more."""

    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    attempt: Attempt
    visible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Where the stepping thread stands, as lines of text."""

    text: str


FromWorker = Joined | Heartbeat | Deployed | WorkerFailed | Released | Visible | Stack
