"""The restart strategy that the settings name."""

from __future__ import annotations

from typing import assert_never

from processor.protocol.restart_strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartPolicy,
)
from processor.settings.restart import RestartSettings, RestartStrategyName


def restart_policy(restart: RestartSettings) -> RestartPolicy:
    """With what the settings say of it."""
    match restart.strategy:
        case RestartStrategyName.NONE:
            return NoRestart()
        case RestartStrategyName.FIXED_DELAY:
            return FixedDelay(
                restarts_max=restart.attempts, delay_ms=restart.delay, reset_after_ms=restart.reset_after
            )
        case RestartStrategyName.FAILURE_RATE:
            return FailureRate(
                failures_max=restart.failures_max, interval_ms=restart.interval, delay_ms=restart.delay
            )
        case RestartStrategyName.EXPONENTIAL_DELAY:
            return ExponentialDelay(
                restarts_max=restart.attempts,
                delay_ms=restart.delay,
                multiplier=restart.multiplier,
                delay_max_ms=restart.delay_max,
                jitter=restart.jitter,
                reset_after_ms=restart.reset_after,
            )
        case _:
            assert_never(restart.strategy)
