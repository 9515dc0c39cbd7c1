"""The laws that authors are given, on jobs of every built-in operator: cutting, restoring, rescaling."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from operator import add
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import (
    AggregatingState,
    BroadcastContext,
    BroadcastState,
    Context,
    Expiry,
    Job,
    KeyedBroadcastProcess,
    KeyedCoProcess,
    KeyedProcess,
    ListState,
    MapState,
    RecordContext,
    ReducingState,
    SideOutput,
    SplitListState,
    TimeDomain,
    Transform,
    ValueState,
)
from processor.operators.aggregates import Count, Keyed, Sum
from processor.stream.source_stream import SourceStream
from processor.testing.laws import (
    EventTime,
    Given,
    Happening,
    LawBroken,
    TimePasses,
    same_at_any_parallelism,
    same_however_cut,
    same_when_restored,
)

LATER_MS = 3_600_000


class Everything(KeyedProcess[str, int, int]):
    """State of every kind, timers of both kinds, a side output."""

    total = ValueState(int)
    seen = ListState(int)
    largest = ReducingState(int, max)
    count = AggregatingState(Count())
    times = MapState(int, int)
    today = ReducingState(int, add, expires_after=timedelta(milliseconds=LATER_MS))
    recent = ListState(int, expires_after=Expiry(timedelta(milliseconds=4), by=TimeDomain.EVENT))
    looked_at = MapState(
        int, int, expires_after=Expiry(timedelta(milliseconds=3), by=TimeDomain.EVENT, reads_renew=True)
    )
    odd = SideOutput(int)

    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        self.today.add(value)
        self.recent.append(value)
        self.looked_at.set(value, 1)
        context.emit((self.today.get() or 0) * 100 + len(self.recent.get() or []))
        total = (self.total.get() or 0) + value
        self.total.set(total)
        self.seen.append(value)
        self.largest.add(value)
        self.count.add(value)
        self.times.set(value, (self.times.get(value) or 0) + 1)
        context.emit(total)
        if value % 2:
            self.odd.emit(value)
        context.timers.at_event_time(value * 2)
        # Far enough apart from each other, and from what a run takes.
        context.timers.at_processing_time(context.processing_time_ms // LATER_MS * LATER_MS + LATER_MS)

    def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
        context.emit((self.today.get() or 0) * 100 + len(self.recent.get() or []))
        context.emit(len(self.looked_at.keys()))
        context.emit(-sum(self.seen.get() or []))
        context.emit((self.largest.get() or 0) - (self.count.get() or 0))
        context.emit(sum(key * times for key, times in self.times.items()))
        self.times.remove(max(self.times.keys(), default=0))
        self.seen.set((self.seen.get() or [])[-3:])


class Doubled(Transform[int, int]):
    """Every number twice, the second time out of a list of its own."""

    numbers = SplitListState(int)

    def on_record(self, value: int, /, context: RecordContext[int]) -> None:
        self.numbers.append(value)
        context.emit(value)
        for number in self.numbers:
            context.emit(number)
        self.numbers.clear()


class Both(KeyedCoProcess[str, int, int, int]):
    """State and timers that two streams share; which of them comes first changes nothing."""

    left = ValueState(int)
    right = ValueState(int)
    total = ValueState(int)
    of_right = SideOutput(int)

    def on_left(self, value: int, /, context: Context[str, int]) -> None:
        count = (self.left.get() or 0) + 1
        self.left.set(count)
        context.emit(count)
        self._add(value, context)

    def on_right(self, value: int, /, context: Context[str, int]) -> None:
        count = (self.right.get() or 0) + 1
        self.right.set(count)
        self.of_right.emit(count)
        self._add(value, context)

    def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
        context.emit(-(self.total.get() or 0))

    def _add(self, value: int, context: Context[str, int]) -> None:
        self.total.set((self.total.get() or 0) + value)
        context.timers.at_processing_time(context.processing_time_ms // LATER_MS * LATER_MS + LATER_MS)


class ByRules(KeyedBroadcastProcess[str, int, int, int]):
    """Adds up what each key has, by what is broadcast."""

    total = ValueState(int)
    factors = BroadcastState(int, int)

    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        total = (self.total.get() or 0) + value * sum(self.factors.values())
        self.total.set(total)
        context.emit(total)

    def on_broadcast(self, value: int, /, context: BroadcastContext) -> None:
        factors = context.writable(self.factors)
        factors.set(value % 4, (self.factors.get(value % 4) or 0) * 10 + value)


def key_of(value: int) -> str:
    return "abc"[value % 3]


def process(job: Job, numbers: SourceStream[int]) -> None:
    timed = numbers.event_time(lambda value: value, disorder=timedelta(milliseconds=2))
    counted = timed.key_by("by-key", key_of).process("process", Everything)
    counted.write("write", sink())
    counted.side(Everything.odd).write("write-odd", sink())


def union(job: Job, numbers: SourceStream[int]) -> None:
    others = job.read("others", source())
    numbers.union("union", others).key_by("by-key", key_of).aggregate("count", Count()).write(
        "write", counts()
    )


def connect(job: Job, numbers: SourceStream[int]) -> None:
    others = job.read("others", source()).key_by("by-other-key", key_of)
    counted = numbers.key_by("by-key", key_of).connect(others).process("connect", Both)
    counted.write("write", sink())
    counted.side(Both.of_right).write("write-right", sink())


def broadcast(job: Job, numbers: SourceStream[int]) -> None:
    rules = job.read("others", source()).broadcast("to-all")
    numbers.key_by("by-key", key_of).connect_broadcast(rules).process("apply", ByRules).write("write", sink())


def source() -> KafkaSource[int]:
    return KafkaSource("in", Json(int))


def sink() -> KafkaSink[Any]:
    return KafkaSink("out", Json(int))


def counts() -> KafkaSink[Any]:
    return KafkaSink("out", Json(Keyed[str, int]))


OPERATORS: dict[str, Callable[[Job, SourceStream[int]], Any]] = {
    "write": lambda job, numbers: numbers.write("write", sink()),
    "map": lambda job, numbers: numbers.map("map", lambda value: value * 2).write("write", sink()),
    "filter": lambda job, numbers: numbers.filter("filter", lambda value: value % 3 > 0).write(
        "write", sink()
    ),
    "flat_map": lambda job, numbers: (
        numbers.flat_map("flat_map", lambda value: range(value % 4)).returns(int).write("write", sink())
    ),
    "map_batch": lambda job, numbers: (
        numbers.map_batch("map_batch", lambda values: [value + 1 for value in values])
        .returns(int)
        .write("write", sink())
    ),
    "union": union,
    "connect": connect,
    "broadcast": broadcast,
    "rebalance": lambda job, numbers: numbers.rebalance("rebalance").write("write", sink()),
    "partition_by": lambda job, numbers: numbers.partition_by("partition_by", lambda value: value % 2).write(
        "write", sink()
    ),
    "transform": lambda job, numbers: numbers.transform("transform", Doubled).write("write", sink()),
    "key_by": lambda job, numbers: (
        numbers.key_by("by-key", key_of).filter("filter", lambda value: value > 1).write("write", sink())
    ),
    "process": process,
    "count": lambda job, numbers: (
        numbers.key_by("by-key", key_of).aggregate("count", Count()).write("write", counts())
    ),
    "sum": lambda job, numbers: (
        numbers.key_by("by-key", key_of).aggregate("sum", Sum[int](int)).write("write", counts())
    ),
}


def job_of(name: str) -> Job:
    job = Job(f"law-{name}".replace("_", "-"))
    OPERATORS[name](job, job.read("read", source()))
    return job


HISTORY: list[Happening] = [
    *(Given(step="read", value=value) for value in (3, 1, 4, 1, 5)),
    TimePasses(by_ms=2 * LATER_MS),
    *(Given(step="read", value=value) for value in (9, 2, 6)),
]


def history_of(name: str) -> list[Happening]:
    """With what only some jobs have: event time, and a second source."""
    if name == "process":
        return [*HISTORY, EventTime(step="read", time_ms=11), *HISTORY[:3]]
    if name == "broadcast":  # which of two records of different streams comes first is not promised
        rules: list[Happening] = [Given(step="others", value=value) for value in (1, 2, 5)]
        return [*rules, TimePasses(by_ms=1), *HISTORY, *rules, TimePasses(by_ms=1), *HISTORY[:3]]
    if name in ("union", "connect"):
        return [*HISTORY, *(Given(step="others", value=value) for value in (1, 2, 3)), *HISTORY[5:]]
    return HISTORY


@pytest.mark.parametrize("name", OPERATORS)
def test_how_records_are_cut_into_batches_does_not_matter(name: str):
    same_however_cut(job_of(name), history_of(name), cuts=[0, 2, 3, 7])


@pytest.mark.parametrize("name", OPERATORS)
def test_restoring_and_rescaling_does_not_matter(name: str):
    same_when_restored(job_of(name), history_of(name), at=4, parallelism=3, then=2)


@pytest.mark.parametrize("name", OPERATORS)
def test_parallelism_does_not_matter(name: str):
    same_at_any_parallelism(job_of(name), history_of(name), parallelism=3)


steps = st.lists(
    st.tuples(st.sampled_from(["value", "value", "value", "event time", "time passes"]), st.integers(1, 9)),
    max_size=8,
)


def in_time(steps: list[tuple[str, int]]) -> list[Happening]:
    """No record comes when event time has passed it."""
    history: list[Happening] = []
    now_ms = 0
    for what, more in steps:
        if what == "value":
            history.append(Given(step="read", value=now_ms + more))
        elif what == "event time":
            now_ms += more
            history.append(EventTime(step="read", time_ms=now_ms))
        else:
            history.append(TimePasses(by_ms=2 * LATER_MS))
    return history


@settings(max_examples=5)
@given(
    history=steps.map(in_time),
    cuts=st.sets(st.integers(0, 7)),
    at=st.integers(0, 8),
    parallelism=st.sampled_from([(1, 1), (1, 3), (2, 3)]),
)
def test_any_history_of_a_keyed_function(
    history: list[Any], cuts: set[int], at: int, parallelism: tuple[int, int]
):
    before, then = parallelism
    same_however_cut(job_of("process"), history, cuts=cuts)
    same_when_restored(job_of("process"), history, at=at, parallelism=before, then=then)


class Forgetful(KeyedProcess[str, int, int]):
    """Counts in an attribute, which is in no checkpoint and of no key."""

    def __init__(self) -> None:
        self.count = 0

    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        self.count += 1
        context.emit(self.count)


def test_the_laws_find_jobs_that_break_them():
    job = Job("forgetful")
    keyed = job.read("read", source()).key_by("by-key", key_of)
    keyed.process("count", Forgetful).write("write", sink())
    history = [Given(step="read", value=value) for value in range(6)]
    with pytest.raises(LawBroken, match="restored before happening 3"):
        same_when_restored(job, history, at=3)
    with pytest.raises(LawBroken, match="parallelism 3 instead of 1"):
        same_at_any_parallelism(job, history, parallelism=3)
    lengths = Job("lengths")
    counted = lengths.read("read", source()).map_batch("length", lambda values: [len(values)] * len(values))
    counted.returns(int).write("write", sink())
    with pytest.raises(LawBroken, match="batches end behind"):
        same_however_cut(lengths, history, cuts=[2])
