"""A keyed function of two streams: each input has a method, and what is known of a key is shared."""

from __future__ import annotations

from typing import Any

import pytest

from processor.contracts.clock import TimeDomain
from processor.contracts.policy import Skip
from processor.errors import JobError, UserCodeError
from processor.operators.context import Context
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.process_function import KeyedCoProcess, KeyedProcess, SideOutput
from processor.state.declarations import ValueState
from tests.unit.operators.kit import Bench, Running, batch

LEFT, RIGHT = 0, 1
BACKENDS = pytest.mark.parametrize("backend", ["memory", "rocksdb"])

Seen = tuple[str, str, int]


class Meet(KeyedCoProcess[str, str, int, Seen]):
    """Counts both streams in one state; a number on the right sets a timer of event time at it."""

    seen = ValueState(int)
    last = ValueState(str)
    odd = SideOutput(int)

    def on_left(self, value: str, /, context: Context[str, Seen]) -> None:
        self.last.set(value)
        self._count(value, context)

    def on_right(self, value: int, /, context: Context[str, Seen]) -> None:
        if value % 2:
            self.odd.emit(value)
        context.timers.at_event_time(value)
        self._count(self.last.get() or "-", context)
        if value < 0:
            raise ValueError("half-way")

    def on_timer(self, time_ms: int, /, context: Context[str, Seen]) -> None:
        assert context.timer is TimeDomain.EVENT
        self._count(f"at {time_ms}", context)

    def _count(self, what: str, context: Context[str, Seen]) -> None:
        seen = (self.seen.get() or 0) + 1
        self.seen.set(seen)
        context.emit((context.key, what, seen))


def running(make=Meet, *, bench: Bench | None = None, key_class=str, **more) -> Running:
    operator = KeyedProcessOperator(make, key_class=key_class)
    return (bench or Bench()).run(operator, sides=("odd",), **more)


@BACKENDS
def test_state_and_timers_of_a_key_are_shared_by_both_streams(backend, tmp_path):
    step = running(bench=Bench(backend_name=backend, directory=tmp_path))
    step.feed(batch([10, 3], keys=["a", "b"]), RIGHT)
    step.feed(batch(["x", "y"], keys=["a", "a"]), LEFT)
    step.feed(batch([20], keys=["a"]), RIGHT)
    step.watermark(15)
    assert step.out.values == [
        ("a", "-", 1),
        ("b", "-", 1),
        ("a", "x", 2),
        ("a", "y", 3),
        ("a", "y", 4),
        ("b", "at 3", 2),
        ("a", "at 10", 5),
    ]
    assert step.sides["odd"].values == [3]
    step.operator.close()


def test_a_snapshot_holds_one_state_for_both_streams_and_restores_it():
    bench = Bench()
    step = running(bench=bench)
    step.feed(batch(["x"], keys=["a"]), LEFT).feed(batch([7], keys=["a"]), RIGHT)
    snapshot = step.cut(1)
    assert bench.contents(snapshot, {"seen": int, "last": str}) == {
        "seen": {"a": 2},
        "last": {"a": "x"},
        "timers/event": {"a": {7}},
    }
    again = running(bench=bench, restored=snapshot.keyed)
    again.watermark(7).feed(batch([8], keys=["a"]), RIGHT)
    assert again.out.values == [("a", "at 7", 3), ("a", "x", 4)]


class CountsOne(KeyedProcess[str, str, Seen]):
    seen = ValueState(int)
    last = ValueState(str)

    def on_record(self, value: str, /, context: Context[str, Seen]) -> None:
        self.seen.set((self.seen.get() or 0) + 1)
        self.last.set(value)
        context.timers.at_event_time(5)


def test_a_step_that_gets_a_second_stream_keeps_its_state_and_timers():
    """State hangs on the step's name and its states' names, not on how many streams reach it."""
    bench = Bench()
    before = bench.run(KeyedProcessOperator(CountsOne))
    before.feed(batch(["x", "y"], keys=["a", "a"]))
    after = running(bench=bench, restored=before.cut(1).keyed)
    after.watermark(5).feed(batch([10], keys=["a"]), RIGHT)
    assert after.out.values == [("a", "at 5", 3), ("a", "y", 4)]


def test_an_error_names_the_method_and_the_record():
    step = running()
    with pytest.raises(UserCodeError, match="on_right raised ValueError: half-way") as caught:
        step.feed(batch([2, -1], keys=["a", "b"], split="numbers/1", offset=40), RIGHT)
    assert (caught.value.where.split, caught.value.where.offset) == ("numbers/1", 41)


def test_a_skipped_record_of_either_stream_leaves_no_trace():
    bench = Bench()
    step = running(bench=bench, policy=Skip())
    step.feed(batch([-1, 2], keys=["a", "a"]), RIGHT).feed(batch(["x"], keys=["a"]), LEFT)
    step.watermark(100)
    assert step.out.values == [("a", "-", 1), ("a", "x", 2), ("a", "at 2", 3)]
    assert step.sides["odd"].values == []
    assert bench.counted["records_skipped"] == 1


@pytest.mark.parametrize(("key_class", "key"), [(int, True), (bool, 1), (str, b"a"), (tuple, "a")])
def test_a_key_of_another_type_is_an_error_for_it_would_never_meet(key_class, key):
    good: Any = {int: 1, bool: True, str: "a", tuple: ("a", 1)}[key_class]
    step = running(key_class=key_class)
    step.feed(batch(["x"], keys=[good]), LEFT)
    with pytest.raises(
        JobError, match=f"is of type {type(key).__name__}, and Meet has keys of type"
    ) as caught:
        step.feed(batch([2, 4], keys=[good, key], split="numbers/0", offset=8), RIGHT)
    assert caught.value.where.offset == 9
    assert "key_by" in caught.value.remedy


def test_a_factory_of_something_else_is_refused():
    with pytest.raises(JobError, match="no KeyedFunction"):
        KeyedProcessOperator(lambda: 5)  # type: ignore[arg-type,return-value]
