"""Settings of restarts: what follows a failure of the job."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from processor.settings.section import Section
from processor.settings.units import Duration, at_least_ms, duration_text

FAILURES_LIMIT = 10_000
"""In one interval; each is remembered that long."""

MULTIPLIER_LIMIT = 100


class RestartStrategyName(StrEnum):
    NONE = "none"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


class RestartSettings(Section):
    """When a job that failed is started again, from its newest checkpoint."""

    strategy: RestartStrategyName = Field(
        default=RestartStrategyName.EXPONENTIAL_DELAY,
        description="none: the first failure ends the job. fixed-delay: a number of restarts, all after the same "
        "wait. failure-rate: restarts after the same wait, until there are too many failures in an interval. "
        "exponential-delay: a number of restarts, each after a longer wait: a slip is over in a second, and an "
        "outage of minutes does not use them up.",
    )
    attempts: int = Field(
        default=10,
        ge=0,
        description="With fixed-delay and exponential-delay: restarts in a row; the failure after them ends the job, "
        "with its own exit code.",
    )
    delay: Duration = Field(
        default=1_000,
        description="Wait between a failure and the restart; with exponential-delay the first one.",
    )
    multiplier: float = Field(
        default=2.0,
        ge=1,
        le=MULTIPLIER_LIMIT,
        allow_inf_nan=False,
        description="With exponential-delay: each wait is so many times the one before.",
    )
    delay_max: Duration = Field(
        default=60_000, description="With exponential-delay: the longest wait, never below delay."
    )
    jitter: float = Field(
        default=0.1,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="With exponential-delay: up to this part of a wait is left out, by chance, so that jobs that "
        "failed together do not start together.",
    )
    reset_after: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=600_000,
        description="With fixed-delay and exponential-delay: having run this long, and published a checkpoint, a job "
        "has all its restarts and the first wait again.",
    )
    failures_max: int = Field(
        default=10,
        ge=1,
        le=FAILURES_LIMIT,
        description="With failure-rate: failures in an interval that are followed by a restart.",
    )
    interval: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=600_000, description="With failure-rate: the time in which failures are counted."
    )

    @model_validator(mode="after")
    def _consistent(self) -> RestartSettings:
        if self.strategy is RestartStrategyName.EXPONENTIAL_DELAY and self.delay_max < self.delay:
            raise ValueError(
                f"delay_max {duration_text(self.delay_max)} is less than delay {duration_text(self.delay)}: "
                "set it to the longest wait"
            )
        return self
