"""Every error of the product, whom it blames, and what is to be done about it.

    ProcessorError
      JobError              USER      FAIL_BEFORE_START     the job or its types are wrong
      SettingsError         USER      FAIL_BEFORE_START     a setting is unknown, missing or contradicts another
      UserCodeError         USER      RESTART_FROM_CHECKPOINT  a function of the job raised
      BadRecord             DATA      RESTART_FROM_CHECKPOINT  a record cannot be decoded, encoded or sent (by policy)
      Unavailable           EXTERNAL  RESTART_FROM_CHECKPOINT  an outside system did not answer in time
      Retriable             EXTERNAL  RETRY_IN_PLACE        an outside system asked for another try
        TooLarge            EXTERNAL  RETRY_IN_PLACE        a transaction was too large or too slow: fewer rows
      ExternalRefusal       EXTERNAL  FAIL_JOB              an outside system refuses for good (rights, topic gone)
      PositionLost          EXTERNAL  FAIL_JOB              a position is outside of what the source retains
      DamagedFile           EXTERNAL  FAIL_JOB              a file of a checkpoint fails its checksum or is missing
      LogConflict           EXTERNAL  FAIL_JOB              log, marker and outside system contradict each other
      PublishRefused        EXTERNAL  FAIL_JOB              a decided row is refused for good
      Fenced                NOBODY    STOP_QUIETLY          a newer attempt runs; this one has nothing left to do
      AttemptFailed         EXTERNAL  RESTART_FROM_CHECKPOINT  the attempt cannot go on (deadline, too many failures)
      EngineBug             ENGINE    CRASH                 an invariant of the engine does not hold

The supervisor switches on the response, never on the class. A message names the step, the record's
topic/partition/offset, the setting and value concerned, and what the reader can do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from processor.ids import WorkerId


class Blame(StrEnum):
    USER = "user"
    DATA = "data"
    EXTERNAL = "external"
    ENGINE = "engine"
    NOBODY = "nobody"


class Response(StrEnum):
    FAIL_BEFORE_START = "fail-before-start"
    DEAD_LETTER = "dead-letter"
    RETRY_IN_PLACE = "retry-in-place"
    RESTART_FROM_CHECKPOINT = "restart-from-checkpoint"
    FAIL_JOB = "fail-job"
    STOP_QUIETLY = "stop-quietly"
    CRASH = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The place an error speaks of; what is unknown is None and left out of the text."""

    step: str | None = None
    split: str | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.step is not None:
            parts.append(f"step '{self.step}'")
        if self.split is not None:
            parts.append(f"at {self.split}" + (f" offset {self.offset}" if self.offset is not None else ""))
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """What is known of an error that happened in a worker process, where it is raised again by another."""

    worker: WorkerId
    cause: str = ""
    """The class of what an author's function raised; "" where there is none."""
    trace: str = ""
    """The traceback, for people; "" where it would not help them."""


class ProcessorError(Exception):
    """Root of the tree. ``remedy`` is a sentence in the imperative, shown after the message."""

    blame: ClassVar[Blame] = Blame.ENGINE
    response: ClassVar[Response] = Response.CRASH
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, remedy: str = "", where: Where | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.where = where or Where()
        self.elsewhere: Elsewhere | None = None
        """None: it happened in this process."""

    def __str__(self) -> str:
        place = str(self.where)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} {self.remedy}" if self.remedy else text


def place_text(where: Where, worker: WorkerId | None) -> str:
    """Where something failed, for people; "" when that is not known."""
    parts = [str(where)] if str(where) else []
    if worker is not None:
        parts.append(f"worker {worker}")
    return ", ".join(parts)


@contextmanager
def within_step(step: str) -> Iterator[None]:
    """Errors from here that do not say a step are of this one."""
    try:
        yield
    except ProcessorError as error:
        if error.where.step is None:
            error.where = replace(error.where, step=step)
        raise


class JobError(ProcessorError):
    """The job is wrong; nothing has run."""

    blame = Blame.USER
    response = Response.FAIL_BEFORE_START
    exit_code = 64


class SettingsError(ProcessorError):
    """A setting is unknown, missing, malformed, or contradicts another; nothing has run."""

    blame = Blame.USER
    response = Response.FAIL_BEFORE_START
    exit_code = 78


class UserCodeError(ProcessorError):
    """A function of the job raised; the original exception is the cause."""

    blame = Blame.USER
    response = Response.RESTART_FROM_CHECKPOINT
    exit_code = 65


class BadRecord(ProcessorError):
    """A record cannot be decoded, encoded or sent, and the step's policy is to fail."""

    blame = Blame.DATA
    response = Response.RESTART_FROM_CHECKPOINT
    exit_code = 65


class Unavailable(ProcessorError):
    """An outside system did not answer within its named time-out."""

    blame = Blame.EXTERNAL
    response = Response.RESTART_FROM_CHECKPOINT
    exit_code = 69


class Retriable(ProcessorError):
    """An outside system failed in a way that another try may mend; the caller repeats in place."""

    blame = Blame.EXTERNAL
    response = Response.RETRY_IN_PLACE
    exit_code = 69


class TooLarge(Retriable):
    """A transaction was refused for its size or took too long: the next try sends fewer rows (R30)."""


class HeldUp(Retriable):
    """What another publisher has left unfinished is in the way, perhaps: it mends that when its turn comes (R32)."""


class ExternalRefusal(ProcessorError):
    """An outside system refuses for good: no rights, no such topic, an unfit configuration."""

    blame = Blame.EXTERNAL
    response = Response.FAIL_JOB
    exit_code = 77


class PositionLost(ProcessorError):
    """A position is outside of what the source retains, or its split is no longer the same one."""

    blame = Blame.EXTERNAL
    response = Response.FAIL_JOB
    exit_code = 66


class DamagedFile(ProcessorError):
    """A file of a checkpoint is missing, cut, or fails its checksum; it is named and never loaded."""

    blame = Blame.EXTERNAL
    response = Response.FAIL_JOB
    exit_code = 66


class LogConflict(ProcessorError):
    """Decision log and markers contradict each other; going on could lose or double records (R2, R11)."""

    blame = Blame.EXTERNAL
    response = Response.FAIL_JOB
    exit_code = 73


class PublishRefused(ProcessorError):
    """A decided row is refused for good by the outside system (R30); ``row`` counts within what was sent."""

    blame = Blame.EXTERNAL
    response = Response.FAIL_JOB
    exit_code = 73

    def __init__(self, message: str, *, row: int, remedy: str = "", where: Where | None = None) -> None:
        super().__init__(message, remedy=remedy, where=where)
        self.row = row


class Fenced(ProcessorError):
    """A newer attempt of this job has taken over: this one stops quietly (R1, R11)."""

    blame = Blame.NOBODY
    response = Response.STOP_QUIETLY
    exit_code = 0


class AttemptFailed(ProcessorError):
    """The attempt cannot go on: a deadline passed or too many checkpoints failed (R25)."""

    blame = Blame.EXTERNAL
    response = Response.RESTART_FROM_CHECKPOINT
    exit_code = 69


class EngineBug(ProcessorError):
    """An invariant of the engine does not hold. Please report it with the message."""

    blame = Blame.ENGINE
    response = Response.CRASH
    exit_code = 70
