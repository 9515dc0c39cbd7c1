"""Calls an author's function for every record of a batch, under the step's policy for records that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from typing import Any, Generic, TypeVar

from processor.contracts.policy import Skip
from processor.errors import ProcessorError, UserCodeError, Where
from processor.ids import StepName
from processor.operators.operator import OperatorContext
from processor.records.batch import Batch

V = TypeVar("V")
R = TypeVar("R")

RECORDS_SKIPPED = "records_skipped"
"""Counter of records left out by policy."""

_MEND_OR_SKIP = "Mend it, or give the step on_error=Skip() to leave such records out and count them."


class FailurePolicy:
    """What one step does when its author's code raises for a record: stop there, or skip and count."""

    __slots__ = ("_count", "skips", "step")

    def __init__(self, step: StepName, context: OperatorContext) -> None:
        self.step = step
        self.skips = isinstance(context.policy, Skip)
        self._count = context.count

    def skipped(self, records: int) -> None:
        """Records were left out; only under Skip."""
        if records:
            self._count(RECORDS_SKIPPED, records)

    def forgives(self, cause: Exception) -> bool:
        """Whether the record is to be left out: under Skip, and for what the author's code did, not the
        engine or the outside."""
        return self.skips and not _foreign(cause)

    def error(self, batch: Batch[Any], index: int, cause: Exception, what: str) -> UserCodeError:
        """The error that stops the job at record ``index`` of a batch. Raises ``cause`` itself when it is not
        the author's."""
        return self.error_at(batch.where(index, self.step), cause, what)

    def error_at(self, where: Where, cause: Exception, what: str) -> UserCodeError:
        """``error`` for a place that is no record."""
        return author_error(cause, what, where=where, remedy=_MEND_OR_SKIP)

    def refusal(self, batch: Batch[Any], index: int, problem: str, remedy: str) -> UserCodeError:
        """The same for a result that is no use, such as a key of the wrong type."""
        return UserCodeError(problem, remedy=remedy, where=batch.where(index, self.step))


def author_error(cause: Exception, what: str, *, where: Where, remedy: str) -> UserCodeError:
    """What the author's code raised, with its place. Raises ``cause`` itself when it is not the author's."""
    if _foreign(cause):
        raise cause
    if isinstance(cause, UserCodeError):  # from the engine's own check of what the author's code did
        return UserCodeError(cause.message, remedy=cause.remedy, where=where)
    return UserCodeError(f"{what} raised {type(cause).__name__}: {cause}.", remedy=remedy, where=where)


def _foreign(cause: Exception) -> bool:
    """An error of the engine or of the outside that came up through the author's code: never wrapped,
    never skipped."""
    return isinstance(cause, ProcessorError) and not isinstance(cause, UserCodeError)


def walk(values: Sequence[V]) -> Iterator[V]:
    """An iterator over a column from which ``reached`` can tell how far it got."""
    return iter(values if type(values) is list or type(values) is tuple else list(values))


def reached(values: Sequence[Any], walker: Iterator[Any]) -> int:
    """Index of the record that ``walker`` gave out last.

    Asking the iterator is what lets the loop over the records stay a plain comprehension: nothing counts
    while all goes well. (Not ``map``: a function that raises StopIteration would silently end the batch.)
    """
    return len(values) - length_hint(walker) - 1


class PerRecord(Generic[V, R]):
    """One function of one record, applied to whole batches."""

    __slots__ = ("_failures", "_function", "_what")

    def __init__(self, function: Callable[[V], R], failures: FailurePolicy, what: str) -> None:
        """``what`` names the function in errors: "the function", "the key function"."""
        self._function = function
        self._failures = failures
        self._what = what

    def apply(self, batch: Batch[V]) -> tuple[Batch[V], list[R]]:
        """The records that succeeded, and their results one for one; both may be empty under Skip.

        Raises: UserCodeError with the record's place under Fail.
        """
        if self._failures.skips:
            return self._apply_skipping(batch)
        function = self._function
        walker = walk(batch.values)
        try:
            return batch, [function(value) for value in walker]
        except Exception as error:
            at = reached(batch.values, walker)
            raise self._failures.error(batch, at, error, self._what) from error

    def _apply_skipping(self, batch: Batch[V]) -> tuple[Batch[V], list[R]]:
        function = self._function
        walker = walk(batch.values)
        results: list[R] = []
        failed: set[int] = set()
        append = results.append
        while True:
            try:
                for value in walker:
                    append(function(value))
                break
            except Exception as error:
                at = reached(batch.values, walker)
                if not self._failures.forgives(error):
                    raise self._failures.error(batch, at, error, self._what) from error
                failed.add(at)
        if not failed:
            return batch, results
        self._failures.skipped(len(failed))
        return batch.take([i for i in range(len(batch)) if i not in failed]), results
