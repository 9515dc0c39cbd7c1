"""A line of progress says records, rate, lag and checkpoint, and nothing when there is nothing to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor.ids import StepName
from processor.telemetry.progress import (
    ProgressPicture,
    back_pressure,
    catching_up,
    progress_line,
    rate_per_s,
    worth_saying,
)

BEFORE = ProgressPicture(
    taken_ms=10_000, records_in=1_000, records_out=0, lag_records=None, checkpoint=None, published=None
)
NOW = ProgressPicture(
    taken_ms=15_000, records_in=51_000, records_out=9, lag_records=30_000, checkpoint=7, published=7
)


def test_the_line_says_how_far_and_how_long():
    assert progress_line(BEFORE, NOW) == (
        "51,000 records read, 10,000 records/s, 30,000 behind (about 3 s), checkpoint 7 published"
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lag_records": 0}, "caught up"),
        ({"records_in": 1_000}, "30,000 behind, "),
        ({"lag_records": 10_000_000}, "(about 17 min)"),
        ({"lag_records": 100_000_000}, "(about 3 h)"),
        ({"checkpoint": None, "published": None}, "no checkpoint yet"),
        ({"checkpoint": 8}, "checkpoint 8 decided, 7 published"),
        ({"published": None}, "checkpoint 7 decided, none published"),
        ({"waiting_for": "cluster 'main'"}, "waiting for cluster 'main'"),
    ],
)
def test_the_line_says_what_is_different(changed, said):
    assert said in progress_line(BEFORE, replace(NOW, **changed))


def test_an_unknown_lag_is_left_out():
    assert "behind" not in progress_line(BEFORE, replace(NOW, lag_records=None))


def test_no_time_is_no_rate():
    assert rate_per_s(NOW, NOW) == 0
    assert rate_per_s(NOW, replace(NOW, taken_ms=20_000, records_in=0)) == 0


def test_more_than_a_second_behind_is_catching_up():
    assert catching_up(BEFORE, NOW)
    assert not catching_up(BEFORE, replace(NOW, lag_records=10_000))
    assert not catching_up(BEFORE, replace(NOW, lag_records=None))


def test_an_idle_job_has_nothing_to_say():
    idle = replace(NOW, lag_records=0)
    assert not worth_saying(idle, replace(idle, taken_ms=20_000))
    assert worth_saying(idle, replace(idle, waiting_for="cluster 'main'"))
    assert worth_saying(BEFORE, NOW)


def pressed(**by_step: float) -> ProgressPicture:
    return replace(NOW, back_pressured_ms={StepName(step): held_ms for step, held_ms in by_step.items()})


def test_back_pressure_is_the_part_of_the_time_between_two_pictures():
    before = replace(BEFORE, back_pressured_ms={StepName("read"): 7_000.0})
    assert back_pressure(before, pressed(read=9_500, parse=5_100, count=0)) == {
        "read": 50,
        "parse": 100,  # what workers tell comes a little late
        "count": 0,
    }
    assert back_pressure(NOW, pressed(read=1)) == {}


def test_the_line_names_those_that_are_held_up_most():
    told = progress_line(BEFORE, pressed(read=2_500, parse=4_000, count=100, enrich=900, join=600))
    assert told.endswith("checkpoint 7 published, back-pressure on 'parse' 80 %, 'read' 50 %, 'enrich' 18 %")
    assert "back-pressure" not in progress_line(BEFORE, pressed(read=400))


def test_a_job_that_stands_still_for_back_pressure_says_so():
    still = replace(NOW, records_in=BEFORE.records_in, lag_records=0)
    assert not worth_saying(BEFORE, still)
    assert worth_saying(BEFORE, replace(still, back_pressured_ms={StepName("read"): 5_000}))
