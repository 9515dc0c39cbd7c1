"""Errors as data and back, so that whoever runs the job can act on what happened in another process."""

from __future__ import annotations

from processor import errors
from processor.errors import AttemptFailed, Elsewhere, ProcessorError, PublishRefused, Where
from processor.ids import WorkerId
from processor.protocol.failure_history import class_of
from processor.protocol.worker_messages import Failure
from processor.telemetry.error_text import traceback_text

_KINDS: dict[str, type[ProcessorError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, ProcessorError)
}

OTHER = ""
"""The kind of an error that is none of ours."""


def failure_of(error: BaseException) -> Failure:
    """What is to be known of an error elsewhere."""
    trace = traceback_text(error)
    if not isinstance(error, ProcessorError):
        return Failure(kind=OTHER, message=f"{type(error).__name__}: {error}", trace=trace)
    known = next(kind.__name__ for kind in type(error).__mro__ if _KINDS.get(kind.__name__) is kind)
    return Failure(
        kind=known,
        message=error.message,
        remedy=error.remedy,
        step=error.where.step,
        split=error.where.split,
        offset=error.where.offset,
        row=error.row if isinstance(error, PublishRefused) else None,
        cause=class_of(error.__cause__),
        trace=trace,
    )


def error_of(failure: Failure, worker: WorkerId) -> ProcessorError:
    """An error of the same class, with the same text and place; AttemptFailed for one that was none of ours."""
    error = _error_of(failure)
    error.elsewhere = Elsewhere(worker=worker, cause=failure.cause, trace=failure.trace)
    return error


def _error_of(failure: Failure) -> ProcessorError:
    where = Where(step=failure.step, split=failure.split, offset=failure.offset)
    kind = _KINDS.get(failure.kind, AttemptFailed)
    if issubclass(kind, PublishRefused):
        return kind(failure.message, row=failure.row or 0, remedy=failure.remedy, where=where)
    return kind(failure.message, remedy=failure.remedy, where=where)
