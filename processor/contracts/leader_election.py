"""One coordinator at a time. The decision log keeps exactly-once even when two believe they lead (R1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class LeaderElection(Protocol):
    def contend(self, elected: Callable[[], None], deposed: Callable[[], None]) -> None:
        """Take part until ``close``; the callbacks come from any thread, in turn."""
        ...

    def close(self) -> None:
        """Leave, giving the leadership away at once if held."""
        ...


class AlwaysLeader:
    """For one coordinator without a standby: elected at once, deposed never."""

    def contend(self, elected: Callable[[], None], deposed: Callable[[], None]) -> None:
        elected()

    def close(self) -> None:
        return None
