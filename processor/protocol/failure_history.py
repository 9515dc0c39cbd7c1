"""The failures of a job's attempts with their causes, and whether one is that of before over again (D2, D3)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from processor.errors import Blame, ProcessorError, Response, Where, place_text
from processor.ids import Attempt, CheckpointId, WorkerId

FAILURES_MAX = 50
"""That are remembered."""

TEXT_CHARS_MAX = 1_000
"""Of one failure's text: a record's content may be in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailure:
    """One attempt's end."""

    at_ms: int
    """Wall time, in milliseconds since 1970."""
    attempt: Attempt | None
    """None: it had not sealed the log yet."""
    checkpoint: CheckpointId | None
    """The one that it started from; None: it had not recovered."""
    where: Where
    worker: WorkerId | None
    """None: it failed where the job is coordinated, or runs in one process."""
    error: str
    """The class of the error."""
    cause: str
    """The class of what an author's function raised; "" where there is none."""
    text: str
    remedy: str
    """What is to be done, if the error says so."""
    blame: Blame
    response: Response
    progressed: bool
    """The attempt published a checkpoint of its own."""
    ran_ms: int
    again: bool = False
    """It is one of before over again, and the next attempt will fail in the same way."""

    def place(self) -> str:
        """Where it failed, for people; "" when that is not known."""
        return place_text(self.where, self.worker)

    def outlook(self) -> str:
        """What a person should know of a failure that comes ``again``, and can do."""
        remedy = f" {self.remedy}" if self.remedy else ""
        return (
            f"it failed before at the same place ({self.where}) in the same way: no restart will mend that.{remedy} "
            "Then stop the job and start it again: it goes on from its newest checkpoint, before that place."
        )


def failure_of(
    error: BaseException,
    *,
    at_ms: int,
    attempt: Attempt | None,
    checkpoint: CheckpointId | None,
    progressed: bool,
    ran_ms: int,
) -> AttemptFailure:
    """What is kept of an error that ended an attempt."""
    known = error if isinstance(error, ProcessorError) else None
    elsewhere = known.elsewhere if known is not None else None
    text = known.message if known is not None else str(error)
    return AttemptFailure(
        at_ms=at_ms,
        attempt=attempt,
        checkpoint=checkpoint,
        where=known.where if known is not None else Where(),
        worker=elsewhere.worker if elsewhere is not None else None,
        error=type(error).__name__,
        cause=elsewhere.cause if elsewhere is not None else class_of(error.__cause__),
        text=text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}…",
        remedy=known.remedy if known is not None else "",
        blame=known.blame if known is not None else Blame.ENGINE,
        response=response_to(error),
        progressed=progressed,
        ran_ms=ran_ms,
    )


def class_of(error: BaseException | None) -> str:
    """Its name; "" of none."""
    return "" if error is None else type(error).__name__


def response_to(error: BaseException) -> Response:
    """What is done about an error: by its own account, or, if it is none of ours, another attempt; but not about
    what is no error, such as an interrupt from the keyboard."""
    if isinstance(error, ProcessorError):
        return error.response
    return Response.RESTART_FROM_CHECKPOINT if isinstance(error, Exception) else Response.CRASH


class FailureHistory:
    """Outlives attempts. Written in the job's thread; ``newest_first`` may be called from any."""

    def __init__(self) -> None:
        self._failures: deque[AttemptFailure] = deque(maxlen=FAILURES_MAX)

    def add(self, failure: AttemptFailure) -> AttemptFailure:
        """Remember it. Returns it with what is known of it now: whether it is one of before over again."""
        told = replace(failure, again=self._again(failure))
        self._failures.append(told)
        return told

    def newest_first(self) -> tuple[AttemptFailure, ...]:
        return tuple(self._failures)[::-1]

    def _again(self, failure: AttemptFailure) -> bool:
        """The job's own code or data, at a record that failed before; or at a place of which less is known, if
        nothing was published since it failed there. Of a record that does not matter: other parts of the input go on,
        and checkpoints without anything new are published, too."""
        own = failure.blame in (Blame.USER, Blame.DATA)
        if not own or failure.where == Where():
            return False
        record = failure.where.offset is not None
        if failure.progressed and not record:
            return False
        for before in reversed(self._failures):
            if _same(before, failure):
                return True
            if before.progressed and not record:
                return False
        return False


def _same(before: AttemptFailure, failure: AttemptFailure) -> bool:
    return (before.where, before.error, before.cause) == (failure.where, failure.error, failure.cause)
