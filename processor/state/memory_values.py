"""All values of one table in memory, for the subtask's thread alone; the completion has its own dict of them.

Layers (``batch_cache``) would save the second dict, and cost three lookups where this takes one: of a keyed
job's records nearly every one reads a value. Both dicts hold the same objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from processor.state.batch_cache import Entries, FrozenPart, StoreTable
from processor.state.stored_keys import StoredKey


class InMemoryTable(StoreTable, Protocol):
    """The completion's dict."""

    def entries(self) -> Iterable[tuple[StoredKey, Any]]:
        """All there is; only before the first record."""
        ...


class MemoryValues:
    """One table of one step in one subtask. All methods are those of the subtask's thread (S).

    ``put`` writes twice: the value, and that it changed. The cut hands the dict of changes to the
    completion's thread (C), which brings its own dict up to date with it; neither reads the other's dict.
    """

    __slots__ = ("_frozen", "_store", "_values", "changed", "get")

    def __init__(self, store: InMemoryTable) -> None:
        self._store = store
        self._values: Entries = {}
        self.get: Callable[[StoredKey], Any] = self._values.get
        """The value, None when there is none: the dict's own method."""
        self.changed: Entries = {}
        self._frozen: tuple[FrozenPart, ...] = ()

    def restored(self) -> None:
        """The store has taken all of the snapshots."""
        self._values.update(self._store.entries())

    def put(self, key: StoredKey, value: Any) -> None:
        """None is a deletion."""
        if value is None:
            self.remove(key)
        else:
            self._values[key] = value
            self.changed[key] = value

    def checked_put(
        self, classes: frozenset[type], misfit: Callable[[object], Exception]
    ) -> Callable[[StoredKey, Any], None]:
        """``put`` that refuses a value whose class is none of these."""
        values = self._values

        def put(key: StoredKey, value: Any) -> None:
            if value.__class__ not in classes:
                raise misfit(value)
            values[key] = value
            self.changed[key] = value

        return put

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

    def _below(self, key: StoredKey) -> bool:
        """Whether the completion's dict has the key, or is about to."""
        for part in self._frozen:
            if key in part.entries:
                return part.entries[key] is not None
        return self._store.read(key) is not None

    def freeze(self) -> FrozenPart | None:
        """The cut: what changed becomes a frozen part, if anything did. Swaps references, whatever the size."""
        self.settle()
        if self.changed:
            self._frozen = (FrozenPart(self.changed, self._store), *self._frozen)
            self.changed = {}
            return self._frozen[0]
        return None

    def unwritten_parts(self) -> tuple[FrozenPart, ...]:
        """Oldest first, those of discarded completions included."""
        return self._frozen[::-1]

    def unwritten_entries(self) -> int:
        return len(self.changed) + sum(len(part.entries) for part in self._frozen)

    def settle(self) -> None:
        """Let go of parts that were written meanwhile."""
        if self._frozen and self._frozen[-1].written:
            self._frozen = tuple(part for part in self._frozen if not part.written)
