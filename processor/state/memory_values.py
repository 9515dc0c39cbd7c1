"""All values of one table in memory, for the subtask's thread alone; the completion has its own dict of them.

To share one dict with the completion would take layers, and a lookup in each: of a keyed job's records nearly
every one reads a value. Both dicts hold the same objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from processor.state.front import Front, StoreTable
from processor.state.stored_keys import StoredKey


class InMemoryTable(StoreTable, Protocol):
    """The completion's dict."""

    def entries(self) -> Iterable[tuple[StoredKey, Any]]:
        """All there is; only before the first record."""
        ...


class MemoryValues(Front):
    """See ``Front``. Nothing is ever looked for in the store, and nothing evicted."""

    __slots__ = ("get",)

    _store: InMemoryTable

    def __init__(self, store: InMemoryTable) -> None:
        super().__init__(store)
        self.get: Callable[[StoredKey], Any] = self._values.get
        """The value, None when there is none: the dict's own method."""

    def restored(self) -> None:
        """The store has taken all of the snapshots."""
        self._values.update(self._store.entries())

    def remove(self, key: StoredKey) -> None:
        self._values.pop(key, None)
        self.changed[key] = None

    def erase(self, key: StoredKey) -> None:
        """``remove`` that leaves no trace of what came after the last cut: what comes and goes between two
        cuts would pile up as deletions of nothing (case 28)."""
        self._values.pop(key, None)
        if self._below(key):
            self.changed[key] = None
        else:
            self.changed.pop(key, None)
