"""State that expires in a step that runs: by which time it goes, over batches, timers, restores, skipped records."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from processor.contracts.clock import TimeDomain
from processor.contracts.policy import Skip
from processor.ids import KeyGroupRange
from processor.operators.context import Context
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.process_function import KeyedProcess
from processor.records.batch import NO_TIMESTAMP
from processor.records.elements import MAX_TIME_MS
from processor.state.declarations import ValueState
from processor.state.expiry import Expiry
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from tests.unit.operators.kit import MAX_PARALLELISM, Bench, Running, batch

BACKENDS = pytest.mark.parametrize("backend", ["memory", "rocksdb"])
TEN = timedelta(milliseconds=10)

Told = tuple[str, int | None]


class InEventTime(KeyedProcess[str, str, Told]):
    """A value by event time; words are what is to be done with it."""

    seen = ValueState(int, expires_after=Expiry(TEN, by=TimeDomain.EVENT))

    def on_record(self, value: str, /, context: Context[str, Told]) -> None:
        word, _, number = value.partition(" ")
        match word:
            case "set":
                self.seen.set(context.timestamp_ms)
            case "timer":
                context.timers.at_event_time(int(number))
            case "clock":
                context.timers.at_processing_time(int(number))
            case _:
                context.emit((context.key, self.seen.get()))

    def on_timer(self, time_ms: int, /, context: Context[str, Told]) -> None:
        context.emit((f"{context.key} at {time_ms}", self.seen.get()))
        if time_ms == 60:
            self.seen.set(time_ms)
            context.timers.at_event_time(5)


def running(make: Any, bench: Bench | None = None, **more: Any) -> Running:
    return (bench or Bench()).run(KeyedProcessOperator(make), **more)


def at(step: Running, word: str, time_ms: int = NO_TIMESTAMP, key: str = "k") -> None:
    step.feed(batch([word], keys=[key], timestamps=[time_ms]))


def test_r27_a_value_is_over_when_the_watermark_has_come_so_far_beyond_its_record():
    step = running(InEventTime)
    at(step, "set", 100)
    step.watermark(109)
    at(step, "get")
    step.watermark(110)
    at(step, "get")
    assert step.out.values == [("k", 100), ("k", None)]


def test_a_late_record_touches_at_the_watermark_and_not_in_the_past():
    step = running(InEventTime).watermark(200)
    at(step, "set", 100)
    step.watermark(209)
    at(step, "get")
    step.watermark(210)
    at(step, "get")
    assert step.out.values == [("k", 100), ("k", None)]


@pytest.mark.parametrize("watermarks", [[20], [5, 11, 14, 20], list(range(21)), [MAX_TIME_MS]])
def test_what_a_timer_finds_depends_on_its_time_and_not_on_how_often_watermarks_come(watermarks: list[int]):
    step = running(InEventTime)
    for time_ms in (9, 14, 15, 20):
        at(step, f"timer {time_ms}", 0)
    at(step, "set", 5)
    for watermark_ms in watermarks:
        step.watermark(watermark_ms)
    assert step.out.values == [("k at 9", 5), ("k at 14", 5), ("k at 15", None), ("k at 20", None)]


def test_a_timer_set_for_the_past_does_not_bring_back_what_was_over():
    step = running(InEventTime)
    at(step, "set", 1)
    at(step, "timer 60", 1)
    at(step, "set", 1, key="other")
    at(step, "timer 5", 1, key="other")
    step.watermark(100)
    assert step.out.values == [("other at 5", 1), ("k at 60", None), ("k at 5", 60)]
    at(step, "get", key="other")
    assert step.out.values[-1] == ("other", None)


def test_the_end_of_all_input_is_no_time_that_passes():
    """A savepoint of a job that has ended may go on with more."""
    bench = Bench()
    step = running(InEventTime, bench)
    at(step, "set", 100)
    step.watermark(105).watermark(MAX_TIME_MS)
    again = running(InEventTime, bench, restored=step.cut(1).keyed)
    again.watermark(109)
    at(again, "get")
    assert again.out.values == [("k", 100)]


def test_r27_what_was_over_before_a_restore_stays_so_though_event_time_has_yet_to_come_back():
    bench = Bench()
    step = running(InEventTime, bench)
    at(step, "set", 100)
    snapshot = step.cut(1)
    everything = KeyGroupRange(0, MAX_PARALLELISM)
    again = running(InEventTime, bench, restored=snapshot.keyed, watermarks={everything: 110})
    at(again, "get")
    at(again, "timer 7", 1)
    again.watermark(120)
    assert again.out.values == [("k", None), ("k at 7", None)]


class InProcessingTime(KeyedProcess[str, str, Any]):
    seen = ValueState(str, expires_after=TEN)
    read = ValueState(str, expires_after=Expiry(TEN, reads_renew=True))
    words = ListState(str, expires_after=TEN)
    counts = MapState(str, int, expires_after=TEN)

    def on_record(self, value: str, /, context: Context[str, Any]) -> None:
        if value == "get":
            context.emit(self.read.get())
            context.emit((self.seen.get(), self.words.get(), self.counts.items()))
            return
        before = self.read.get()
        self.seen.set(value)
        self.words.append(value)
        self.counts.set(value, 1)
        self.read.set(value)
        if value == "wrong":
            raise ValueError(f"after {before}")


@BACKENDS
def test_r28_values_expire_by_a_clock_that_never_goes_back(backend, tmp_path):
    bench = Bench(backend_name=backend, directory=tmp_path)
    step = running(InProcessingTime, bench)
    bench.clock.now_ms = 5_000
    step.feed(batch(["a"], keys=["k"]))
    bench.clock.now_ms = 5_009
    step.feed(batch(["get"], keys=["k"]))
    assert step.out.values == ["a", ("a", ["a"], [("a", 1)])]
    bench.clock.now_ms = 5_010
    step.feed(batch(["get"], keys=["k"]))
    bench.clock.now_ms = 4_000
    step.feed(batch(["get"], keys=["k"]))
    assert step.out.values[2:] == ["a", (None, None, []), "a", (None, None, [])], "only reading renews"
    snapshot = step.cut(1)
    step.operator.close()
    again = running(InProcessingTime, bench, restored=snapshot.keyed, processing_time_ms=5_010)
    again.feed(batch(["get"], keys=["k"]))
    bench.clock.now_ms = 5_020
    again.feed(batch(["get"], keys=["k"]))
    assert again.out.values == ["a", (None, None, []), None, (None, None, [])]
    again.operator.close()


@BACKENDS
def test_b4_a_record_that_is_skipped_has_touched_nothing(backend, tmp_path):
    bench = Bench(backend_name=backend, directory=tmp_path)
    step = running(InProcessingTime, bench, policy=Skip())
    bench.clock.now_ms = 5_000
    step.feed(batch(["a"], keys=["k"]))
    bench.clock.now_ms = 5_009
    step.feed(batch(["wrong", "wrong"], keys=["k", "new"]))
    assert bench.counted["records_skipped"] == 2
    bench.clock.now_ms = 5_010
    step.feed(batch(["get", "get"], keys=["k", "new"]))
    assert step.out.values == [None, (None, None, [])] * 2
    step.operator.close()


def test_a_step_sweeps_behind_its_batches():
    bench = Bench()
    step = running(InProcessingTime, bench)
    for number in range(60):
        bench.clock.now_ms = 5_000 + number
        step.feed(batch(["a"] * 50, keys=[f"{number}-{each}" for each in range(50)]))
    state: Any = step.operator
    for name in ("seen", "words", "counts"):
        kept = {place for place, _ in state._state.some(name, 10_000)}
        assert 500 <= len(kept) <= 1_500, name
