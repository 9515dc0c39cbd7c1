"""What a keyed function sees of the record or timer at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from processor.contracts.clock import TimeDomain
from processor.records.batch import Headers, Key
from processor.records.elements import MAX_TIME_MS, MIN_TIME_MS

K = TypeVar("K", bound=Key)
W = TypeVar("W")


class Timers:
    """Sets timers for the key at hand; ``on_timer`` is called once for each (kind, key, time).

    An event-time timer fires when the watermark reaches it, a processing-time timer when the clock does; one
    set for a time already reached fires at the next occasion.
    """

    __slots__ = ("_add_event", "_add_processing")

    def __init__(self, add_event: Callable[[int], None], add_processing: Callable[[int], None]) -> None:
        self._add_event = add_event
        self._add_processing = add_processing

    def at_event_time(self, time_ms: int) -> None:
        """Milliseconds since 1970 UTC, of event time."""
        self._add_event(_whole(time_ms))

    def at_processing_time(self, time_ms: int) -> None:
        """Milliseconds since 1970 UTC; ``context.processing_time_ms`` is now."""
        self._add_processing(_whole(time_ms))


def _whole(time_ms: int) -> int:
    """Checked here, where the record is known: a snapshot could not hold it, and would fail again and again."""
    if type(time_ms) is not int or not MIN_TIME_MS <= time_ms <= MAX_TIME_MS:
        raise TypeError(f"a timer's time is milliseconds since 1970 as an int, not {time_ms!r:.80}")
    return time_ms


class Trigger(Protocol):
    """Where the engine stands: what ``Context`` asks."""

    def key(self) -> Key: ...

    def timestamp_ms(self) -> int: ...

    def headers(self) -> Headers: ...

    def watermark_ms(self) -> int: ...

    def processing_time_ms(self) -> int: ...

    def timer(self) -> TimeDomain | None: ...


class Context(Generic[K, W]):
    """Handed to ``on_timer`` and to the methods that take records, and of use only during the call."""

    __slots__ = ("_timers", "_trigger", "emit")

    def __init__(self, trigger: Trigger, timers: Timers, emit: Callable[[W], None]) -> None:
        self._trigger = trigger
        self._timers = timers
        self.emit: Callable[[W], None] = emit
        """Send a value on, with key and timestamp of the record or timer at hand and without headers. It is a
        list's own ``append``: nothing of ours runs between."""

    @property
    def key(self) -> K:
        """The key of the record or timer at hand."""
        return self._trigger.key()  # type: ignore[return-value]

    @property
    def timestamp_ms(self) -> int:
        """Event time of the record (-1: it has none), or the time of the timer."""
        return self._trigger.timestamp_ms()

    @property
    def headers(self) -> Headers:
        """Headers of the record, in order; a timer has none."""
        return self._trigger.headers()

    @property
    def timers(self) -> Timers:
        return self._timers

    @property
    def timer(self) -> TimeDomain | None:
        """In ``on_timer`` the kind of timer that fires, None while a record is at hand."""
        return self._trigger.timer()

    @property
    def watermark_ms(self) -> int:
        """Event time reached for this key; never goes back, not even over a restart (R27)."""
        return self._trigger.watermark_ms()

    @property
    def processing_time_ms(self) -> int:
        """Now, in milliseconds since 1970 UTC; never goes back, not even over a restart (R28)."""
        return self._trigger.processing_time_ms()
