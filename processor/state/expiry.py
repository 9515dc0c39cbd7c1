"""What an author says of state that expires, and when something written now was, or something kept is over.

The time of the last touch stands beside what is kept, so a snapshot holds it and a restore goes on with it. It is
processing time, which never goes back (R28), or event time of the key (R27), so what is over stays over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from processor.contracts.clock import TimeDomain
from processor.errors import JobError

_MS: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a value is over: so long after it was written last, or after it was read, too.

    ``after`` is at least a millisecond. By event time, a value is touched at the time of the record or timer at hand
    (at the key's watermark, if that is later) and over when the watermark has come so far. What is written before
    any event time is known is over as soon as it is.
    """

    after: timedelta
    by: TimeDomain = TimeDomain.PROCESSING
    reads_renew: bool = False

    def __post_init__(self) -> None:
        after: Any = self.after
        if not isinstance(after, timedelta) or after < _MS:
            raise JobError(
                f"state is to expire after {after!r:.80}.",
                remedy="Give a timedelta of at least a millisecond, such as timedelta(hours=1).",
            )
        if not isinstance(self.by, TimeDomain):
            raise JobError(
                f"state is to expire by {self.by!r:.80}.",
                remedy="Give TimeDomain.PROCESSING or TimeDomain.EVENT.",
            )

    @property
    def after_ms(self) -> int:
        return self.after // _MS


def expiry_of(given: timedelta | Expiry | None) -> Expiry | None:
    """A duration alone is one of processing time after the last write. Raises JobError."""
    return given if given is None or isinstance(given, Expiry) else Expiry(given)


class Times(Protocol):
    """Where a step stands. What is at hand is a record or a timer, and so is the key."""

    def now_ms(self, by: TimeDomain) -> int:
        """Time for the key at hand; never goes back for it, not even over a restart."""
        ...

    def touched_ms(self, by: TimeDomain) -> int:
        """The time of something written now."""
        ...

    def reached_ms(self, by: TimeDomain) -> int:
        """Time that all keys have reached, and that the snapshot taken now has in it."""
        ...


class Stamps:
    """The times of one state of one running step."""

    __slots__ = ("_after_ms", "_by", "_times", "reads_renew", "written")

    def __init__(self, expiry: Expiry, times: Times) -> None:
        self._after_ms = expiry.after_ms
        self._by = expiry.by
        self._times = times
        self.reads_renew = expiry.reads_renew
        self.written = 0
        """So many were given out."""

    def give(self) -> int:
        """The time of something written now."""
        self.written += 1
        return self._times.touched_ms(self._by)

    def over_ms(self) -> int:
        """For the key at hand: what was touched then or earlier is over."""
        return self._times.now_ms(self._by) - self._after_ms

    def over_everywhere_ms(self) -> int:
        """Likewise for whatever key."""
        return self._times.reached_ms(self._by) - self._after_ms


class Expiries:
    """The states of one running step that expire, by name."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self._stamps: dict[str, Stamps] = {}

    def add(self, state: str, expiry: Expiry) -> Stamps:
        stamps = self._stamps[state] = Stamps(expiry, self._times)
        return stamps

    def of(self, state: str) -> Stamps:
        return self._stamps[state]

    def __len__(self) -> int:
        return len(self._stamps)

    def over_ms(self) -> Mapping[str, int]:
        """For each state: what was touched then or earlier is over, whatever the key."""
        return {name: stamps.over_everywhere_ms() for name, stamps in self._stamps.items()}
