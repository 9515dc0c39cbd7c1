"""The small machines: pacing, states of subtasks, failures in a row, one subtask's part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.errors import EngineBug
from processor.ids import CheckpointId, StepName, SubtaskId
from processor.protocol.failure_manager import FailureManager, GivenUp
from processor.protocol.pacing import Pacing, PacingPolicy
from processor.protocol.subtask_checkpoint import SubtaskCheckpoint
from processor.protocol.subtask_states import SubtaskStates

# --- pacing (A2, A3)


def pacing(*, interval_ms: int = 100, min_pause_ms: int = 0, initial_delay_ms: int = 30) -> Pacing:
    return Pacing(
        PacingPolicy(interval_ms=interval_ms, min_pause_ms=min_pause_ms, initial_delay_ms=initial_delay_ms)
    )


def test_a02_nothing_is_due_before_it_starts_or_after_it_stops():
    pace = pacing()
    assert not pace.due(10**9)
    assert pace.next_ms() is None
    pace.start(1_000)
    assert pace.due(1_030)
    pace.stop()
    assert not pace.due(10**9)


@given(late=st.lists(st.integers(0, 350), max_size=30))
def test_a03_triggers_do_not_drift_whatever_the_delays(late):
    """Each is due at a multiple of the interval, one at a time; those missed are not caught up."""
    pace = pacing()
    pace.start(1_000)
    now_ms = 1_000
    for late_ms in late:
        due_ms = pace.next_ms()
        assert due_ms is not None
        assert (due_ms - 1_030) % 100 == 0
        assert due_ms > now_ms or now_ms == 1_000
        assert not pace.due(due_ms - 1)
        now_ms = due_ms + late_ms
        assert pace.due(now_ms)
        pace.triggered(now_ms)
        assert not pace.due(now_ms), "not twice"


def test_a03_a_checkpoint_by_hand_does_not_move_the_clocks_ones():
    pace = pacing()
    pace.start(1_000)
    pace.triggered(1_010)
    assert pace.next_ms() == 1_030


def test_a03_the_least_pause_is_kept_after_the_end_of_the_one_before():
    pace = pacing(min_pause_ms=150)
    pace.start(1_000)
    pace.triggered(1_030)
    pace.ended(1_040)
    assert not pace.due(1_189)
    assert pace.due(1_190)
    assert pace.next_ms() == 1_190


def test_r09_who_is_pressed_does_not_wait_and_is_served_once():
    pace = pacing(min_pause_ms=500)
    pace.press()
    assert not pace.due(5), "not before the job runs"
    pace.start(1_000)
    pace.ended(1_000)
    assert pace.due(1_000)
    pace.triggered(1_000)
    assert not pace.due(1_000)


def slow_while_behind() -> Pacing:
    pace = Pacing(
        PacingPolicy(interval_ms=100, min_pause_ms=0, initial_delay_ms=30, interval_during_backlog_ms=1_000)
    )
    pace.start(1_000)
    return pace


def test_a03_during_a_backlog_the_longer_interval_counts_from_the_last_one_and_ends_with_it():
    pace = slow_while_behind()
    pace.backlog(True)
    assert pace.due(1_030), "the first one is due all the same"
    pace.triggered(1_030)
    assert pace.next_ms() == 2_030
    pace.backlog(False)
    assert pace.next_ms() == 1_130
    pace.triggered(1_130)
    pace.backlog(True)
    assert pace.next_ms() == 2_030, "multiples of the longer one, from the same beginning"
    assert not pace.due(2_029)
    pace.press()
    assert pace.due(1_131), "a full outbox waits for no interval (R9)"


def test_a03_a_backlog_that_ends_late_makes_the_next_one_due_at_once():
    pace = slow_while_behind()
    pace.triggered(1_030)
    pace.backlog(True)
    pace.backlog(False)
    assert pace.next_ms() == 1_130
    assert pace.due(1_500)


@given(changes=st.lists(st.tuples(st.integers(0, 700), st.booleans()), max_size=30))
def test_a03_whatever_the_backlog_two_are_never_closer_than_the_interval(changes):
    pace = slow_while_behind()
    triggered, now_ms = [], 1_000
    for passed_ms, backlog in changes:
        now_ms += passed_ms
        pace.backlog(backlog)
        if pace.due(now_ms):
            triggered.append(now_ms)
            pace.triggered(now_ms)
            assert not pace.due(now_ms)
    slots = [(moment - 1_030) // 100 for moment in triggered]
    assert slots == sorted(set(slots)), "at most one for each multiple of the interval"


# --- states of subtasks (A5)


def test_a05_a_subtask_that_has_ended_has_run_and_stays_in_the_plan():
    one, two = (SubtaskId(StepName("read"), index) for index in range(2))
    states = SubtaskStates(frozenset({one, two}), start_timeout_ms=100)
    assert states.ended(one), "though the report that it runs was lost"
    assert not states.runs(one)
    assert not states.ended(one)
    assert not states.running
    assert states.runs(two)
    plan = states.plan()
    assert plan.must_acknowledge == {one, two}
    assert plan.ended == {one}
    assert not states.all_ended
    assert not states.ended(SubtaskId(StepName("unknown"), 0))


def test_a03_a_subtask_that_has_ended_reads_no_backlog():
    (one,) = (SubtaskId(StepName("read"), 0),)
    states = SubtaskStates(frozenset({one}), start_timeout_ms=100)
    states.runs(one)
    states.reads(one, backlog=True)
    assert states.backlog
    states.ended(one)
    states.reads(one, backlog=True)  # late
    assert not states.backlog


# --- failures of checkpoints (A16)


def test_a16_failures_before_and_after_the_barriers_are_kept_apart_and_count_together():
    failures = FailureManager(2)
    assert not failures.failed(GivenUp.PARTICIPANT_FAILED)
    assert not failures.failed(GivenUp.EXPIRED)
    assert not failures.failed(GivenUp.SUBSUMED), "being overtaken is no failure"
    assert failures.text() == "1 in a row, and 1 before their barriers"
    assert failures.failed(GivenUp.NOT_PREPARED)
    failures.succeeded()
    assert failures.consecutive == 0


@pytest.mark.parametrize("tolerated", [0, 1, 3])
def test_a16_one_failure_more_than_tolerated_in_a_row_is_too_many(tolerated):
    failures = FailureManager(tolerated)
    for _ in range(2):
        for _ in range(tolerated):
            assert not failures.failed(GivenUp.DECLINED)
        failures.succeeded()
    for _ in range(tolerated):
        assert not failures.failed(GivenUp.DECLINED)
    assert failures.failed(GivenUp.DECLINED)


# --- a subtask's part (A11, R24, R26)


def ids(*numbers: int) -> list[CheckpointId]:
    return [CheckpointId(number) for number in numbers]


def test_r26_what_was_cut_or_aborted_and_all_below_is_late():
    one, two, three, four = ids(1, 2, 3, 4)
    part = SubtaskCheckpoint()
    part.cut(two, stop=False)
    assert [part.accepts(n) for n in (one, two, three)] == [False, False, True]
    part.aborted(three)
    part.aborted(one)  # late news
    assert [part.accepts(n) for n in (three, four)] == [False, True]


@pytest.mark.parametrize("before", ["cut", "aborted"])
def test_r26_no_checkpoint_is_cut_twice_or_after_its_abort(before):
    (one,) = ids(1)
    part = SubtaskCheckpoint()
    if before == "cut":
        part.cut(one, stop=False)
    else:
        part.aborted(one)
    with pytest.raises(EngineBug):
        part.cut(one, stop=False)


def test_r24_only_the_resume_of_its_own_stop_resumes():
    one, two = ids(1, 2)
    part = SubtaskCheckpoint()
    part.cut(one, stop=False)
    stopped = [part.stopped]
    part.cut(two, stop=True)
    for resumed in (one, two):
        stopped.append(part.stopped)
        part.resumed(resumed)
    stopped.append(part.stopped)
    assert stopped == [False, True, True, False]
