"""Randomness as an argument."""

from __future__ import annotations

from typing import Protocol


class Chance(Protocol):
    """Where unpredictable bits come from; seeded in tests and in the simulation."""

    def token(self) -> str:
        """A new name nobody else has: 32 hexadecimal digits."""
        ...

    def below(self, limit: int) -> int:
        """A whole number, 0 <= n < limit."""
        ...
