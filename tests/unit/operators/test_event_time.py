"""Event times by the author's function."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from processor.contracts.policy import Skip
from processor.errors import UserCodeError
from processor.ids import StepName
from processor.operators.event_time import EventTimeStamper
from tests.unit.operators.kit import Bench, batch


def stamp(values, at=lambda v: v, policy=None, bench=None):
    bench = bench or Bench()
    stamper = EventTimeStamper(at, StepName("read"), bench.context("read", policy=policy))
    return stamper.stamp(batch(values, keys=list("abcdef"[: len(values)]), offset=4))


def test_milliseconds_become_the_timestamps_and_nothing_else_changes():
    stamped = stamp([7, -3, 0])
    assert list(stamped.timestamps) == [7, -3, 0]
    assert (list(stamped.offsets), stamped.split, stamped.keys) == ([4, 5, 6], "lines/0", list("abc"))


def test_datetimes_are_exact_to_the_millisecond_in_any_zone():
    east = timezone(timedelta(hours=5, minutes=30))
    moments = [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 0, 0, 999_999, tzinfo=UTC),
        datetime(1970, 1, 1, 5, 30, 1, tzinfo=east),
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
    ]
    assert list(stamp(moments).timestamps) == [0, 1_709_208_000_999, 1_000, -1_000]


@pytest.mark.parametrize(
    "bad",
    [None, 1.5, True, "noon", datetime(2024, 1, 1), 2**63],
)
def test_what_is_no_time_goes_by_the_policy_of_the_read(bad):
    with pytest.raises(
        UserCodeError, match=r"step 'read', at lines/0 offset 5: .* which is no time"
    ) as caught:
        stamp([1, bad])
    assert "on_error=Skip()" in str(caught.value)
    bench = Bench()
    stamped = stamp([1, bad, 3], policy=Skip(), bench=bench)
    assert list(stamped.timestamps) == [1, 3]
    assert list(stamped.offsets) == [4, 6]
    assert bench.counted == {"records_skipped": 1}
    assert stamp([bad], policy=Skip()) is None


def test_a_function_that_raises_goes_by_it_too():
    with pytest.raises(UserCodeError, match="event_time function raised KeyError") as caught:
        stamp([{"at": 1}, {}], at=lambda v: v["at"])
    assert caught.value.where.offset == 5
    assert list(stamp([{"at": 1}, {}], at=lambda v: v["at"], policy=Skip()).timestamps) == [1]
    assert stamp([{}], at=lambda v: v["at"], policy=Skip()) is None
