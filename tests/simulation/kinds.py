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
MAPPED_MAX = 5
KINDS: Final = ("listed", "mapped", "reduced", "aggregated")

TIME_TO_LIVE_MS = 300
EVENTS_TO_LIVE_MS = 4
PLACES = 20
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
        place = count % MAPPED_MAX
        self.mapped.set(place, (self.mapped.get(place) or 0) + 1)
        if count % 2:
            gone, other = self.mapped.keys(ordered=True)[0], (place + 1) % MAPPED_MAX
            moved = self.mapped.get(gone) or 0
            self.mapped.remove(gone)
            self.mapped.set(other, (self.mapped.get(other) or 0) + moved)
        for kind, counted in (
            ("listed", count),
            ("mapped", sum(self.mapped.values())),
            ("reduced", self.reduced.get()),
            ("aggregated", self.aggregated.get()),
        ):
            context.emit(f"{context.key}/{kind} {counted}")


class CountWhatExpires(KeyedProcess[str, str, str]):
    """Counts, and keeps counts in state that expires, beside notes of when that was; the two must agree.

    A clock may go on between two looks, so there is a moment at which a count may or may not be there.
    """

    seen = ValueState(int)
    latest = ValueState(int, expires_after=timedelta(milliseconds=TIME_TO_LIVE_MS))
    listed = ListState(int, expires_after=timedelta(milliseconds=TIME_TO_LIVE_MS))
    mapped = MapState(int, int, expires_after=timedelta(milliseconds=TIME_TO_LIVE_MS))
    timed = MapState(
        int, int, expires_after=Expiry(timedelta(milliseconds=EVENTS_TO_LIVE_MS), by=TimeDomain.EVENT)
    )
    noted = MapState(int, tuple[int, int, int, int])
    """Under the same places: the count, the processing time before and after it was kept, and the event time."""

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self._compare(context)
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(f"{context.key} {count}")
        place = count % PLACES
        if place in self.noted:
            return
        before_ms = context.processing_time_ms
        self.latest.set(count)
        self.listed.append(count)
        self.mapped.set(place, count)
        self.timed.set(place, count)
        event_ms = max(context.watermark_ms, context.timestamp_ms)
        self.noted.set(place, (count, before_ms, context.processing_time_ms, event_ms))
        context.timers.at_processing_time(context.processing_time_ms + TIME_TO_LIVE_MS)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        self._compare(context)
        reached_ms = context.processing_time_ms
        for place, (_, _, after_ms, event_ms) in self.noted.items(ordered=True):
            if reached_ms - after_ms >= TIME_TO_LIVE_MS and self._past(event_ms, context):
                self.noted.remove(place)

    def _past(self, event_ms: int, context: Context[str, str]) -> bool:
        return context.watermark_ms - event_ms >= EVENTS_TO_LIVE_MS

    def _compare(self, context: Context[str, str]) -> None:
        from_ms = context.processing_time_ms
        latest, listed, mapped = self.latest.get(), self.listed.get() or [], dict(self.mapped.items())
        timed = dict(self.timed.items())
        until_ms = context.processing_time_ms
        noted = self.noted.items(ordered=True)
        alive = {
            place: count
            for place, (count, before_ms, _, _) in noted
            if until_ms - before_ms < TIME_TO_LIVE_MS
        }
        perhaps = {
            place: count for place, (count, _, after_ms, _) in noted if from_ms - after_ms < TIME_TO_LIVE_MS
        }
        in_time = {
            place: count for place, (count, _, _, event_ms) in noted if not self._past(event_ms, context)
        }
        if not alive.items() <= mapped.items() <= perhaps.items():
            raise WrongState(f"{context.key} has {mapped}, and {alive} to {perhaps} are not over")
        if not {*alive.values()} <= {*listed} <= {*perhaps.values()} or listed != sorted({*listed}):
            raise WrongState(f"{context.key} has {listed}, and {alive} to {perhaps} are not over")
        newest = max(perhaps.values(), default=None)
        if latest != newest and (latest is not None or newest in alive.values()):
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


class Tell(Transform[str, str]):
    """Counts as they come, each key's in order; every subtask knows of all that were told before it started."""

    told = UnionListState(str)

    def on_start(self, subtask: int, subtasks: int, /) -> None:
        self.told.set(sorted(set(self.told.get())))
        self.known = set(self.told)

    def on_record(self, value: str, /, context: RecordContext[str]) -> None:
        key, count = value.split()
        if value in self.known:
            raise WrongState(f"'{value}' is told again")
        if int(count) > 1 and f"{key} {int(count) - 1}" not in self.known:
            raise WrongState(f"'{value}' is told, and nobody knows of the one before it")
        self.known.add(value)
        self.told.append(value)
        context.emit(value)


def _part_and_number(value: str) -> tuple[str, int]:
    part, number, _ = value.split()
    return part, int(number)
