"""How far the writing of a savepoint, or a start from one, has come, in the job's log."""

from __future__ import annotations

from processor.contracts.clock import Clock
from processor.settings.units import size_text
from processor.telemetry.log import Log

SAY_EACH_MS = 10_000


class SavepointProgress:
    """Counts what is done; a line every SAY_EACH_MS. Used by one thread."""

    def __init__(self, say: Log, clock: Clock, doing: str = "writing the savepoint") -> None:
        self._say = say
        self._doing = doing
        self._clock = clock
        self._next_ms = clock.monotonic_ms() + SAY_EACH_MS
        self._entries = 0
        self._bytes = 0

    def converted(self, entries: int) -> None:
        """So many entries more were put into the canonical format, or out of it."""
        self._entries += entries
        self._tell()

    def copied(self, more_bytes: int) -> None:
        """So much more was copied as it is."""
        self._bytes += more_bytes
        self._tell()

    def _tell(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + SAY_EACH_MS
            done = f"{self._entries:,} entries" if self._entries else size_text(self._bytes)
            self._say.info(self._doing, done=done)
