"""Gives records of a source their event time, by the author's function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from processor.ids import StepName
from processor.operators.operator import OperatorContext
from processor.operators.per_record import FailurePolicy, PerRecord
from processor.records.batch import Batch
from processor.records.elements import MAX_TIME_MS, MIN_TIME_MS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_REMEDY = (
    "Return milliseconds since 1970 UTC as an int, or a datetime with a time zone; or give the read step "
    "on_error=Skip() to leave such records out and count them."
)


class EventTimeStamper:
    """Stamps batches for the subtask of a source; one without a usable time goes by the step's policy."""

    def __init__(self, at: Callable[[Any], int | datetime], step: StepName, context: OperatorContext) -> None:
        self._failures = FailurePolicy(step, context)
        self._apply = PerRecord(at, self._failures, "the event_time function").apply

    def stamp(self, batch: Batch[Any]) -> Batch[Any] | None:
        """The batch with its event times; None when no record is left.

        Raises: UserCodeError with the record's place under Fail.
        """
        done, results = self._apply(batch)
        if not results:
            return None
        if set(map(type, results)) == {int}:
            times = cast(list[int], results)
            if min(times) > MIN_TIME_MS and max(times) < MAX_TIME_MS:
                return _stamped(done, times)
        return self._stamp_slowly(done, results)

    def _stamp_slowly(self, batch: Batch[Any], results: Sequence[Any]) -> Batch[Any] | None:
        times: list[int] = []
        kept: list[int] = []
        for index, moment in enumerate(results):
            time_ms = _milliseconds(moment)
            if time_ms is not None:
                times.append(time_ms)
                kept.append(index)
            elif not self._failures.skips:
                raise self._failures.refusal(
                    batch,
                    index,
                    f"the event_time function returned {moment!r:.80}, which is no time.",
                    _REMEDY,
                )
        self._failures.skipped(len(batch) - len(kept))
        if not kept:
            return None
        return _stamped(batch if len(kept) == len(batch) else batch.take(kept), times)


def _milliseconds(moment: Any) -> int | None:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            return None
        since = moment - _EPOCH  # whole numbers all the way: a float would round
        return since.days * 86_400_000 + since.seconds * 1_000 + since.microseconds // 1_000
    if isinstance(moment, int) and not isinstance(moment, bool) and MIN_TIME_MS < moment < MAX_TIME_MS:
        return moment
    return None


def _stamped(batch: Batch[Any], times: Sequence[int]) -> Batch[Any]:
    return Batch(
        values=batch.values,
        timestamps=times,
        keys=batch.keys,
        headers=batch.headers,
        split=batch.split,
        offsets=batch.offsets,
    )
