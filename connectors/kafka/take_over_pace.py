"""How long to wait for a first answer when taking over, from how long it usually takes.

An initialisation that comes while the transaction before is still being ended is refused for the moment, and
librdkafka asks again only half a second later, whatever its settings. A second producer asks at once. But it
must not be tried on a slow network, where it would only double the work.
"""

from __future__ import annotations

from typing import Final

QUICK_MIN_MS: Final = 50
QUICK_MAX_MS: Final = 250
"""Half of librdkafka's wait: a longer first try brings nothing."""

TIMES_USUAL: Final = 4
"""A first try of so many times the usual duration is all but sure to have been refused."""


class TakeOverPace:
    """The usual duration of an initialisation, and the time-outs that follow from it."""

    def __init__(self) -> None:
        self._usual_ms: float | None = None

    def timeouts_ms(self, longest_ms: int) -> tuple[int, ...]:
        """Time-outs of the tries in order, each with a new producer; the last is the longest."""
        if self._usual_ms is None:
            return (longest_ms,)
        quick_ms = max(QUICK_MIN_MS, int(self._usual_ms * TIMES_USUAL))
        return (quick_ms, longest_ms) if quick_ms < min(QUICK_MAX_MS, longest_ms) else (longest_ms,)

    def took(self, duration_ms: int) -> None:
        """A try succeeded after ``duration_ms``."""
        usual_ms = duration_ms if self._usual_ms is None else self._usual_ms
        self._usual_ms = usual_ms * 0.75 + duration_ms * 0.25
