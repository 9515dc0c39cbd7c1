"""The law of keyed steps: snapshot, restore into any number of subtasks over either store, continue, and nobody
can tell it from one subtask that was never interrupted.

For each key what is put out is equal, in order, and so is the event time that a key's records see (R27).
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.ids import StepName, SubtaskId, key_groups_of, owner_of
from processor.operators.aggregates import Count, Sum
from processor.operators.aggregating_state import AggregatingState
from processor.operators.context import Context
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.operator import AnyOperator
from processor.operators.process_function import KeyedCoProcess, KeyedProcess, SideOutput
from processor.operators.running_aggregate import RunningAggregate
from processor.protocol.entries import SubtaskSnapshot
from processor.records.key_groups import key_group
from processor.runtime.restoring import restored_operator
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.state.reducing_state import ReducingState
from tests.unit.operators.kit import MAX_PARALLELISM, Bench, Running, batch

KEYS = "abcdefgh"
PARALLELISM_MAX = 4


@dataclass(frozen=True)
class Record:
    key: str
    value: int
    input: int


@dataclass(frozen=True)
class Watermark:
    time_ms: int


@dataclass(frozen=True)
class Clock:
    now_ms: int


@dataclass(frozen=True)
class Restore:
    parallelism: int
    backend: str


records = st.builds(Record, key=st.sampled_from(KEYS), value=st.integers(1, 12), input=st.integers(0, 1))
events = st.one_of(
    records,
    records,
    records,
    st.builds(Watermark, time_ms=st.integers(0, 30)),
    st.builds(Clock, now_ms=st.integers(1_000, 1_030)),
    st.builds(
        Restore,
        parallelism=st.integers(1, PARALLELISM_MAX),
        backend=st.sampled_from(["memory", "rocksdb"]),
    ),
)


class Put(NamedTuple):
    key: str
    number: int
    time_ms: int


class Remembers(KeyedProcess[str, int, Put]):
    total = ValueState(int)
    seen = ValueState(list[int])
    even = SideOutput(Put)

    def on_record(self, value: int, /, context: Context[str, Put]) -> None:
        total = (self.total.get() or 0) + value
        self.total.set(total)
        self.seen.set([*(self.seen.get() or []), value][-3:])
        context.emit(Put(context.key, total, context.watermark_ms))
        context.timers.at_event_time(2 * value)
        context.timers.at_processing_time(1_000 + value)
        if total > 30:
            self.total.clear()

    def on_timer(self, time_ms: int, /, context: Context[str, Put]) -> None:
        self.even.emit(Put(context.key, sum(self.seen.get() or []), time_ms))


class RemembersBoth(KeyedCoProcess[str, int, int, Put]):
    left = ValueState(int)
    right = ValueState(int)
    even = SideOutput(Put)

    def on_left(self, value: int, /, context: Context[str, Put]) -> None:
        self.left.set((self.left.get() or 0) + value)
        context.emit(Put(context.key, self._balance(), context.watermark_ms))
        context.timers.at_event_time(2 * value)

    def on_right(self, value: int, /, context: Context[str, Put]) -> None:
        self.right.set((self.right.get() or 0) + value)
        self.even.emit(Put(context.key, self._balance(), context.watermark_ms))
        context.timers.at_processing_time(1_000 + value)

    def on_timer(self, time_ms: int, /, context: Context[str, Put]) -> None:
        context.emit(Put(context.key, self._balance(), time_ms))
        self.right.clear()

    def _balance(self) -> int:
        return (self.left.get() or 0) - (self.right.get() or 0)


class RemembersInEveryKind(KeyedProcess[str, int, Put]):
    """What each kind of state holds shows in what is put out."""

    latest = ListState(int)
    largest = ReducingState(int, max)
    pairs = ReducingState(list[int], operator.add)
    count = AggregatingState(Count())
    by_value = MapState(int, list[int])
    even = SideOutput(Put)

    def on_record(self, value: int, /, context: Context[str, Put]) -> None:
        self.latest.append(value)
        self.largest.add(value)
        self.pairs.add([value, -value])
        self.count.add(value)
        self.by_value.set(value % 5, [*(self.by_value.get(value % 5) or []), value][-2:])
        self.by_value.remove((value + 2) % 5)
        if value == 10:
            self.by_value.clear()
        self.even.emit(Put(context.key, self._folded(), len(self.by_value.keys())))
        context.emit(Put(context.key, sum(self.latest.get() or []), self.largest.get() or 0))
        if value == 12:
            self.latest.clear()
            self.largest.clear()
        if value == 11:
            self.pairs.clear()
            self.count.clear()
        context.timers.at_event_time(2 * value)

    def on_timer(self, time_ms: int, /, context: Context[str, Put]) -> None:
        self.even.emit(Put(context.key, len(self.pairs.get() or []), self.count.get() or 0))
        self.even.emit(Put(context.key, self._folded(), len(self.by_value.keys())))
        self.latest.set(value for value in self.latest.get() or [] if value % 2)

    def _folded(self) -> int:
        """Another number for every other content and order."""
        folded = 0
        for key, values in self.by_value.items(ordered=True):
            for value in (key, *values):
                folded = (folded * 31 + value) % 1_000_003
        return folded


OPERATORS: dict[str, Callable[[], AnyOperator]] = {
    "process": lambda: KeyedProcessOperator(Remembers),
    "kinds": lambda: KeyedProcessOperator(RemembersInEveryKind),
    "connect": lambda: KeyedProcessOperator(RemembersBoth, key_class=str),
    "count": lambda: RunningAggregate(Count(), total_type=int),
    "sum": lambda: RunningAggregate(Sum[int](lambda value: value), total_type=int),
}
ONE_INPUT = ("process", "kinds", "count", "sum")


class Subtasks:
    """All subtasks of one step, and what each key's records have put out so far."""

    def __init__(self, make: Callable[[], AnyOperator], folder: Path) -> None:
        self._make = make
        self._bench = Bench(directory=folder)
        self._running: list[Running] = []
        self.put: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self._open(1, "memory", ())

    def feed(self, record: Record, offset: int) -> None:
        owner = owner_of(key_group(record.key, MAX_PARALLELISM), len(self._running), MAX_PARALLELISM)
        fed = batch([record.value], keys=[record.key], offset=offset)
        self._note(self._running[owner].feed(fed, record.input))

    def watermark(self, time_ms: int) -> None:
        for running in self._running:
            self._note(running.watermark(time_ms))

    def clock(self, now_ms: int) -> None:
        for running in self._running:
            self._note(running.clock(max(now_ms, self._bench.clock.now_ms)))

    def restore(self, parallelism: int, backend: str, checkpoint: int) -> None:
        snapshots = [running.cut(checkpoint) for running in self._running]
        self.close()
        self._open(
            parallelism,
            backend,
            [
                SubtaskSnapshot(
                    subtask=SubtaskId(StepName("step"), index),
                    keyed=snapshot.keyed,
                    event_times=snapshot.event_times,
                )
                for index, snapshot in enumerate(snapshots)
            ],
        )

    def close(self) -> None:
        for running in self._running:
            running.operator.close()

    def _open(self, parallelism: int, backend: str, snapshots: Sequence[SubtaskSnapshot]) -> None:
        self._bench.backend_name = backend
        self._running = []
        for index in range(parallelism):
            groups = key_groups_of(index, parallelism, MAX_PARALLELISM)
            context = replace(
                self._bench.context(),
                subtask_index=index,
                parallelism=parallelism,
                key_groups=groups,
                file_prefix=f"1/step-{index}/",
                restored=restored_operator(snapshots, StepName("step"), groups),
            )
            self._running.append(Running(self._bench, self._make(), ("even",), context))

    def _note(self, running: Running) -> None:
        for name, out in {"main": running.out, **running.sides}.items():
            for value, time_ms, key, *_ in out.rows:
                self.put[name, key].append((value, time_ms))
            out.batches.clear()


def played(
    make: Callable[[], AnyOperator], history: Sequence[Any], *, restores: bool
) -> dict[Any, list[Any]]:
    with TemporaryDirectory() as folder:
        subtasks = Subtasks(make, Path(folder))
        for number, event in enumerate(history, 1):
            match event:
                case Record():
                    subtasks.feed(event, number)
                case Watermark(time_ms=time_ms):
                    subtasks.watermark(time_ms)
                case Clock(now_ms=now_ms):
                    subtasks.clock(now_ms)
                case Restore(parallelism=parallelism, backend=backend) if restores:
                    subtasks.restore(parallelism, backend, number)
        subtasks.close()
        return dict(subtasks.put)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=60)
@given(history=st.lists(events, max_size=40))
def test_r27_restored_anywhere_it_goes_on_as_if_nothing_had_been(name: str, history: list[Any]) -> None:
    if name in ONE_INPUT:
        history = [replace(event, input=0) if isinstance(event, Record) else event for event in history]
    make = OPERATORS[name]
    assert played(make, history, restores=True) == played(make, history, restores=False)


def test_the_law_finds_a_step_that_forgets() -> None:
    """The law can fail: what is kept outside of declared state is lost."""

    class Forgets(KeyedProcess[str, int, Put]):
        def __init__(self) -> None:
            self.total = 0

        def on_record(self, value: int, /, context: Context[str, Put]) -> None:
            self.total += value
            context.emit(Put(context.key, self.total, 0))

    history = [Record("a", 1, 0), Restore(2, "memory"), Record("a", 1, 0)]

    def make() -> AnyOperator:
        return KeyedProcessOperator(Forgets)

    assert played(make, history, restores=True) != played(make, history, restores=False)
