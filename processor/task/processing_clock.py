"""Processing time of a subtask: the wall clock, except that it never goes back (R28)."""

from __future__ import annotations

from processor.contracts.clock import Clock


class ProcessingClock:
    """A Clock whose ``wall_ms`` starts at what the checkpoint says and only grows."""

    def __init__(self, clock: Clock, reached_ms: int) -> None:
        self._clock = clock
        self._reached_ms = reached_ms

    @property
    def reached_ms(self) -> int:
        """The largest time given out: part of the next snapshot."""
        return self._reached_ms

    def wall_ms(self) -> int:
        now_ms = self._clock.wall_ms()
        if now_ms > self._reached_ms:
            self._reached_ms = now_ms
        return self._reached_ms

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()
