"""Time as an argument."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class TimeDomain(StrEnum):
    """Which time a timer follows, or a value that expires."""

    EVENT = "event time"
    PROCESSING = "processing time"


class Clock(Protocol):
    """Two clocks, never mixed: time-outs are monotonic, processing time is wall time (R28)."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back and do not follow changes of the wall clock."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970 UTC; may jump either way."""
        ...
