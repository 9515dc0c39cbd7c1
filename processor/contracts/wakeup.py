"""What a thread waits on that has nothing to do."""

from __future__ import annotations

from typing import Protocol


class Wakeup(Protocol):
    """One thread waits, any thread wakes it. Waking somebody who does not wait ends the next wait at once."""

    def wait(self, timeout_ms: int) -> None:
        """Until somebody calls ``wake`` or the time has passed; it may end sooner."""
        ...

    def wake(self) -> None: ...
