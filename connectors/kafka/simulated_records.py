"""Records and events as a simulated consumer hands them out, and the rows of one request on their way in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.kafka.cluster import Partition
from processor.records.batch import Headers

LEADER_EPOCH = 0
"""Leaders do not change in a simulated cluster: what a change does to clients, lost requests do too."""

CREATE_TIME = 1
LOG_APPEND_TIME = 2
NO_TIME = 0


@dataclass(frozen=True, slots=True)
class SimulatedError:
    """See ``cluster.MessageError``."""

    called: str
    text: str

    def name(self) -> str:
        return self.called

    def str(self) -> str:
        return self.text


class SimulatedMessage:
    """See ``cluster.Message``: a record in a log, of which one object serves all readers, or an event.

    Both are of one class, as with the real client: readers map the class's methods over all that comes.
    """

    __slots__ = ("_at", "_error", "_headers", "_key", "_kind", "_offset", "_time_ms", "_value")

    def __init__(
        self,
        at: Partition,
        offset: int,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        kind: int,
        time_ms: int,
        error: SimulatedError | None = None,
    ) -> None:
        self._at = at
        self._offset = offset
        self._value = value
        self._key = key
        self._headers = headers
        self._kind = kind
        self._time_ms = time_ms
        self._error = error

    @classmethod
    def event(cls, at: Partition, offset: int, error: SimulatedError) -> SimulatedMessage:
        """What a consumer is told of a partition beside its records."""
        return cls(at, offset, error.text.encode(), None, (), NO_TIME, -1, error)

    def error(self) -> SimulatedError | None:
        return self._error

    def topic(self) -> str:
        return self._at.topic

    def partition(self) -> int:
        return self._at.number

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        return list(self._headers) if self._headers else None

    def timestamp(self) -> tuple[int, int]:
        return self._kind, self._time_ms

    def leader_epoch(self) -> int:
        return LEADER_EPOCH

    def __repr__(self) -> str:
        what = f"{self._key!r}={self._value!r}" if self._error is None else self._error.called
        return f"SimulatedMessage({self._at}@{self._offset} {what})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of one request for one partition, in parallel columns; None for a column that no row needs."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    timestamps: Sequence[int] | None = None
    """Milliseconds; negative ones, and 0, as the client understands them: see ``stored_time``."""
    headers: Sequence[Headers] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Rows:
        return Rows(
            values=self.values[start:stop],
            keys=None if self.keys is None else self.keys[start:stop],
            timestamps=None if self.timestamps is None else self.timestamps[start:stop],
            headers=None if self.headers is None else self.headers[start:stop],
        )

    def chosen(self, indices: Sequence[int]) -> Rows:
        return Rows(
            values=[self.values[i] for i in indices],
            keys=None if self.keys is None else [self.keys[i] for i in indices],
            timestamps=None if self.timestamps is None else [self.timestamps[i] for i in indices],
            headers=None if self.headers is None else [self.headers[i] for i in indices],
        )


def stored_time(time_ms: int, now_ms: int) -> int:
    """As the client library sends it: it takes 0 for "now", so the first millisecond of 1970 becomes the
    second; what lies before 1970 means now."""
    if time_ms > 0:
        return time_ms
    return 1 if time_ms == 0 else now_ms
