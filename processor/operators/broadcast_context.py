"""What a function sees of a record that is broadcast."""

from __future__ import annotations

from typing import Protocol, TypeVar

from processor.records.batch import Headers, Key
from processor.state.broadcast_map import BroadcastMap, Writable

K = TypeVar("K", bound=Key)
V = TypeVar("V")


class BroadcastRecord(Protocol):
    """The record at hand."""

    def timestamp_ms(self) -> int: ...

    def headers(self) -> Headers: ...


class BroadcastContext:
    """Handed to ``on_broadcast``, and of use only during the call. Nothing can be emitted: every subtask would."""

    __slots__ = ("_record",)

    def __init__(self, record: BroadcastRecord) -> None:
        self._record = record

    @property
    def timestamp_ms(self) -> int:
        """Event time of the record; -1: it has none."""
        return self._record.timestamp_ms()

    @property
    def headers(self) -> Headers:
        """Headers of the record, in order."""
        return self._record.headers()

    def writable(self, state: BroadcastMap[K, V]) -> Writable[K, V]:
        """A broadcast state to be changed: ``context.writable(self.rules).set(key, rule)``."""
        return Writable(state)
