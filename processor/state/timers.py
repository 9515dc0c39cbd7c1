"""Timers of all keys of one step in one subtask.

A timer lives twice: in a table, from which snapshots are taken as for any other state, and in an index here,
rebuilt at a restore, that knows which is next. The index is a heap of distinct times with a dict of keys
under each; so adding a timer that is there already is two lookups, and windows, whose timers share few times,
cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from processor.records.batch import Key
from processor.state.memory_values import MemoryValues
from processor.state.stored_keys import StoredKey, author_key, key_bytes, normalise_key


class TimerQueue:
    """Timers of one kind, in (time, encoded key) order: the same order in every run (B6)."""

    def __init__(self, table: MemoryValues, restored: Iterable[tuple[StoredKey, int]] = ()) -> None:
        self._table = table
        self._keys: dict[int, dict[StoredKey, None]] = {}
        self._times: list[int] = []
        self._firing: dict[int, list[tuple[bytes, StoredKey]]] = {}
        """Of times that are being fired: what is left, as a heap."""
        for key, time_ms in restored:
            self._index(key, time_ms)

    def add(self, key: StoredKey, time_ms: int) -> None:
        """Without effect when the key has a timer at this time."""
        keys = self._keys.get(time_ms)
        if keys is None or key not in keys:
            self._index(key, time_ms)
            self._table.put((key, time_ms), True)

    def due(self, until_ms: int) -> Iterator[tuple[int, Key]]:
        """Take the timers with time <= ``until_ms``, those included that are added meanwhile.

        Each is gone before it is handed out; one that is not taken from the iterator stays.
        """
        times = self._times
        while times and times[0] <= until_ms:
            time_ms = times[0]
            waiting = self._firing.get(time_ms)
            if waiting is None:
                # Sorted is a heap already.
                waiting = sorted((key_bytes(key), key) for key in self._keys[time_ms])
                self._firing[time_ms] = waiting
            _, key = heappop(waiting)
            del self._keys[time_ms][key]
            if not waiting:
                heappop(times)
                del self._keys[time_ms], self._firing[time_ms]
            self._table.erase((key, time_ms))
            yield time_ms, author_key(key)

    def next_ms(self) -> int | None:
        """The earliest time, None when no timer is waiting."""
        return self._times[0] if self._times else None

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def _index(self, key: StoredKey, time_ms: int) -> None:
        keys = self._keys.get(time_ms)
        if keys is None:
            self._keys[time_ms] = {key: None}
            heappush(self._times, time_ms)
            return
        keys[key] = None
        waiting = self._firing.get(time_ms)
        if waiting is not None:
            heappush(waiting, (key_bytes(key), key))


class StepTimers:
    """Event-time and processing-time timers of one step in one subtask."""

    __slots__ = ("event", "processing")

    def __init__(self, event: TimerQueue, processing: TimerQueue) -> None:
        self.event = event
        self.processing = processing

    def add_event(self, key: Key, time_ms: int) -> None:
        """At event time ``time_ms``; one in the past fires with the next watermark. Keys may be given as
        authors have them or in stored form."""
        self.event.add(normalise_key(key), time_ms)

    def add_processing(self, key: Key, time_ms: int) -> None:
        """Like ``add_event``, for processing time."""
        self.processing.add(normalise_key(key), time_ms)

    def due_event(self, watermark_ms: int) -> Iterator[tuple[int, Key]]:
        """(time, author's key) of each due timer, see ``TimerQueue.due``."""
        return self.event.due(watermark_ms)

    def due_processing(self, now_ms: int) -> Iterator[tuple[int, Key]]:
        """(time, author's key) of each due timer, see ``TimerQueue.due``."""
        return self.processing.due(now_ms)

    def next_processing_ms(self) -> int | None:
        """When the clock is waited for next."""
        return self.processing.next_ms()
