"""Counters are exact over threads, and their number is bounded."""

from __future__ import annotations

import threading

import pytest

from processor.ids import StepName
from processor.telemetry.metrics import ENGINE, SERIES_REFUSED, Metrics, Series

STEP = StepName("count words")


def test_counts_add_up_by_step_and_name():
    metrics = Metrics()
    count = metrics.counter_of(STEP)
    count("records_in", 3)
    count("records_in", 4)
    metrics.count(StepName("other"), "records_in", 5)
    snapshot = metrics.snapshot()
    assert snapshot.count(STEP, "records_in") == 7
    assert snapshot.total("records_in") == 12
    assert snapshot.total("nothing") == 0
    assert snapshot.by_step() == {STEP: {"records_in": 7}, "other": {"records_in": 5}}
    assert snapshot.by_step(but=["records_in"]) == {}
    metrics.set(STEP, "lag", 5)
    metrics.set(STEP, "back_pressure_percent", 2.5)
    assert list(metrics.snapshot().gauges_by_step()[STEP].items()) == [
        ("back_pressure_percent", 2.5),
        ("lag", 5),
    ]


def test_counts_of_many_threads_are_all_there():
    metrics = Metrics()

    def work():
        for _ in range(2_000):
            metrics.count(STEP, "records_in")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.snapshot().count(STEP, "records_in") == 16_000


def test_a_snapshot_does_not_change_any_more():
    metrics = Metrics()
    metrics.set(STEP, "lag", 5)
    before = metrics.snapshot()
    metrics.set(STEP, "lag", 7)
    metrics.count(STEP, "records_in")
    assert before.gauges == {Series(STEP, "lag"): 5}
    assert before.counters == {}
    assert metrics.snapshot().gauges == {Series(STEP, "lag"): 7}


def test_a_counter_never_goes_back():
    with pytest.raises(ValueError, match="counter 'records_in' of step 'count words'"):
        Metrics().count(STEP, "records_in", -1)


def test_names_beyond_the_limit_are_dropped_and_counted_while_known_ones_go_on():
    metrics = Metrics(series_max=3)
    for number in range(10):
        metrics.count(STEP, f"key {number}")
    metrics.set(STEP, "gauge", 1)
    metrics.count(STEP, "key 0", 5)
    snapshot = metrics.snapshot()
    assert snapshot.count(STEP, "key 0") == 6
    assert snapshot.count(ENGINE, SERIES_REFUSED) == 8
    assert len(snapshot.counters) + len(snapshot.gauges) <= 4
