"""How many checkpoints in a row may fail before the attempt does (A16)."""

from __future__ import annotations


class FailureManager:
    """Counts consecutive failures; one published checkpoint resets the count."""

    def __init__(self, tolerated: int) -> None:
        self._tolerated = tolerated
        self.consecutive = 0

    def failed(self) -> bool:
        """Count one; True when the attempt must fail."""
        self.consecutive += 1
        return self.consecutive > self._tolerated

    def succeeded(self) -> None:
        self.consecutive = 0
