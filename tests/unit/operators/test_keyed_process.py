"""A keyed function: state of the key at hand, timers in order, outputs that carry their trigger's place."""

from __future__ import annotations

from typing import Any

import pytest

from processor.contracts.clock import TimeDomain
from processor.contracts.policy import Skip
from processor.errors import JobError, Unavailable, UserCodeError
from processor.ids import CheckpointId, KeyGroupRange
from processor.operators.aggregates import Count
from processor.operators.aggregating_state import AggregatingState
from processor.operators.context import Context
from processor.operators.emitted import EMIT_RECORDS_MAX
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.process_function import KeyedProcess, SideOutput
from processor.records.elements import MAX_TIME_MS
from processor.records.key_groups import key_group
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.state.reducing_state import ReducingState
from tests.unit.operators.kit import MAX_PARALLELISM, Bench, Running, batch

BACKENDS = pytest.mark.parametrize("backend", ["memory", "rocksdb"])


def running(make, *, bench=None, sides=(), **more) -> Running:
    return (bench or Bench()).run(KeyedProcessOperator(make), sides=sides, **more)


class Counted(KeyedProcess[str, str, tuple[str, int]]):
    seen = ValueState(int)

    def on_record(self, value: str, /, context: Context[str, tuple[str, int]]) -> None:
        seen = (self.seen.get() or 0) + 1
        self.seen.set(seen)
        context.emit((context.key, seen))


@BACKENDS
def test_state_belongs_to_the_key_at_hand(backend, tmp_path):
    step = running(Counted, bench=Bench(backend_name=backend, directory=tmp_path))
    step.feed(batch(["x"] * 5, keys=["a", "b", "a", "a", "b"]))
    assert step.out.values == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)]
    step.operator.close()


def test_output_carries_key_timestamp_and_place_of_its_record_and_no_headers():
    step = running(Counted)
    step.feed(batch(["x", "y"], keys=["a", "b"], headers=[(("h", b"1"),), ()], offset=7))
    assert step.out.rows == [(("a", 1), 7, "a", None, 7), (("b", 1), 8, "b", None, 8)]


class Several(KeyedProcess[int, int, int]):
    """Emits a value as often as it says."""

    def on_record(self, value: int, /, context: Context[int, int]) -> None:
        for _ in range(value):
            context.emit(value)


def test_records_may_give_no_value_one_or_several():
    step = running(Several)
    step.feed(batch([0, 2, 1, 0], keys=[10, 11, 12, 13], offset=20))
    assert [(row[0], row[1], row[2], row[4]) for row in step.out.rows] == [
        (2, 21, 11, 21),
        (2, 21, 11, 21),
        (1, 22, 12, 22),
    ]
    step.feed(batch([0, 0], keys=[1, 2]))
    assert len(step.out.batches) == 1


def test_as_many_values_as_records_but_not_one_each_keep_their_own_places():
    step = running(Several)
    step.feed(batch([0, 2], keys=[10, 11]))
    assert [row[2] for row in step.out.rows] == [11, 11]


class GetClear(KeyedProcess[str, str, object]):
    a = ValueState(int)
    b = ValueState(list[int])

    def on_record(self, value: str, /, context: Context[str, object]) -> None:
        if value == "set":
            self.a.set(0)
            self.b.set([])
        self.a.get()
        if value == "clear":
            self.a.clear()
            self.b.clear()
        context.emit((self.a.get(), self.b.get()))
        if value == "put":
            self.a.set(5)
            self.b.set([5])
            context.emit((self.a.get(), self.b.get()))


@BACKENDS
def test_case_27_get_after_clear_is_none_and_get_after_set_is_the_new_value(backend, tmp_path):
    step = running(GetClear, bench=Bench(backend_name=backend, directory=tmp_path))
    step.feed(batch(["set", "clear", "put"], keys=["k", "k", "k"]))
    assert step.out.values == [(0, []), (None, None), (None, None), (5, [5])]
    step.cut(1)
    step.feed(batch(["clear", "get"], keys=["k", "k"]))
    assert step.out.values[-2:] == [(None, None), (None, None)]
    step.operator.close()


@BACKENDS
def test_a_snapshot_restores_state_and_timers(backend, tmp_path):
    bench = Bench(backend_name=backend, directory=tmp_path)
    step = running(Timed, bench=bench)
    step.feed(batch([5, 9], keys=["a", "b"]))
    snapshot = step.cut(1)
    step.operator.close()
    again = running(Timed, bench=bench, restored=snapshot.keyed)
    again.watermark(10)
    assert again.out.values == [("a", 5, TimeDomain.EVENT, 1), ("b", 9, TimeDomain.EVENT, 1)]
    again.operator.close()


def test_what_happens_after_the_cut_is_not_in_the_snapshot():
    bench = Bench()
    step = running(GetClear, bench=bench)
    step.feed(batch(["put"], keys=["k"]))
    completion = step.operator.cut(CheckpointId(1))
    step.feed(batch(["clear", "set"], keys=["k", "new"]))
    contents = bench.contents(completion.run(), {"a": int, "b": list[int]})
    assert contents == {"a": {"k": 5}, "b": {"k": [5]}}
    contents = bench.contents(step.cut(2), {"a": int, "b": list[int]})
    assert contents == {"a": {"new": 0}, "b": {"new": []}}


class Timed(KeyedProcess[str, int, tuple[str, int, TimeDomain | None, int]]):
    """Sets a timer at each value; a timer says what it saw."""

    fired = ValueState(int)

    def on_record(
        self, value: int, /, context: Context[str, tuple[str, int, TimeDomain | None, int]]
    ) -> None:
        context.timers.at_event_time(value)

    def on_timer(
        self, time_ms: int, /, context: Context[str, tuple[str, int, TimeDomain | None, int]]
    ) -> None:
        fired = (self.fired.get() or 0) + 1
        self.fired.set(fired)
        context.emit((context.key, time_ms, context.timer, fired))


def test_event_timers_fire_in_order_of_time_and_key_each_once():
    step = running(Timed)
    step.feed(batch([30, 10, 10, 10, 20], keys=["b", "b", "a", "b", "a"]))
    step.watermark(9)
    assert step.out.values == []
    step.watermark(10).watermark(10)
    assert [value[:2] for value in step.out.values] == [("a", 10), ("b", 10)]
    step.watermark(29).watermark(1_000)
    assert [value[:2] for value in step.out.values[2:]] == [("a", 20), ("b", 30)]


def test_what_a_timer_emits_has_its_key_and_its_time():
    step = running(Timed)
    step.feed(batch([10], keys=["a"])).watermark(50)
    assert [row[1:] for row in step.out.rows] == [(10, "a", None, None)]


def test_a_timer_in_the_past_fires_with_the_next_watermark():
    step = running(Timed).watermark(100)
    step.feed(batch([5], keys=["a"])).watermark(100)
    assert [value[:2] for value in step.out.values] == [("a", 5)]


class Chained(KeyedProcess[str, int, int]):
    """A timer sets the next one, up to a limit."""

    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        context.timers.at_event_time(value)

    def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
        context.emit(time_ms)
        context.timers.at_event_time(time_ms + 1)


def test_timers_set_by_a_timer_fire_in_the_same_watermark_if_due_also_over_many_batches():
    step = running(Chained)
    step.feed(batch([0], keys=["a"])).watermark(2 * EMIT_RECORDS_MAX)
    assert step.out.values == list(range(2 * EMIT_RECORDS_MAX + 1))
    assert max(map(len, step.out.batches)) <= EMIT_RECORDS_MAX


def test_what_timers_emit_is_handed_on_while_others_still_wait():
    """Or all that a watermark fires would be held in memory at once."""
    handed_on: list[int] = []

    class Watches(Chained):
        def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
            super().on_timer(time_ms, context)
            handed_on.append(len(step.out.batches))

    step = running(Watches)
    step.feed(batch([0], keys=["a"])).watermark(2 * EMIT_RECORDS_MAX)
    assert handed_on[-1] == 2


class Ticking(KeyedProcess[str, int, tuple[int, TimeDomain | None]]):
    def on_record(self, value: int, /, context: Context[str, tuple[int, TimeDomain | None]]) -> None:
        context.timers.at_processing_time(context.processing_time_ms + value)

    def on_timer(self, time_ms: int, /, context: Context[str, tuple[int, TimeDomain | None]]) -> None:
        context.emit((time_ms, context.timer))


def test_processing_timers_follow_the_clock_and_say_when_they_are_due():
    step = running(Ticking)
    assert step.operator.next_processing_time_ms() is None
    step.feed(batch([50, 10], keys=["a", "b"]))
    assert step.operator.next_processing_time_ms() == 1_010
    step.watermark(10_000).clock(1_009)
    assert step.out.values == []
    step.clock(1_050)
    assert step.out.values == [(1_010, TimeDomain.PROCESSING), (1_050, TimeDomain.PROCESSING)]
    assert [row[1] for row in step.out.rows] == [1_010, 1_050]
    assert step.operator.next_processing_time_ms() is None


def test_r28_processing_time_never_goes_back_not_even_over_a_restart():
    bench = Bench()
    bench.clock.now_ms = 500
    step = running(Ticking, bench=bench, processing_time_ms=9_000)
    step.feed(batch([1], keys=["a"]))
    assert step.operator.next_processing_time_ms() == 9_001
    step.clock(9_500)
    bench.clock.now_ms = 400
    step.feed(batch([1], keys=["a"]))
    assert step.operator.next_processing_time_ms() == 9_501


class Watermarked(KeyedProcess[str, int, int]):
    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        context.emit(context.watermark_ms)


def test_r27_event_time_of_a_key_is_what_its_key_group_had_reached():
    group = key_group("a", MAX_PARALLELISM)
    other = next(key for key in "bcdefgh" if key_group(key, MAX_PARALLELISM) != group)
    step = running(Watermarked, watermarks={KeyGroupRange(group, group + 1): 70})
    step.watermark(50).feed(batch([1, 1], keys=["a", other]))
    step.watermark(90).feed(batch([1, 1], keys=["a", other]))
    assert step.out.values == [70, 50, 90, 90]


def test_r27_a_snapshot_before_the_first_watermark_keeps_what_its_key_groups_had_reached():
    group = key_group("a", MAX_PARALLELISM)
    step = running(Watermarked, watermarks={KeyGroupRange(group, group + 1): 70})

    def kept(checkpoint: int) -> dict[KeyGroupRange, int]:
        times = step.cut(checkpoint).event_times
        return {reached.key_groups: reached.watermark_ms for reached in times}

    own = KeyGroupRange(0, MAX_PARALLELISM)
    assert kept(1) == {KeyGroupRange(group, group + 1): 70}
    step.watermark(50)
    assert kept(2) == {KeyGroupRange(group, group + 1): 70, own: 50}
    step.watermark(90)
    assert kept(3) == {own: 90}
    step.watermark(MAX_TIME_MS)
    assert kept(4) == {own: 90}, "that all input has ended is not a time that more input could be late for"


class Sides(KeyedProcess[str, int, int]):
    odd = SideOutput(int)
    even = SideOutput(int)

    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        (self.odd if value % 2 else self.even).emit(value)
        context.timers.at_event_time(value)

    def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
        self.odd.emit(time_ms)


def test_side_outputs_carry_key_and_timestamp_of_their_trigger():
    step = running(Sides, sides=["odd"])
    step.feed(batch([1, 2, 3], keys=["a", "b", "c"], offset=20)).watermark(2)
    assert [row[:3] for row in step.sides["odd"].rows] == [
        (1, 20, "a"),
        (3, 22, "c"),
        (1, 1, "a"),
        (2, 2, "b"),
    ]
    assert step.out.batches == []


class Fragile(KeyedProcess[str, int, int]):
    """Does everything, then raises for negative values."""

    total = ValueState(int)
    seen = ValueState(list[int])
    items = ListState(int)
    largest = ReducingState(int, max)
    count = AggregatingState(Count())
    times = MapState(int, int)
    side = SideOutput(int)

    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        self.total.set((self.total.get() or 0) + value)
        self.total.set((self.total.get() or 0) * 1)
        seen = self.seen.get() or []
        seen.append(value)
        self.seen.set(seen)
        self.items.append(value)
        self.items.extend([value, value])
        self.largest.add(-value)
        self.count.add(value)
        self.times.set(abs(value), value)
        self.times.set(0, value)
        if value == -3:
            self.total.clear()
            self.items.set([])
            self.largest.clear()
            self.count.clear()
            self.times.clear()
            self.times.set(7, 7)
        context.emit(self.total.get() or 0)
        self.side.emit(value)
        context.timers.at_event_time(value)
        context.timers.at_processing_time(value)
        if value < 0:
            raise ValueError("negative")

    def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
        self.total.set(1_000)
        context.emit(time_ms)
        self.side.emit(time_ms)
        if time_ms == 2:
            raise ValueError("two")


FRAGILE_KINDS = {
    "total": int,
    "seen": list[int],
    "items": list[int],
    "largest": int,
    "count": int,
    "times": tuple[bytes, int],
}


@BACKENDS
@pytest.mark.parametrize("bad", [-1, -3])
def test_case_54_a_skipped_record_leaves_no_trace(backend, tmp_path, bad):
    """State, timers and outputs are as if it had never come, whether its key was known before or not."""

    def run(values, keys, name):
        bench = Bench(backend_name=backend, directory=tmp_path / name)
        step = running(Fragile, bench=bench, sides=["side"], policy=Skip())
        step.feed(batch(values, keys=keys, timestamps=[0] * len(values)))
        contents = bench.contents(step.cut(1), FRAGILE_KINDS)
        step.operator.close()
        rows = [row[:3] for row in step.out.rows], [row[:3] for row in step.sides["side"].rows]
        return contents, rows, bench.counted

    with_bad = run([bad, 1, bad, 2, bad], ["new", "a", "a", "b", "b"], "with")
    without = run([1, 2], ["a", "b"], "without")
    assert with_bad[:2] == without[:2]
    assert with_bad[2] == {"records_skipped": 3}


def test_a_skipped_timer_leaves_no_trace_and_is_counted():
    bench = Bench()
    step = running(Fragile, bench=bench, sides=["side"], policy=Skip())
    step.feed(batch([1, 2, 3], keys=["a", "b", "c"])).watermark(5)
    assert step.out.values == [1, 2, 3, 1, 3]
    assert step.sides["side"].values == [1, 2, 3, 1, 3]
    contents = bench.contents(step.cut(1), FRAGILE_KINDS)
    assert contents["total"] == {"a": 1_000, "b": 2, "c": 1_000}
    assert "timers/event" not in contents
    assert bench.counted == {"timers_skipped": 1}


def test_case_55_a_record_that_raises_is_named_by_step_and_place():
    with pytest.raises(UserCodeError, match=r"step 'f', at clicks/2 offset 31: on_record raised ValueError"):
        running(Fragile, step="f").feed(batch([1, -1], keys=["a", "b"], split="clicks/2", offset=30))


def test_a_timer_that_raises_is_named_by_step_time_and_key():
    step = running(Fragile, step="f").feed(batch([2], keys=["a"]))
    with pytest.raises(UserCodeError, match=r"step 'f': on_timer, for the event time timer at 2 of key 'a'"):
        step.watermark(5)


class Outside(KeyedProcess[str, int, int]):
    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        raise Unavailable("the store")


def test_an_error_of_the_outside_is_neither_wrapped_nor_skipped():
    with pytest.raises(Unavailable):
        running(Outside, policy=Skip()).feed(batch([1], keys=["a"]))
    with pytest.raises(Unavailable):
        running(Outside).feed(batch([1], keys=["a"]))


class NoTimer(KeyedProcess[str, int, int]):
    def on_record(self, value: int, /, context: Context[str, int]) -> None:
        context.timers.at_event_time(1)


class BadTimer(KeyedProcess[str, Any, int]):
    def on_record(self, value: Any, /, context: Context[str, int]) -> None:
        context.timers.at_event_time(value)


class BadState(KeyedProcess[str, Any, int]):
    total = ValueState(int)

    def on_record(self, value: Any, /, context: Context[str, int]) -> None:
        context.emit(1)
        self.total.set(value)


def test_timers_need_an_on_timer_and_whole_milliseconds():
    with pytest.raises(UserCodeError, match="NoTimer sets timers and has no on_timer"):
        running(NoTimer).feed(batch([1], keys=["a"])).watermark(1)
    for bad in (1.5, None, True, 2**63):
        with pytest.raises(UserCodeError, match="milliseconds") as caught:
            running(BadTimer).feed(batch([1, bad], keys=["a", "a"], offset=8))
        assert caught.value.where.offset == 9


def test_a_value_of_another_type_than_the_states_goes_by_the_policy():
    with pytest.raises(
        UserCodeError, match="step 'p', at lines/0 offset 9: state 'total' is declared as int"
    ):
        running(BadState, step="p").feed(batch([1, "one"], keys=["a", "a"], offset=8))
    bench = Bench()
    step = running(BadState, bench=bench, policy=Skip()).feed(batch([1, "one", 3], keys=["a", "a", "b"]))
    assert step.out.values == [1, 1]
    assert bench.contents(step.cut(1), {"total": int}) == {"total": {"a": 1, "b": 3}}
    assert bench.counted == {"records_skipped": 1}


def test_state_side_outputs_and_context_work_only_inside_a_call():
    kept: list[Context[str, int]] = []

    class Keeps(KeyedProcess[str, int, int]):
        seen = ValueState(int)

        def on_record(self, value: int, /, context: Context[str, int]) -> None:
            kept.append(context)

    made = Keeps()
    step = running(lambda: made)
    step.feed(batch([1], keys=["a"]))
    with pytest.raises(JobError):
        _ = kept[0].timestamp_ms
    with pytest.raises(JobError):
        made.seen.get()
    with pytest.raises(JobError):
        Sides().odd.emit(1)


def test_an_instance_may_not_serve_two_subtasks():
    made = Several()
    KeyedProcessOperator(lambda: made)
    with pytest.raises(JobError, match="same Several twice"):
        KeyedProcessOperator(lambda: made)


def test_a_factory_must_give_a_keyed_process():
    with pytest.raises(JobError, match="int"):
        KeyedProcessOperator(lambda: 5)  # type: ignore[arg-type,return-value]


def test_context_shows_headers_of_the_record_and_none_for_timers():
    seen = []

    class Shows(KeyedProcess[str, int, int]):
        def on_record(self, value: int, /, context: Context[str, int]) -> None:
            seen.append((context.headers, context.timestamp_ms, context.key, context.timer))
            context.timers.at_event_time(3)

        def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
            seen.append((context.headers, context.timestamp_ms, context.key, context.timer))

    headers = (("a", b"1"), ("a", None))
    running(Shows).feed(batch([1], keys=["a"], headers=[headers], timestamps=[9])).watermark(3)
    assert seen == [(headers, 9, "a", None), ((), 3, "a", TimeDomain.EVENT)]


class ByTuple(KeyedProcess[tuple[str, bool], int, object]):
    seen = ValueState(int)

    def on_record(self, value: int, /, context: Context[tuple[str, bool], object]) -> None:
        self.seen.set((self.seen.get() or 0) + 1)
        context.emit((context.key, self.seen.get()))
        context.timers.at_event_time(1)

    def on_timer(self, time_ms: int, /, context: Context[tuple[str, bool], object]) -> None:
        context.emit((context.key, self.seen.get()))


def test_keys_that_python_takes_for_equal_are_kept_apart():
    step = running(ByTuple)
    step.feed(batch([1] * 4, keys=[True, 1, ("a", True), ("a", 1)])).watermark(1)
    assert [value[1] for value in step.out.values] == [1] * 8
    keys = [value[0] for value in step.out.values[:4]]
    assert list(map(repr, keys)) == ["True", "1", "('a', True)", "('a', 1)"]
    timer_keys = sorted(repr(value[0]) for value in step.out.values[4:])
    assert timer_keys == sorted(map(repr, keys))
