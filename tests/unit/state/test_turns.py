"""Places that are looked at in turn while others come and go."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from processor.state.in_turn import Turns

acts = st.lists(
    st.one_of(
        st.tuples(st.just("flip"), st.integers(0, 9)),
        st.tuples(st.just("flip"), st.integers(0, 9)),
        st.tuples(st.just("next"), st.integers(1, 5)),
    ),
    max_size=80,
)


@settings(deadline=None, max_examples=50)
@given(history=acts)
def test_all_that_is_there_is_given_out_in_a_round_and_nothing_else(history: list[tuple[str, int]]) -> None:
    turns, there = Turns(), set[int]()
    for act, number in history:
        if act == "next":
            found = turns.next(number)
            assert len(found) <= number
            assert set(found) <= there
        elif number in there:
            there.remove(number)
            turns.went(number)
        else:
            there.add(number)
            turns.came(number)
        assert len(turns._places) <= 10, "a place that comes and goes is in it once"
    for _ in range(10):  # whatever has gone is let go of
        turns.next(100)
    assert sorted(turns.next(100)) == sorted(there)
    assert sorted(turns._places) == sorted(there)


def test_a_round_takes_as_many_calls_as_it_has_parts() -> None:
    turns = Turns()
    for place in range(10):
        turns.came(place)
    assert [turns.next(4) for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
