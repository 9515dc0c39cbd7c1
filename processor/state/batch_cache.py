"""The write-back cache over a store on disk: values that changed, that were read, or that are not there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Protocol

from processor.state.front import Front, StoreTable
from processor.state.stored_keys import StoredKey

EVICT_ENTRIES_MAX = 8_192
"""Looked through at once for what may go, in about 2 ms. Not much fewer, for the search begins at the front each
time, where a dict keeps the places of what has left it until it is next made anew."""

EVICT_PARTS = 8
"""When the cache is full, this part of it is to go."""


class DiskTable(StoreTable, Protocol):
    """A table of a store on disk."""

    def some(self, places_max: int) -> list[tuple[Any, Any]]:
        """Some entries, others each time, all of them in turn. Called by S, also while C is in ``write_in_steps``."""
        ...


class BatchCache(Front):
    """See ``Front``. The oldest entries leave first; those that are not yet in the store stay and count as young.

    The bound is held but for what one batch adds, and for what is not yet in the store: too much of that is
    back-pressure's business (``KeyedState.pressed``).
    """

    __slots__ = ("_entries_kept", "_entries_max", "evict_at", "get")

    _store: DiskTable

    def __init__(self, store: DiskTable, *, entries_max: int) -> None:
        super().__init__(store)
        self._values = _Filling(self, store)
        self.get: Callable[[StoredKey], Any] = self._values.__getitem__
        """The value, None when there is none: the dict's own method, so that a hit runs no code of ours."""
        self._entries_max = entries_max
        self._entries_kept = entries_max - entries_max // EVICT_PARTS
        self.evict_at = entries_max
        """With so many entries it is time to look for what may go."""

    def restored(self) -> None:
        """The store has taken all of the snapshots: it is asked when somebody asks."""

    def remove(self, key: StoredKey) -> None:
        self._values[key] = self.changed[key] = None

    def some(self, places_max: int) -> list[tuple[Any, Any]]:
        """See ``KeyedState.some``: places that the store has. What is newer here counts."""
        values = self._values
        found = ((place, values.get(place, kept)) for place, kept in self._store.some(places_max))
        return [(place, kept) for place, kept in found if kept is not None]

    def settle(self) -> None:
        before = self._frozen
        super().settle()
        if self._frozen is not before:
            self.evict_at = self._entries_max  # what had to stay may go now
        if len(self._values) > self.evict_at:
            self.evict()

    def evict(self) -> None:
        """Let the oldest go that may."""
        values = self._values
        looked_at = list(islice(values, min(EVICT_ENTRIES_MAX, len(values) - self._entries_kept)))
        unwritten = self.changed.keys() & looked_at
        for part in self._frozen:
            unwritten |= part.entries.keys() & looked_at
        stay = {key: values[key] for key in looked_at if key in unwritten}
        for key in looked_at:
            del values[key]
        values.update(stay)
        # Where most had to stay, the next look waits until it is worth its while.
        self.evict_at = max(self._entries_max, len(values) + len(looked_at) // 2)


class _Filling(dict[StoredKey, Any]):
    """Asks for what it lacks and keeps the answer, None included: to know that there is nothing is as dear as
    any other value."""

    __slots__ = ("_cache", "_read")

    def __init__(self, cache: BatchCache, store: StoreTable) -> None:
        super().__init__()
        self._cache = cache
        self._read = store.read

    def __missing__(self, key: StoredKey) -> Any:
        if len(self) >= self._cache.evict_at:
            self._cache.evict()
        value = self[key] = self._read(key)
        return value
