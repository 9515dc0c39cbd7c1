"""What the settings say of restarts reaches the strategy (D2)."""

from __future__ import annotations

import pytest

from processor.errors import SettingsError
from processor.protocol.restart_strategy import ExponentialDelay, FailureRate, FixedDelay, NoRestart
from processor.runtime.restart_policy import restart_policy
from processor.settings.loading import load_settings


def policy(*assignments: str):
    given = [f"runtime.restart.{assignment}" for assignment in assignments]
    return restart_policy(load_settings(plugins={}, assignments=given).settings.runtime.restart)


def test_d2_by_default_pauses_grow_from_a_second_to_a_minute():
    assert policy() == ExponentialDelay(
        restarts_max=10,
        delay_ms=1_000,
        multiplier=2.0,
        delay_max_ms=60_000,
        jitter=0.1,
        reset_after_ms=600_000,
    )


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        (("strategy=none", "attempts=3"), NoRestart()),
        (
            ("strategy=fixed-delay", "attempts=3", "delay=2s", "reset_after=1h"),
            FixedDelay(restarts_max=3, delay_ms=2_000, reset_after_ms=3_600_000),
        ),
        (
            ("strategy=failure-rate", "failures_max=4", "interval=1m", "delay=5s"),
            FailureRate(failures_max=4, interval_ms=60_000, delay_ms=5_000),
        ),
        (
            ("attempts=3", "delay=2s", "multiplier=1.5", "delay_max=9s", "jitter=0", "reset_after=1h"),
            ExponentialDelay(
                restarts_max=3,
                delay_ms=2_000,
                multiplier=1.5,
                delay_max_ms=9_000,
                jitter=0.0,
                reset_after_ms=3_600_000,
            ),
        ),
    ],
)
def test_d2_each_strategy_gets_what_is_set_for_it(assignments, expected):
    assert policy(*assignments) == expected


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        (("delay=2m",), "delay_max 1m is less than delay 2m"),
        (("jitter=2",), "less than or equal to 1"),
        (("multiplier=nan",), "finite"),
        (("strategy=always",), "'none', 'fixed-delay'"),
    ],
)
def test_d2_what_makes_no_sense_is_refused_by_name(assignments, words):
    with pytest.raises(SettingsError, match=words) as refused:
        policy(*assignments)
    assert "runtime.restart" in str(refused.value)
