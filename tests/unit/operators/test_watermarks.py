"""Event time of a source subtask: the slowest split counts, silent ones do not, and it never goes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from processor.ids import SplitId
from processor.operators.watermarks import SplitWatermarks
from processor.records.elements import MIN_TIME_MS

A, B = SplitId("a/0"), SplitId("a/1")


def two(idle_after_ms=None) -> SplitWatermarks:
    marks = SplitWatermarks(disorder_ms=5, idle_after_ms=idle_after_ms)
    marks.assign(A, 0)
    marks.assign(B, 0)
    return marks


def test_the_watermark_is_the_slowest_split_less_the_disorder():
    marks = two()
    marks.saw(A, 100, 0)
    assert marks.advance(0) == MIN_TIME_MS, "b may still give anything"
    marks.saw(B, 60, 0)
    assert marks.advance(0) == 55
    marks.saw(B, 200, 0)
    assert marks.advance(0) == 95


def test_a_smaller_time_takes_nothing_back():
    marks = two()
    marks.saw(A, 100, 0)
    marks.saw(B, 100, 0)
    marks.saw(B, 10, 0)
    assert marks.advance(0) == 95


def test_a_silent_split_is_left_out_until_its_next_record():
    marks = two(idle_after_ms=1_000)
    marks.saw(A, 100, 900)
    assert marks.advance(999) == MIN_TIME_MS
    assert marks.next_idle_ms(999) == 1_000
    assert marks.advance(1_000) == 95
    assert marks.next_idle_ms(1_000) == 1_900
    marks.saw(B, 20, 1_100)
    assert marks.advance(1_100) == 95, "a late split does not turn time back"
    marks.saw(A, 500, 1_100)
    assert marks.advance(1_100) == 95, "but holds it"


def test_all_silent_is_idle_and_so_is_a_subtask_without_splits():
    assert SplitWatermarks(disorder_ms=0).advance(0) is None
    marks = two(idle_after_ms=10)
    assert marks.advance(9) == MIN_TIME_MS
    assert marks.advance(10) is None
    assert marks.next_idle_ms(10) is None


def test_without_idle_after_a_silent_split_holds_event_time_for_ever():
    marks = two()
    marks.saw(A, 100, 0)
    assert marks.advance(10**12) == MIN_TIME_MS
    assert marks.next_idle_ms(0) is None


def test_a_split_read_to_its_end_holds_nothing():
    marks = two()
    marks.saw(A, 100, 0)
    marks.ended(B)
    assert marks.advance(0) == 95
    marks.ended(A)
    assert marks.advance(0) is None


def test_time_in_which_nothing_was_read_makes_no_split_silent():
    marks = two(idle_after_ms=10)
    marks.resumed(50)
    assert marks.advance(59) == MIN_TIME_MS
    assert marks.advance(60) is None


def test_r27_splits_keep_the_state_of_their_generators():
    marks = two()
    marks.saw(A, 100, 0)
    assert marks.largest() == {A: 100}
    marks.saw(B, 70, 0)
    again = SplitWatermarks(disorder_ms=5)
    for split, largest_ms in marks.largest().items():
        again.assign(split, 0, largest_ms)
    assert again.advance(0) == marks.advance(0) == 65


events = st.lists(st.tuples(st.sampled_from([A, B]), st.integers(-50, 50), st.integers(0, 20)), max_size=30)


@given(events, st.sampled_from([None, 10]))
def test_it_never_goes_back_and_never_passes_the_largest_time_seen(given_events, idle_after_ms):
    marks = two(idle_after_ms)
    now, last, largest = 0, MIN_TIME_MS, MIN_TIME_MS
    for split, time_ms, passed in given_events:
        now += passed
        marks.saw(split, time_ms, now)
        largest = max(largest, time_ms)
        watermark = marks.advance(now)
        assert watermark is not None, "a split that just gave a record is not silent"
        assert last <= watermark <= largest
        last = watermark
