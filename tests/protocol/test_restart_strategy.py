"""When a failed attempt is followed by another, and after what pause (D2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.protocol.restart_strategy import (
    DRAWN_BELOW,
    AttemptEnd,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)

FIXED = FixedDelay(restarts_max=2, delay_ms=70, reset_after_ms=1_000)
EXPONENTIAL = ExponentialDelay(
    restarts_max=5, delay_ms=100, multiplier=3.0, delay_max_ms=2_000, jitter=0.0, reset_after_ms=1_000
)
SELDOM = FailureRate(failures_max=2, interval_ms=1_000, delay_ms=70)
BOUNDED = pytest.mark.parametrize("policy", [FIXED, EXPONENTIAL], ids=["fixed", "exponential"])


def end(now_ms: int = 0, *, ran_ms: int = 5, progressed: bool = True, drawn: int = 0) -> AttemptEnd:
    return AttemptEnd(now_ms=now_ms, ran_ms=ran_ms, progressed=progressed, drawn=drawn)


def pauses(strategy: RestartStrategy, *ends: AttemptEnd) -> list[int | None]:
    return [strategy.failed(each) for each in ends]


def test_d2_without_restarts_the_first_failure_is_the_last():
    strategy = RestartStrategy(NoRestart())
    assert strategy.failed(end(ran_ms=10**9)) is None
    assert strategy.restarts == 0


def test_d2_a_fixed_delay_has_a_pause_and_a_number():
    strategy = RestartStrategy(FIXED)
    assert pauses(strategy, *[end()] * 4) == [70, 70, None, None]
    assert strategy.restarts == 2


@BOUNDED
def test_d2_an_attempt_that_ran_long_and_published_earns_all_again(policy):
    strategy = RestartStrategy(policy)
    assert pauses(strategy, *[end(ran_ms=1_000)] * 9) == [policy.delay_ms] * 9
    assert strategy.restarts == 9


@BOUNDED
@pytest.mark.parametrize(("ran_ms", "progressed"), [(999, True), (10**9, False)])
def test_d2_one_that_ran_short_or_published_nothing_does_not(policy, ran_ms, progressed):
    strategy = RestartStrategy(policy)
    ends = [end(ran_ms=ran_ms, progressed=progressed)] * (policy.restarts_max + 1)
    assert [pause is None for pause in pauses(strategy, *ends)] == [False] * policy.restarts_max + [True]


def test_d2_exponential_pauses_grow_up_to_the_longest_and_begin_anew_after_a_good_run():
    strategy = RestartStrategy(EXPONENTIAL)
    assert pauses(strategy, *[end()] * 5) == [100, 300, 900, 2_000, 2_000]
    assert pauses(strategy, end(ran_ms=1_000), end()) == [100, 300]


def test_d2_the_longest_pause_stays_however_many_there_were():
    """A power of the number of failures would be too large for a float by now."""
    many = ExponentialDelay(
        restarts_max=10_000, delay_ms=1, multiplier=100.0, delay_max_ms=60_000, jitter=0.0, reset_after_ms=1
    )
    assert pauses(RestartStrategy(many), *[end(progressed=False)] * 2_000)[-1] == 60_000


@given(
    jitter=st.floats(0, 1),
    drawn=st.lists(st.integers(0, DRAWN_BELOW - 1), min_size=4, max_size=4),
)
def test_d2_jitter_takes_off_what_was_drawn_and_the_next_pause_grows_all_the_same(jitter, drawn):
    policy = ExponentialDelay(
        restarts_max=4, delay_ms=100, multiplier=3.0, delay_max_ms=2_000, jitter=jitter, reset_after_ms=1
    )
    got = pauses(RestartStrategy(policy), *[end(progressed=False, drawn=each) for each in drawn])
    for pause, whole, each in zip(got, (100, 300, 900, 2_000), drawn, strict=True):
        assert pause is not None
        assert whole * (1 - jitter) - 1 <= pause <= whole
        assert abs(pause - whole * (1 - jitter * each / DRAWN_BELOW)) <= 0.5 + 1e-6


def test_d2_a_rate_counts_the_failures_of_its_interval_and_no_older_ones():
    strategy = RestartStrategy(SELDOM)
    assert pauses(strategy, end(0), end(600), end(1_000), end(1_599)) == [70, 70, 70, None]
    assert strategy.restarts == 3


def test_d2_a_rate_is_earned_by_time_alone():
    strategy = RestartStrategy(SELDOM)
    assert pauses(strategy, *[end(0, ran_ms=10**6, progressed=True)] * 3) == [70, 70, None]
