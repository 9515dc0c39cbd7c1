"""Timers: once each, in (time, encoded key) order, part of the snapshot, gone when fired."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.ids import CheckpointId, KeyGroupRange, key_groups_of
from processor.records.key_groups import encode_key, key_group
from processor.state.memory_store import TimerTable
from processor.state.memory_values import MemoryValues
from processor.state.timers import TimerQueue
from tests.unit.state.fakes import MAX_PARALLELISM


def fire(state: Any, until: int) -> list[tuple[int, Any]]:
    return list(state.timers.due_event(until))


def make_queue() -> TimerQueue:
    return TimerQueue(MemoryValues(TimerTable(KeyGroupRange(0, MAX_PARALLELISM))))


def test_timers_fire_in_order_of_time_then_encoded_key_whatever_the_order_of_adding(open_state):
    state = open_state({})
    added: list[tuple[int, Any]] = [
        (20, "b"),
        (10, "z"),
        (20, "a"),
        (10, 7),
        (10, "a"),
        (5, b"x"),
        (20, True),
    ]
    for time_ms, key in added:
        state.timers.add_event(key, time_ms)
    due = fire(state, 20)
    assert due == sorted(added, key=lambda timer: (timer[0], encode_key(timer[1])))
    assert [type(key) for _, key in due if key == 1] == [bool], "a key comes back with its own type"


def test_b6_a_timer_that_is_there_already_is_not_added_again(open_state):
    state = open_state({})
    for _ in range(3):
        state.timers.add_event("a", 10)
        state.timers.add_event("a", 11)
        state.timers.add_processing("a", 10)
    assert fire(state, 100) == [(10, "a"), (11, "a")]
    assert list(state.timers.due_processing(100)) == [(10, "a")]
    state.timers.add_event("a", 10)  # fired timers may be set again
    assert fire(state, 100) == [(10, "a")]


def test_only_due_timers_fire_and_the_next_processing_time_is_told(open_state):
    state = open_state({})
    assert state.timers.next_processing_ms() is None
    state.timers.add_processing("a", 30)
    state.timers.add_processing("b", 10)
    assert state.timers.next_processing_ms() == 10
    assert list(state.timers.due_processing(29)) == [(10, "b")]
    assert state.timers.next_processing_ms() == 30


def test_timers_added_while_firing_that_are_due_fire_in_the_same_pass_in_order():
    queue = make_queue()
    queue.add("m", 10)
    queue.add("x", 20)
    fired = []
    for time_ms, key in queue.due(20):
        fired.append((time_ms, key))
        if key == "m":
            queue.add("a", 10)  # the time being fired, smaller key: still to come
            queue.add("n", 10)
            queue.add("e", 3)  # an earlier time: at once
            queue.add("z", 15)
            queue.add("later", 21)
    assert fired == [(10, "m"), (3, "e"), (10, "a"), (10, "n"), (15, "z"), (20, "x")]
    assert list(queue.due(21)) == [(21, "later")]


def test_timers_not_taken_from_the_iterator_stay():
    queue = make_queue()
    for key in "abc":
        queue.add(key, 1)
    due: Any = queue.due(1)
    assert next(due) == (1, "a")
    due.close()
    queue.add("a", 1)
    assert list(queue.due(1)) == [(1, "a"), (1, "b"), (1, "c")]


def test_b6_case_28_restored_timers_all_fire_once_and_leave_nothing(open_state):
    tables = {"windows": int}
    state = open_state(tables)
    for number in range(1_000):
        state.table("windows").put(f"w{number}", number)
        state.timers.add_event(f"w{number}", 10_000 + number % 7)
    state = open_state(tables, state.cut(CheckpointId(1)).run())
    due = fire(state, 2**60)
    assert len(due) == len(set(due)) == 1_000
    for _, key in due:
        state.table("windows").remove(key)
    assert fire(state, 2**60) == []
    assert len(state.timers.event) == 0
    again = open_state(tables, state.cut(CheckpointId(2)).run())
    assert fire(again, 2**60) == []
    assert all(again.table("windows").get(f"w{number}") is None for number in range(1_000))


def test_case_28_timers_that_come_and_go_leave_nothing_behind():
    """Neither in the index, nor as deletions of timers that no snapshot ever held."""
    cache = MemoryValues(TimerTable(KeyGroupRange(0, MAX_PARALLELISM)))
    queue = TimerQueue(cache)
    for time_ms in range(10_000):
        queue.add("a", time_ms)
        queue.add("b", time_ms)
        assert len(list(queue.due(time_ms))) == 2
    assert len(queue) == 0
    assert queue.next_ms() is None
    assert cache.unwritten_entries() == 0
    assert not queue._keys
    assert not queue._firing


def test_case_28_fired_timers_leave_the_table_with_the_next_completion(open_state, place):
    state = open_state({})
    for number in range(100):
        state.timers.add_event(number, number)
    first = state.cut(CheckpointId(1))
    for _ in state.timers.due_event(1_000):
        pass
    second = state.cut(CheckpointId(2))
    kept, emptied = first.run()[0], second.run()[0]
    assert len(fire(open_state({}, [kept]), 1_000)) == 100
    assert fire(open_state({}, [emptied]), 1_000) == []


def test_b5_b6_timers_are_restored_by_key_group(open_state):
    state = open_state({})
    keys = [f"k{number}" for number in range(200)] + [(True, number) for number in range(20)]
    for key in keys:
        state.timers.add_event(key, 5)
        state.timers.add_processing(key, 6)
    snapshot = state.cut(CheckpointId(1)).run()
    for index in range(3):
        part = open_state({}, snapshot, index=index, parallelism=3)
        groups = key_groups_of(index, 3, MAX_PARALLELISM)
        mine = {key for key in keys if key_group(key, MAX_PARALLELISM) in groups}
        assert {key for _, key in fire(part, 5)} == mine
        assert {key for _, key in part.timers.due_processing(6)} == mine


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from(["a", "b", "c", 1, b"a"]), st.integers(0, 8)),
            st.tuples(st.just("fire"), st.integers(0, 8), st.integers(1, 4)),
        )
    )
)
def test_a_queue_behaves_like_a_sorted_set(steps):
    queue, model = make_queue(), set()
    for kind, one, two in steps:
        if kind == "add":
            queue.add(one, two)
            model.add((two, encode_key(one)))
            continue
        due: Any = queue.due(one)
        for _ in range(two):
            expected = min((timer for timer in model if timer[0] <= one), default=None)
            found = next(due, None)
            assert (found and (found[0], encode_key(found[1]))) == expected
            model.discard(expected)
        due.close()
    assert len(queue) == len(model)
