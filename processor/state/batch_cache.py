"""The write-back cache over a store on disk: values that changed, that were read, or that are not there."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from processor.state.front import Front, StoreTable
from processor.state.stored_keys import StoredKey

MISSING: Final[Any] = object()
"""Not in the cache. What is known to be nowhere is an entry with the value None."""

EVICT_ENTRIES_MAX = 8_192
"""Looked through at once for what may go, in about 2 ms. Not much fewer, for the search begins at the front each
time, where a dict keeps the places of what has left it until it is next made anew."""

EVICT_PARTS = 8
"""When the cache is full, this part of it is to go."""


class BatchCache(Front):
    """See ``Front``. The oldest entries leave first; those that are not yet in the store stay and count as young.

    The bound is held but for what one batch adds, and for what is not yet in the store: too much of that is
    back-pressure's business (``KeyedState.pressed``).
    """

    __slots__ = ("_entries_kept", "_entries_max", "_evict_at")

    def __init__(self, store: StoreTable, *, entries_max: int) -> None:
        super().__init__(store)
        self._entries_max = entries_max
        self._entries_kept = entries_max - entries_max // EVICT_PARTS
        self._evict_at = entries_max
        """With so many entries it is time to look for what may go."""

    def restored(self) -> None:
        """The store has taken all of the snapshots: it is asked when somebody asks."""

    def get(self, key: StoredKey) -> Any:
        """The value, None when there is none."""
        value = self._values.get(key, MISSING)
        if value is not MISSING:
            return value
        if len(self._values) >= self._evict_at:
            self._evict()
        # Also None: to know that there is nothing is as dear as any other value.
        value = self._values[key] = self._store.read(key)
        return value

    def remove(self, key: StoredKey) -> None:
        self._values[key] = self.changed[key] = None

    def settle(self) -> None:
        before = self._frozen
        super().settle()
        if self._frozen is not before:
            self._evict_at = self._entries_max  # what had to stay may go now
        if len(self._values) > self._evict_at:
            self._evict()

    def _evict(self) -> None:
        values = self._values
        unwritten = [self.changed, *(part.entries for part in self._frozen)]
        looked_at = list(islice(values, min(EVICT_ENTRIES_MAX, len(values) - self._entries_kept)))
        for key in looked_at:
            if any(key in entries for entries in unwritten):
                values[key] = values.pop(key)
            else:
                del values[key]
        # Where most had to stay, the next look waits until it is worth its while.
        self._evict_at = max(self._entries_max, len(values) + len(looked_at) // 2)
