"""What happened in a simulated run, in order: a digest always, readable lines when asked for."""

from __future__ import annotations

from typing import Final
from zlib import crc32

LINES_MAX: Final = 2_000_000
"""Lines kept of one run; a run that says more is cut at its front."""


class Trace:
    """Takes notes of who did what when. Two runs of one seed have the same digest."""

    def __init__(self, *, keep: bool = False) -> None:
        """``keep``: the lines, for people; the digest is the same without."""
        self.keep = keep
        self._lines: list[str] = []
        self._digest = 0

    def step(self, now_us: int, task: int) -> None:
        """A task goes on."""
        self._digest = crc32(b"%d %d;" % (now_us, task), self._digest)

    def note(self, now_us: int, who: str, what: str) -> None:
        """Something that matters happened; part of the digest."""
        self._digest = crc32(f"{now_us} {who} {what};".encode(), self._digest)
        self.say(now_us, who, what)

    def say(self, now_us: int, who: str, what: str) -> None:
        """Something for people only."""
        if self.keep:
            if len(self._lines) >= LINES_MAX:
                del self._lines[: LINES_MAX // 2]
            self._lines.append(f"{now_us / 1_000:12.3f} ms  {who:<12} {what}")

    @property
    def digest(self) -> str:
        return f"{self._digest:08x}"

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)
