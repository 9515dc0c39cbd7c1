"""When a failed attempt is followed by another (D2)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import assert_never

DRAWN_BELOW = 1_000
"""What is drawn for a pause is a whole number from 0, below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRestart:
    """The first failure is the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelay:
    """A number of restarts, each after the same pause.

    An attempt that published a checkpoint of its own and ran for ``reset_after_ms`` earns the full number
    again, so that a job that lives for years is not ended by its eleventh hiccup.
    """

    restarts_max: int
    delay_ms: int
    reset_after_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """Restarts after the same pause, as long as no ``interval_ms`` has more than ``failures_max`` failures."""

    failures_max: int
    interval_ms: int
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialDelay:
    """A number of restarts, each after a longer pause than the one before, up to ``delay_max_ms``.

    Of each pause up to the part ``jitter`` is taken off, as it is drawn: jobs that failed together do not come
    back together. An attempt earns the full number and the first pause again as with FixedDelay.
    """

    restarts_max: int
    delay_ms: int
    multiplier: float
    delay_max_ms: int
    jitter: float
    """0: none; 1: anything from no pause to the whole."""
    reset_after_ms: int


RestartPolicy = NoRestart | FixedDelay | FailureRate | ExponentialDelay


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """What a strategy looks at of an attempt that failed."""

    now_ms: int
    """Monotonic."""
    ran_ms: int
    progressed: bool
    """It published a checkpoint of its own."""
    drawn: int
    """By chance, 0 <= drawn < DRAWN_BELOW."""

    def ran_well(self, reset_after_ms: int) -> bool:
        return self.progressed and self.ran_ms >= reset_after_ms


class RestartStrategy:
    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self.restarts = 0
        self._in_a_row = 0
        self._delay_ms = 0.0
        self._failed_ms: deque[int] = deque()

    def failed(self, end: AttemptEnd) -> int | None:
        """The pause in milliseconds before the next attempt; None: no further attempt."""
        delay_ms = self._delay(end)
        if delay_ms is not None:
            self.restarts += 1
        return delay_ms

    def _delay(self, end: AttemptEnd) -> int | None:
        match self._policy:
            case NoRestart():
                return None
            case FixedDelay() as fixed:
                return fixed.delay_ms if self._counted(end, fixed) else None
            case FailureRate() as rate:
                return rate.delay_ms if self._seldom(end.now_ms, rate) else None
            case ExponentialDelay() as exponential:
                return self._longer(end.drawn, exponential) if self._counted(end, exponential) else None
            case _:
                assert_never(self._policy)

    def _counted(self, end: AttemptEnd, policy: FixedDelay | ExponentialDelay) -> bool:
        """Count one more in a row; False when that is too many."""
        if end.ran_well(policy.reset_after_ms):
            self._in_a_row = 0
        if self._in_a_row >= policy.restarts_max:
            return False
        self._in_a_row += 1
        return True

    def _seldom(self, now_ms: int, rate: FailureRate) -> bool:
        """Whether this failure and those of the interval before it are few enough."""
        while self._failed_ms and self._failed_ms[0] <= now_ms - rate.interval_ms:
            self._failed_ms.popleft()
        self._failed_ms.append(now_ms)
        return len(self._failed_ms) <= rate.failures_max

    def _longer(self, drawn: int, policy: ExponentialDelay) -> int:
        first = self._in_a_row == 1
        # From the pause before: a power of the count would overflow in the life of a job that never gives up.
        longer_ms = policy.delay_ms if first else self._delay_ms * policy.multiplier
        self._delay_ms = min(longer_ms, policy.delay_max_ms)
        return round(self._delay_ms * (1 - policy.jitter * drawn / DRAWN_BELOW))
