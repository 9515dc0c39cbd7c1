"""Functions of simulated jobs that count in state of every kind, and compare the kinds with each other."""

from __future__ import annotations

from datetime import timedelta
from operator import add
from typing import Final

from processor import (
    AggregatingState,
    BroadcastContext,
    BroadcastState,
    Context,
    Count,
    Expiry,
    KeyedBroadcastProcess,
    KeyedProcess,
    ListState,
    MapState,
    RecordContext,
    ReducingState,
    SplitListState,
    TimeDomain,
    Transform,
    UnionListState,
    ValueState,
)

LISTED_MAX = 4
MAPPED_MAX = 3
KINDS: Final = ("listed", "mapped", "reduced", "aggregated")

TIME_TO_LIVE_MS = 300
EVENTS_TO_LIVE_MS = 4
NOTED_MAX = 20
"""Looked through for each record: on a real broker far more of them come."""

WAITING_MAX = 7


class WrongState(BaseException):
    """State is not what was put in. No Exception: after those a job is started again."""


class CountInEveryKind(KeyedProcess[str, str, str]):
    """Counts in state of every kind, and tells what each has counted."""

    listed = ListState(int)
    """Adds up to the count."""
    mapped = MapState(int, int)
    """Likewise its values; its keys come and go."""
    reduced = ReducingState(int, add)
    aggregated = AggregatingState(Count())

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self.reduced.add(1)
        self.aggregated.add(value)
        self.listed.append(1)
        numbers = self.listed.get() or []
        if len(numbers) > LISTED_MAX:
            self.listed.set([sum(numbers)])
        count = sum(numbers)
        self.mapped.set(count, 1)
        entries = self.mapped.items(ordered=True)
        if len(entries) > MAPPED_MAX:
            (first, one), (second, other), *_ = entries
            self.mapped.remove(first)
            self.mapped.set(second, one + other)
        for kind, counted in (
            ("listed", count),
            ("mapped", sum(self.mapped.values())),
            ("reduced", self.reduced.get()),
            ("aggregated", self.aggregated.get()),
        ):
            context.emit(f"{context.key}/{kind} {counted}")


class CountWhatExpires(KeyedProcess[str, str, str]):
    """Counts, and keeps counts in state that expires, beside a note of when that was; the two must agree.

    A clock may go on between two looks, so there is a moment at which a count may or may not be there.
    """

    seen = ValueState(int)
    latest = ValueState(int, expires_after=timedelta(milliseconds=TIME_TO_LIVE_MS))
    listed = ListState(int, expires_after=timedelta(milliseconds=TIME_TO_LIVE_MS))
    mapped = MapState(int, int, expires_after=timedelta(milliseconds=TIME_TO_LIVE_MS))
    timed = MapState(
        int, int, expires_after=Expiry(timedelta(milliseconds=EVENTS_TO_LIVE_MS), by=TimeDomain.EVENT)
    )
    noted = MapState(int, tuple[int, int, int])
    """For each count the processing time before and after it was kept, and the event time."""

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self._compare(context)
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(f"{context.key} {count}")
        if len(self.noted.keys()) >= NOTED_MAX:
            return
        before_ms = context.processing_time_ms
        self.latest.set(count)
        self.listed.append(count)
        self.mapped.set(count, count)
        self.timed.set(count, count)
        event_ms = max(context.watermark_ms, context.timestamp_ms)
        self.noted.set(count, (before_ms, context.processing_time_ms, event_ms))
        context.timers.at_processing_time(context.processing_time_ms + TIME_TO_LIVE_MS)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        self._compare(context)
        reached_ms = context.processing_time_ms
        for count, (_, after_ms, event_ms) in self.noted.items(ordered=True):
            if reached_ms - after_ms >= TIME_TO_LIVE_MS <= context.watermark_ms - event_ms:
                self.noted.remove(count)

    def _compare(self, context: Context[str, str]) -> None:
        from_ms = context.processing_time_ms
        latest, listed, mapped = self.latest.get(), self.listed.get() or [], self.mapped.keys(ordered=True)
        timed = self.timed.keys(ordered=True)
        until_ms = context.processing_time_ms
        noted = self.noted.items(ordered=True)
        alive = [count for count, (before_ms, _, _) in noted if until_ms - before_ms < TIME_TO_LIVE_MS]
        perhaps = [count for count, (_, after_ms, _) in noted if from_ms - after_ms < TIME_TO_LIVE_MS]
        in_time = [
            count for count, (_, _, event_ms) in noted if context.watermark_ms - event_ms < EVENTS_TO_LIVE_MS
        ]
        lasts = [] if latest is None else [latest]
        for kept in (listed, mapped):
            if not set(alive) <= set(kept) <= set(perhaps) or kept != sorted(set(kept)):
                raise WrongState(f"{context.key} has {kept}, and {alive} to {perhaps} are not over")
        if not set(alive[-1:]) <= set(lasts) <= set(perhaps[-1:]):
            raise WrongState(f"{context.key} has {latest} as its latest of {alive} to {perhaps}")
        if timed != in_time:
            raise WrongState(f"{context.key} has {timed} in event time, and {in_time} are not over")


class CountByRules(KeyedBroadcastProcess[str, str, str, str]):
    """Counts, and keeps how far it has come in every part of the broadcast stream."""

    seen = ValueState(int)
    numbers = BroadcastState(str, int)
    latest = BroadcastState(str, str)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        if {part: text.split()[1] for part, text in self.latest.items()} != {
            part: str(number) for part, number in self.numbers.items()
        }:
            raise WrongState(f"{self.latest.items()} is not {self.numbers.items()}")
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(f"{context.key} {count}")

    def on_broadcast(self, value: str, /, context: BroadcastContext) -> None:
        part, number, _ = value.split()
        before = self.numbers.get(part)
        if int(number) != (0 if before is None else before + 1):
            raise WrongState(f"'{value}' is broadcast behind number {before}")
        context.writable(self.numbers).set(part, int(number))
        context.writable(self.latest).set(part, value)


class Collect(Transform[str, str]):
    """Holds records back until there are a few; every subtask knows of all that were read before it started."""

    waiting = SplitListState(str)
    read = UnionListState(str)

    def on_start(self, subtask: int, subtasks: int, /) -> None:
        self.read.set(sorted(set(self.read.get())))
        self.known = {_part_and_number(value) for value in self.read}

    def on_record(self, value: str, /, context: RecordContext[str]) -> None:
        part, number = _part_and_number(value)
        if (part, number) in self.known:
            raise WrongState(f"'{value}' is read again")
        if number > 0 and (part, number - 1) not in self.known:
            raise WrongState(f"'{value}' is read, and nobody knows of the one before it")
        self.known.add((part, number))
        self.read.append(value)
        self.waiting.append(value)
        if len(self.waiting) >= WAITING_MAX:
            for each in self.waiting:
                context.emit(each)
            self.waiting.clear()

    def on_end(self, context: RecordContext[str], /) -> None:
        for each in self.waiting:
            context.emit(each)
        self.waiting.clear()


def _part_and_number(value: str) -> tuple[str, int]:
    part, number, _ = value.split()
    return part, int(number)
