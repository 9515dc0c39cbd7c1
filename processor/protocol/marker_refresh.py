"""When the marker of an idle identity is written again (R14).

A marker is a consumer group's offset, and brokers forget offsets that nobody has written for their retention
(a week by default). An identity that publishes nothing for that long would find no marker, and stop.
"""

from __future__ import annotations

from collections.abc import Iterable

from processor.ids import PublisherId


class MarkerRefresh:
    """Remembers when each identity wrote last."""

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._written_ms: dict[PublisherId, int] = {}

    def opened(self, publishers: Iterable[PublisherId], now_ms: int) -> None:
        """All identities have just been opened."""
        self._written_ms = dict.fromkeys(publishers, now_ms)

    def wrote(self, publisher: PublisherId, now_ms: int) -> None:
        self._written_ms[publisher] = now_ms

    def take_due(self, now_ms: int) -> tuple[PublisherId, ...]:
        """Identities to refresh now; each is named again only after another interval, whatever became of it:
        there are several intervals in the retention."""
        due = tuple(
            publisher
            for publisher, written_ms in sorted(self._written_ms.items())
            if now_ms - written_ms >= self._interval_ms
        )
        for publisher in due:
            self._written_ms[publisher] = now_ms
        return due
