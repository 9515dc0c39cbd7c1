"""When the next periodic checkpoint is due (A3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingPolicy:
    """All in milliseconds."""

    interval_ms: int
    min_pause_ms: int = 0
    """From the end of one checkpoint (published, or failed) to the start of the next periodic one."""
    initial_delay_ms: int = 0
    interval_during_backlog_ms: int = 0
    """While a source reads a backlog, if it is longer."""


class Pacing:
    """Periodic checkpoints at multiples of the interval: no drift, no double scheduling, no catching up."""

    def __init__(self, policy: PacingPolicy) -> None:
        self._policy = policy
        self._origin_ms: int | None = None
        """Multiples of the interval are counted from here; None when stopped."""
        self._due_ms = 0
        self._last_ms = 0
        """When the last one was triggered."""
        self._not_before_ms = 0
        self._pressed = False
        self._backlog = False

    def start(self, now_ms: int) -> None:
        """The job runs: the first checkpoint is due after the initial delay."""
        self._origin_ms = self._due_ms = now_ms + self._policy.initial_delay_ms
        self._last_ms = now_ms

    def stop(self) -> None:
        self._origin_ms = None

    def press(self) -> None:
        """A checkpoint is wanted as soon as one can be started (R9)."""
        self._pressed = True

    def backlog(self, reading: bool) -> None:
        """Whether a source reads a backlog from now on: the next one is due by the other interval."""
        if reading == self._backlog:
            return
        self._backlog = reading
        if self._origin_ms is not None and self._last_ms >= self._origin_ms:
            self._due_ms = self._multiple_after(self._last_ms)

    def due(self, now_ms: int) -> bool:
        if self._origin_ms is None:
            return False
        if self._pressed:
            return True
        return now_ms >= self._due_ms and now_ms >= self._not_before_ms

    def triggered(self, now_ms: int) -> None:
        """Any checkpoint has been started. The next one is due at the next multiple that lies ahead."""
        self._pressed = False
        if self._origin_ms is not None and now_ms >= self._due_ms:
            self._last_ms = now_ms
            self._due_ms = self._multiple_after(now_ms)

    def ended(self, now_ms: int) -> None:
        """A checkpoint was published or failed."""
        self._not_before_ms = now_ms + self._policy.min_pause_ms

    def next_ms(self) -> int | None:
        """When ``due`` may become true by itself; None when stopped."""
        return None if self._origin_ms is None else max(self._due_ms, self._not_before_ms)

    def _multiple_after(self, now_ms: int) -> int:
        assert self._origin_ms is not None
        policy = self._policy
        interval_ms = policy.interval_ms
        if self._backlog:
            interval_ms = max(interval_ms, policy.interval_during_backlog_ms)
        passed = (now_ms - self._origin_ms) // interval_ms
        return self._origin_ms + (passed + 1) * interval_ms
