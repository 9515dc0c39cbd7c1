"""For how long a subtask was kept from taking records by what is behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BACK_PRESSURED_MS: Final = "back_pressured_ms"
"""Counter of a chain, by the name of its first step: of all its subtasks together."""


class BackPressure:
    """Told at every look whether the subtask may take records. Each look that says no counts until the next one,
    whatever else the thread does in between: so one that lasts is seen while it does, and records that move pay
    nothing."""

    def __init__(self, count: Callable[[str, int], None]) -> None:
        self._count = count
        self._since_ms: int | None = None
        """The last look, if it said no."""

    def full(self, now_ms: int) -> None:
        """It may not: a channel behind it is full. ``now_ms`` is monotonic."""
        self._counted(now_ms)
        self._since_ms = now_ms

    def open(self, now_ms: int) -> None:
        """It may."""
        if self._since_ms is not None:
            self._counted(now_ms)
            self._since_ms = None

    def _counted(self, now_ms: int) -> None:
        if self._since_ms is not None and now_ms > self._since_ms:
            self._count(BACK_PRESSURED_MS, now_ms - self._since_ms)
