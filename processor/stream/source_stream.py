"""The stream that a source gives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from processor.errors import JobError, Where
from processor.ids import StepName
from processor.plan.graph import EventTime
from processor.stream.builder import checked_function
from processor.stream.stream import Stream

V = TypeVar("V")


class SourceStream(Stream[V]):
    """What ``read`` gives: its records can be given an event time."""

    def event_time(
        self,
        at: Callable[[V], int | datetime],
        *,
        disorder: timedelta,
        idle_after: timedelta | None = None,
    ) -> Stream[V]:
        """Take the time of each record from its value: milliseconds since 1970 UTC, or an aware datetime.

        In each split a record may be up to ``disorder`` older than the newest before it. A split without
        records for ``idle_after`` no longer holds event time back; without it, it does so for ever. A
        function that raises goes by ``on_error`` of the read.
        """
        step = self._port.step
        checked_function(at, step, "the event_time function", self._port.value_type)
        self._builder.set_event_time(
            step,
            EventTime(
                at=at,
                disorder_ms=_milliseconds(disorder, "disorder", step, least=0),
                idle_after_ms=None
                if idle_after is None
                else _milliseconds(idle_after, "idle_after", step, least=1),
            ),
        )
        return Stream(self._builder, self._port)


def _milliseconds(duration: timedelta, what: str, step: StepName, *, least: int) -> int:
    if not isinstance(duration, timedelta):
        raise JobError(
            f"{what} is {duration!r:.80}, which is no timedelta.",
            remedy="Give one, such as timedelta(seconds=5).",
            where=Where(step=step),
        )
    milliseconds = duration // timedelta(milliseconds=1)
    if milliseconds < least:
        raise JobError(f"{what} is {duration}.", remedy=f"Give at least {least} ms.", where=Where(step=step))
    return milliseconds
