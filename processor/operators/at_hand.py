"""The record or timer a keyed function is called for: what its context tells about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from processor.contracts.clock import Clock, TimeDomain
from processor.errors import JobError, Where
from processor.ids import KeyGroupRange, StepName
from processor.operators.operator import OperatorContext
from processor.protocol.entries import ReachedEventTime
from processor.records.batch import NO_HEADERS, Batch, Headers, Key
from processor.records.elements import MAX_TIME_MS, MIN_TIME_MS
from processor.records.key_groups import key_group


class AtHand:
    """Records of a batch, or timers that are due, and which of them is at hand.

    ``marks`` has an entry for every one that is done, so its length is the index of the one at hand: the loop
    that calls the author's function counts nothing for it.
    """

    def __init__(self, context: OperatorContext, marks: list[int]) -> None:
        self._step: StepName = context.step
        self._clock: Clock = context.clock
        self._max_parallelism = context.max_parallelism
        self._stored: Mapping[KeyGroupRange, int] = context.restored.watermarks
        self._now_ms = context.processing_time_ms
        self._watermark_ms = MIN_TIME_MS
        self._reached_ms = MIN_TIME_MS
        """The watermark, but for the one that says that all input has ended: a savepoint may go on with more."""
        self._passed_ms = MIN_TIME_MS
        """Event time of what happens: while timers fire, that of the one at hand, for they come one after another
        however far the watermark has gone at once. Else like ``_reached_ms``."""
        self._key_groups = context.key_groups
        self._marks = marks
        self._triggers: Batch[Any] | None = None
        self._domain: TimeDomain | None = None

    def begin(self, triggers: Batch[Any], domain: TimeDomain | None) -> None:
        """Records (domain None) or timers follow; ``triggers`` has their keys and times."""
        self._triggers = triggers
        self._domain = domain

    def end(self) -> None:
        self._triggers = None

    def advance_event_time(self, watermark_ms: int) -> None:
        self._watermark_ms = max(self._watermark_ms, watermark_ms)
        if watermark_ms < MAX_TIME_MS:
            self._reached_ms = max(self._reached_ms, watermark_ms)

    def fires(self, time_ms: int) -> None:
        """A timer for this time is next; told where something may expire. One that another sets for an earlier time
        comes right behind it."""
        if self._domain is TimeDomain.EVENT and time_ms > self._passed_ms:
            self._passed_ms = time_ms

    def event_time_passed(self) -> None:
        """All timers up to the watermark have fired."""
        self._passed_ms = self._reached_ms
        if self._stored and max(self._stored.values()) <= self._watermark_ms:
            self._stored = {}  # event time has caught up with every key group

    def event_times(self) -> tuple[ReachedEventTime, ...]:
        """What a snapshot keeps: what was reached, and what key groups had reached before a restore where that is
        more (R27)."""
        reached = dict(self._stored)
        reached[self._key_groups] = max(self._reached_ms, reached.get(self._key_groups, MIN_TIME_MS))
        return tuple(
            ReachedEventTime(step=self._step, key_groups=groups, watermark_ms=time_ms)
            for groups, time_ms in reached.items()
            if time_ms > MIN_TIME_MS and (time_ms > self._reached_ms or groups == self._key_groups)
        )

    def advance_processing_time(self, now_ms: int) -> int:
        """Now, which never goes back (R28)."""
        self._now_ms = max(self._now_ms, now_ms)
        return self._now_ms

    def where(self) -> Where:
        """The place of what is at hand, for errors."""
        if self._domain is not None:
            return Where(step=self._step)
        return self._batch().where(len(self._marks), self._step)

    def describe(self, what: str) -> str:
        """``what`` with the timer it was called for; a record is told by its place."""
        if self._domain is None:
            return what
        return f"{what}, for the {self._domain} timer at {self.timestamp_ms()} of key {self.key()!r:.80},"

    def key(self) -> Key:
        keys = self._batch().keys
        assert keys is not None
        return keys[len(self._marks)]

    def timestamp_ms(self) -> int:
        return self._batch().timestamps[len(self._marks)]

    def headers(self) -> Headers:
        return NO_HEADERS if self._domain is not None else self._batch().headers_of(len(self._marks))

    def watermark_ms(self) -> int:
        return self._at_least_restored(self._watermark_ms)

    def _at_least_restored(self, time_ms: int) -> int:
        """This event time, or what the key's group had reached before a restore (R27)."""
        if not self._stored:
            return time_ms
        group = key_group(self.key(), self._max_parallelism)
        stored = (reached_ms for groups, reached_ms in self._stored.items() if group in groups)
        return max(time_ms, max(stored, default=MIN_TIME_MS))

    def processing_time_ms(self) -> int:
        return self.advance_processing_time(self._clock.wall_ms())

    def now_ms(self, by: TimeDomain) -> int:
        """See ``Times.now_ms``."""
        if by is TimeDomain.PROCESSING:
            return self.processing_time_ms()
        return self._at_least_restored(self._passed_ms)

    def touched_ms(self, by: TimeDomain) -> int:
        """See ``Times.touched_ms``: by event time that of a record, which is ahead of the watermark."""
        now_ms = self.now_ms(by)
        of_record = by is TimeDomain.EVENT and self._domain is None
        return max(now_ms, self.timestamp_ms()) if of_record else now_ms

    def reached_ms(self, by: TimeDomain) -> int:
        """See ``Times.reached_ms``."""
        return self._now_ms if by is TimeDomain.PROCESSING else self._passed_ms

    def timer(self) -> TimeDomain | None:
        return self._domain

    def _batch(self) -> Batch[Any]:
        if self._triggers is None:
            raise JobError(
                "a context was used outside of the call it was handed to.",
                remedy="Use it only inside the methods that the engine calls, such as on_record and on_timer.",
            )
        return self._triggers
