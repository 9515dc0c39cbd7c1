"""When a failed attempt is followed by another (D2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelay:
    """A number of restarts, each after the same pause.

    An attempt that published a checkpoint of its own and then ran for ``reset_after_ms`` earns the full
    number again, so that a job that lives for years is not ended by its eleventh hiccup.
    """

    restarts_max: int
    delay_ms: int
    reset_after_ms: int


class RestartStrategy:
    def __init__(self, policy: FixedDelay) -> None:
        self._policy = policy
        self.restarts = 0
        self.in_a_row = 0

    def failed(self, *, ran_ms: int, progressed: bool) -> int | None:
        """The pause in milliseconds before the next attempt; None: no further attempt."""
        if progressed and ran_ms >= self._policy.reset_after_ms:
            self.in_a_row = 0
        if self.in_a_row >= self._policy.restarts_max:
            return None
        self.in_a_row += 1
        self.restarts += 1
        return self._policy.delay_ms
