"""What an author writes for a ``transform``: a class that keeps lists of its own, for records without keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from processor.operators.process_function import StepFunction
from processor.records.batch import Headers

V = TypeVar("V")
W = TypeVar("W")


class AtHandOf(Protocol):
    """The record at hand: what ``RecordContext`` asks."""

    def timestamp_ms(self) -> int: ...

    def headers(self) -> Headers: ...


class RecordContext(Generic[W]):
    """Handed to the methods of a ``Transform``, and of use only during the call."""

    __slots__ = ("_record", "emit")

    def __init__(self, record: AtHandOf, emit: Callable[[W], None]) -> None:
        self._record = record
        self.emit: Callable[[W], None] = emit
        """Send a value on, with the timestamp of the record at hand, without key and headers."""

    @property
    def timestamp_ms(self) -> int:
        """Event time of the record; -1: it has none, or all input has ended."""
        return self._record.timestamp_ms()

    @property
    def headers(self) -> Headers:
        """Headers of the record, in order."""
        return self._record.headers()


class Transform(StepFunction, Generic[V, W]):
    """A function of values V that emits values W, with lists that belong to its subtask and not to a key.

    One instance serves a subtask; what it must not forget is in ``SplitListState`` and ``UnionListState``. Under
    ``on_error=Skip()`` a record for which ``on_record`` raises leaves no trace in them or in what was emitted.
    """

    def on_start(self, subtask: int, subtasks: int, /) -> None:
        """Called before the first record, with the lists as they were restored. Subtasks are numbered from 0."""

    def on_record(self, value: V, /, context: RecordContext[W]) -> None:
        """Called for every record, in the order of the stream."""
        raise NotImplementedError(f"{type(self).__name__} has no on_record")

    def on_end(self, context: RecordContext[W], /) -> None:
        """All input has ended, or the job is drained: the last chance to emit what waits in lists."""
