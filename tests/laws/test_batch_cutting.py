"""The law under every operator: how records are cut into batches changes nothing.

For any two ways of cutting the same records, with marks at the same places, what an operator sends between
two marks is equal, record for record, and so is what its snapshots hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.contracts.clock import TimeDomain
from processor.contracts.policy import Fail, Policy, Skip
from processor.ids import CheckpointId, StepName
from processor.operators.aggregates import Count, Sum
from processor.operators.aggregating_state import AggregatingState
from processor.operators.chain import ChainExit, ChainLink, ChainNode, ChainRunner
from processor.operators.context import Context
from processor.operators.key_by import KeyBy
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.lift import Filter, FlatMap, Map, MapBatch, Union
from processor.operators.operator import AnyOperator
from processor.operators.outbox_sink import OutboxSink
from processor.operators.process_function import KeyedCoProcess, KeyedProcess, SideOutput
from processor.operators.running_aggregate import RunningAggregate
from processor.operators.transform import TransformOperator
from processor.operators.transform_function import RecordContext, Transform
from processor.state.declarations import ValueState
from processor.state.expiry import Expiry
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.state.operator_state import SplitListState
from processor.state.reducing_state import ReducingState
from tests.unit.operators.kit import Bench, Recorder, TextSink, batch, rows_of

KINDS = {
    "total": int,
    "seen": list[int],
    "latest": list[int],
    "largest": int,
    "count": int,
    "by_value": tuple[bytes, int],
    "gathered": int,
    "soon": tuple[int, int],
    "soon_listed": list[tuple[int, int]],
    "soon_mapped": tuple[bytes, tuple[int, int]],
}


@dataclass(frozen=True)
class Record:
    key: str
    value: int
    input: int = 0


@dataclass(frozen=True)
class Mark:
    kind: str
    time_ms: int = 0


records = st.builds(Record, key=st.sampled_from("abc"), value=st.integers(-3, 9))
marks = st.one_of(
    st.builds(Mark, kind=st.just("watermark"), time_ms=st.integers(0, 20)),
    st.builds(Mark, kind=st.just("clock"), time_ms=st.integers(0, 20)),
    st.builds(Mark, kind=st.just("cut")),
)
histories = st.lists(st.one_of(records, records, records, marks), max_size=40)
two_inputs = st.builds(Record, key=st.sampled_from("abc"), value=st.integers(-3, 9), input=st.integers(0, 1))
histories_of_two = st.lists(st.one_of(two_inputs, two_inputs, two_inputs, marks), max_size=40)
cuttings = st.lists(st.booleans(), min_size=40, max_size=40)
"""Whether a batch ends behind each record."""


class Everything(KeyedProcess[str, int, tuple[str, int]]):
    """State, timers of both kinds, any number of outputs; raises for -1, half-way through."""

    total = ValueState(int)
    seen = ValueState(list[int])
    odd = SideOutput(int)

    def on_record(self, value: int, /, context: Context[str, tuple[str, int]]) -> None:
        total = (self.total.get() or 0) + value
        self.total.set(total)
        self.seen.set([*(self.seen.get() or []), value][-3:])
        for _ in range(value % 3):
            context.emit((context.key, total))
        if value % 2:
            self.odd.emit(context.timestamp_ms)
        context.timers.at_event_time(value * 2)
        context.timers.at_processing_time(value * 3)
        if value == -1:
            raise ValueError("half-way")
        if total > 20:
            self.total.clear()

    def on_timer(self, time_ms: int, /, context: Context[str, tuple[str, int]]) -> None:
        context.emit((context.key, time_ms + (self.total.get() or 0)))
        if time_ms == -2:
            raise ValueError("this one")


class InEveryKind(KeyedProcess[str, int, tuple[str, int]]):
    """Every kind of state; raises for -1, half-way through."""

    latest = ListState(int)
    largest = ReducingState(int, max)
    count = AggregatingState(Count())
    by_value = MapState(int, int)

    def on_record(self, value: int, /, context: Context[str, tuple[str, int]]) -> None:
        self.latest.append(value)
        self.largest.add(value)
        self.by_value.set(value, (self.by_value.get(value) or 0) + 1)
        self.by_value.remove(value - 1)
        if value == 9:
            self.by_value.clear()
            self.latest.clear()
            self.count.clear()
        if value == -1:
            raise ValueError("half-way")
        self.count.add(value)
        context.emit((context.key, sum(self.latest.get() or []) + (self.largest.get() or 0)))
        context.timers.at_event_time(value * 2)

    def on_timer(self, time_ms: int, /, context: Context[str, tuple[str, int]]) -> None:
        context.emit((context.key, self.count.get() or 0))
        for key, count in self.by_value.items(ordered=True):
            context.emit((context.key, key * count))
        self.by_value.remove(time_ms // 2)
        self.latest.set([time_ms])
        self.largest.clear()


class Expiring(KeyedProcess[str, int, tuple[str, int]]):
    """State that expires, by either time; raises for -1, half-way through."""

    soon = ValueState(int, expires_after=timedelta(milliseconds=4))
    soon_listed = ListState(int, expires_after=Expiry(timedelta(milliseconds=5), by=TimeDomain.EVENT))
    soon_mapped = MapState(int, int, expires_after=Expiry(timedelta(milliseconds=3), reads_renew=True))

    def on_record(self, value: int, /, context: Context[str, tuple[str, int]]) -> None:
        self.soon.set((self.soon.get() or 0) + value)
        self.soon_listed.append(value)
        self.soon_mapped.set(value, (self.soon_mapped.get(value - 1) or 0) + 1)
        if value == -1:
            raise ValueError("half-way")
        self._tell(context)
        context.timers.at_event_time(value * 2)

    def on_timer(self, time_ms: int, /, context: Context[str, tuple[str, int]]) -> None:
        self._tell(context)

    def _tell(self, context: Context[str, tuple[str, int]]) -> None:
        context.emit((context.key, self.soon.get() or 0))
        context.emit((context.key, sum(self.soon_listed.get() or [])))
        context.emit((context.key, sum(self.soon_mapped.values())))


class Gather(Transform[int, list[int]]):
    """Holds values back until there are three; raises for -1, half-way through."""

    gathered = SplitListState(int)

    def on_record(self, value: int, /, context: RecordContext[list[int]]) -> None:
        self.gathered.append(value)
        if len(self.gathered) == 3:
            context.emit(self.gathered.get())
            self.gathered.clear()
        if value == -1:
            raise ValueError("half-way")
        if value == 9:
            self.gathered.set([value, value])


class Both(KeyedCoProcess[str, int, int, tuple[str, int]]):
    """State and timers that two inputs share; either raises for -1, half-way through."""

    total = ValueState(int)
    odd = SideOutput(int)

    def on_left(self, value: int, /, context: Context[str, tuple[str, int]]) -> None:
        self.total.set((self.total.get() or 0) + value)
        context.timers.at_event_time(value * 2)
        self._put_out(value, context)

    def on_right(self, value: int, /, context: Context[str, tuple[str, int]]) -> None:
        self.total.set((self.total.get() or 1) * value)
        context.timers.at_processing_time(value * 3)
        if value % 2:
            self.odd.emit(context.timestamp_ms)
        self._put_out(value, context)

    def on_timer(self, time_ms: int, /, context: Context[str, tuple[str, int]]) -> None:
        context.emit((context.key, time_ms + (self.total.get() or 0)))
        self.total.clear()

    def _put_out(self, value: int, context: Context[str, tuple[str, int]]) -> None:
        for _ in range(value % 3):
            context.emit((context.key, self.total.get() or 0))
        if value == -1:
            raise ValueError("half-way")


def fragile(value: int) -> int:
    if value == -1:
        raise ValueError("no")
    return value * 2


def fragile_many(value: int) -> Iterator[int]:
    yield from range(value)
    fragile(value)
    yield value


def fragile_batch(values: Any) -> list[int]:
    return [fragile(value) for value in values]


def fragile_key(value: int) -> int | None:
    return None if value == 0 else fragile(value)


OPERATORS: dict[str, Callable[[], AnyOperator]] = {
    "map": lambda: Map(fragile),
    "filter": lambda: Filter(lambda value: fragile(value) % 3 == 0),
    "flat_map": lambda: FlatMap(fragile_many),
    "map_batch": lambda: MapBatch(fragile_batch),
    "union": Union,
    "key_by": lambda: KeyBy(fragile_key, type_known=True),
    "process": lambda: KeyedProcessOperator(Everything),
    "kinds": lambda: KeyedProcessOperator(InEveryKind),
    "expiring": lambda: KeyedProcessOperator(Expiring),
    "transform": lambda: TransformOperator(Gather),
    "count": lambda: RunningAggregate(Count(), total_type=int),
    "sum": lambda: RunningAggregate(Sum[int](fragile), total_type=int),
    "write": lambda: OutboxSink(TextSink()),
}


class Run:
    """One operator, or a chain of them, over one history; notes what came out between which marks."""

    def __init__(self, nodes: list[AnyOperator], policy: Policy) -> None:
        self.bench = Bench()
        self.outs = {"main": Recorder(), "odd": Recorder()}
        steps = [ChainNode(step=StepName(f"step-{i}"), operator=node) for i, node in enumerate(nodes)]
        self.runner = ChainRunner(
            steps,
            [ChainLink(origin=i, target=i + 1) for i in range(len(nodes) - 1)],
            [
                ChainExit(origin=len(nodes) - 1, collector=self.outs["main"]),
                ChainExit(origin=0, output="odd", collector=self.outs["odd"]),
            ],
        )
        self.runner.open(lambda step: self.bench.context(step, policy=policy))
        self.checkpoint = 0
        self.notes: list[object] = []

    def feed(self, run: list[Record], offset: int) -> None:
        self.runner.on_batch(
            run[0].input,
            batch(
                [record.value for record in run],
                keys=[record.key for record in run],
                headers=[((record.key, None),) for record in run],
                offset=offset,
            ),
        )

    def mark(self, mark: Mark) -> None:
        self.note_outputs()
        match mark.kind:
            case "watermark":
                self.runner.on_watermark(mark.time_ms)
            case "clock":
                self.bench.clock.now_ms = max(self.bench.clock.now_ms, mark.time_ms)
                self.runner.on_processing_time(mark.time_ms)
            case _:
                self.checkpoint += 1
                snapshot = self.runner.cut(CheckpointId(self.checkpoint)).run()
                self.notes.append(self.bench.contents(snapshot, KINDS))
                self.notes.append([(box.cut, self.bench.rows([box])) for box in snapshot.outboxes])
        self.note_outputs()

    def note_outputs(self) -> None:
        for name, out in self.outs.items():
            self.notes.append((name, [row for some in out.batches for row in rows_of(some)]))
            out.batches.clear()


def played(
    nodes: list[AnyOperator], policy: Policy, history: list[Record | Mark], cutting: list[bool]
) -> tuple[list[object], dict[str, int]]:
    run = Run(nodes, policy)
    waiting: list[Record] = []
    offset = 0
    for event, ends in zip([*history, Mark("cut")], [*cutting, True], strict=False):
        if isinstance(event, Record):
            if waiting and waiting[0].input != event.input:  # a batch is of one input
                run.feed(waiting, offset)
                offset += len(waiting)
                waiting = []
            waiting.append(event)
        if waiting and (ends or isinstance(event, Mark)):
            run.feed(waiting, offset)
            offset += len(waiting)
            waiting = []
        if isinstance(event, Mark):
            run.mark(event)
    if waiting:
        run.feed(waiting, offset)
    run.mark(Mark("cut"))
    return run.notes, dict(run.bench.counted)


def without_failures(history: list[Record | Mark]) -> list[Record | Mark]:
    return [event for event in history if not isinstance(event, Record) or event.value > 0]


@pytest.mark.parametrize("name", OPERATORS)
@given(history=histories, one=cuttings, other=cuttings)
def test_cutting_changes_nothing_for(
    name: str, history: list[Any], one: list[bool], other: list[bool]
) -> None:
    make = OPERATORS[name]
    assert played([make()], Skip(), history, one) == played([make()], Skip(), history, other)
    good = without_failures(history)
    assert played([make()], Fail(), good, one) == played([make()], Fail(), good, other)


@given(history=histories_of_two, one=cuttings, other=cuttings)
def test_cutting_changes_nothing_for_connected_streams(
    history: list[Any], one: list[bool], other: list[bool]
) -> None:
    def both() -> list[AnyOperator]:
        return [KeyedProcessOperator(Both, key_class=str)]

    assert played(both(), Skip(), history, one) == played(both(), Skip(), history, other)
    good = without_failures(history)
    assert played(both(), Fail(), good, one) == played(both(), Fail(), good, other)


@given(history=histories, one=cuttings, other=cuttings)
def test_cutting_changes_nothing_for_a_chain(history: list[Any], one: list[bool], other: list[bool]) -> None:
    def chain() -> list[AnyOperator]:
        return [
            KeyedProcessOperator(Everything),
            FlatMap(lambda pair: [pair, pair] if pair[1] % 2 else [pair]),
            Filter(lambda pair: pair[1] != 4),
            OutboxSink(TextSink()),
        ]

    assert played(chain(), Skip(), history, one) == played(chain(), Skip(), history, other)


def test_the_law_finds_an_operator_that_breaks_it() -> None:
    """The law can fail: an operator that looks at the length of its batches is found."""

    class Lengths(Map[int, int]):
        def __init__(self) -> None:
            super().__init__(lambda value: value)

        def on_batch(self, input: int, batch: Any, out: Any) -> None:
            out.emit(batch.with_values([len(batch)] * len(batch)))

    history: list[Record | Mark] = [Record("a", 1), Record("a", 2)]
    whole = played([Lengths()], Fail(), history, [False] * 40)
    apart = played([Lengths()], Fail(), history, [True] * 40)
    assert whole != apart
