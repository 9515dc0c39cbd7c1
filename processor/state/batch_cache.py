"""The write-back cache over a store: what changed, what is frozen, what is clean, then the store.

Two threads meet here. The *subtask's thread* (S) reads and writes values, and cuts. The *completion's thread*
(C) writes frozen parts into the store and takes the snapshot from there; one completion at a time. They
share no lock, and no access of S ever waits, because every mutable thing has one writer:

======================  ==========  =====================================================================
thing                   written by  why reading it from the other thread is right
======================  ==========  =====================================================================
``changed``             S           C never sees it: the cut replaces it by a new dict and hands out the old
a frozen dict           nobody      its last writer was S before the cut; C iterates over it undisturbed
``FrozenPart.written``  C           False to True, once, after all of the part is in the store
``_layers``             S           an immutable tuple, replaced as a whole; C never sees it
the store               C           see below
======================  ==========  =====================================================================

S reads the store while C writes a part into it, entry by entry. S comes to the store only for a key that is
in no unwritten part, and C changes only keys of unwritten parts: they never meet at one key. So what is
required of a store is that reading one key is atomic with respect to writing *another* (a dict under the
interpreter's lock, as long as hashing and comparing keys runs no Python code, which ``stored_keys`` sees to;
RocksDB by itself). And a part leaves the upper layers only when S has seen ``written``, that is after C's
writes: in every interleaving S finds a value in the part or, later, in the store, never in neither.

Until a completion has written a part, nothing of it is evicted, and S never writes to the store at all: the
store always holds the state of exactly one cut, which is what a snapshot must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from processor.state.stored_keys import StoredKey

MISSING: Final[Any] = object()
"""Not in this layer. A deletion is an entry with the value None, so that it hides what lies below."""

Entries = dict[StoredKey, Any]

CLEAN_GENERATIONS = 4
"""Clean entries are dropped a quarter at a time: dropping all at once would stop S for milliseconds."""

CLEAN_GENERATIONS_MAX = 2 * CLEAN_GENERATIONS
"""Each generation is one more dict to look into before the store is asked."""

MERGE_ENTRIES_MAX = 4_096
"""Written parts up to this size are merged into the youngest clean generation, in about 0.1 ms: short
intervals between checkpoints would otherwise make a generation of each."""


class StoreTable(Protocol):
    """One table of a store, below the cache."""

    def read(self, key: StoredKey) -> Any:
        """The value, None when there is none. Called by S, also while C is in ``write``."""
        ...

    def write_in_steps(self, entries: Entries) -> Iterator[None]:
        """Take these values; None deletes. Yields about once a millisecond. Called by C.

        May be given up between two steps and begun anew later with the same entries.
        """
        ...


class FrozenPart:
    """What changed between two cuts. Its entries never change again."""

    __slots__ = ("entries", "table", "written")

    def __init__(self, entries: Entries, table: StoreTable) -> None:
        self.entries: Final = entries
        self.table: Final = table
        self.written = False

    def write_in_steps(self) -> Iterator[None]:
        """Write the part into the store, yielding between slices. Called by C.

        May be given up between two slices and begun anew later: S finds these keys in the part until
        ``written``.
        """
        yield from self.table.write_in_steps(self.entries)
        self.written = True


class BatchCache:
    """One table of one step in one subtask. All methods are S's."""

    __slots__ = ("_clean", "_entries_max", "_frozen", "_generation_max", "_layers", "_store", "changed")

    def __init__(self, store: StoreTable, *, entries_max: int) -> None:
        """``entries_max`` bounds clean and changed entries together."""
        self._store = store
        self._entries_max = entries_max
        self._generation_max = max(1, entries_max // CLEAN_GENERATIONS)
        self.changed: Entries = {}
        """What was set since the last cut; another dict after each."""
        self._frozen: tuple[FrozenPart, ...] = ()
        """Newest first; those not yet seen to be written."""
        self._clean: tuple[Entries, ...] = ({},)
        """Newest first. Younger generations hide older ones, as changed and frozen ones hide them all: so a
        write needs to touch no other layer."""
        self._layers: tuple[Entries, ...] = self._clean

    def restored(self) -> None:
        """The store has taken all of the snapshots: it is asked when somebody asks."""

    def get(self, key: StoredKey) -> Any:
        """The value, None when there is none."""
        value = self.changed.get(key, MISSING)
        if value is MISSING:
            return self._below(key)
        return value

    def put(self, key: StoredKey, value: Any) -> None:
        """None is a deletion."""
        self.changed[key] = value

    def remove(self, key: StoredKey) -> None:
        self.changed[key] = None

    def checked_put(
        self, classes: frozenset[type], misfit: Callable[[object], Exception]
    ) -> Callable[[StoredKey, Any], None]:
        """``put`` that refuses a value whose class is none of these."""

        def put(key: StoredKey, value: Any) -> None:
            if value.__class__ not in classes:
                raise misfit(value)
            self.changed[key] = value

        return put

    def freeze(self) -> FrozenPart | None:
        """The cut: what changed becomes a frozen part, if anything did. Swaps references, whatever the size."""
        self.settle()
        if self.changed:
            self._frozen = (FrozenPart(self.changed, self._store), *self._frozen)
            self.changed = {}
            self._restack()
            return self._frozen[0]
        return None

    def unwritten_parts(self) -> tuple[FrozenPart, ...]:
        """Frozen parts a completion has to write, oldest first: its own, and before it those of completions
        that were discarded."""
        return self._frozen[::-1]

    def unwritten_entries(self) -> int:
        return len(self.changed) + sum(len(part.entries) for part in self._frozen)

    def settle(self) -> None:
        """Take notice of parts that were written meanwhile: they become clean entries, or go."""
        frozen = self._frozen
        if frozen and frozen[-1].written:
            self._frozen = tuple(part for part in frozen if not part.written)
            for part in reversed(frozen[len(self._frozen) :]):
                self._keep_clean(part.entries)
            self._restack()
        self._trim()

    def _below(self, key: StoredKey) -> Any:
        for entries in self._layers:
            value = entries.get(key, MISSING)
            if value is not MISSING:
                return value
        value = self._store.read(key)
        clean = self._clean[0]
        clean[key] = value  # also None: to know that there is nothing is as dear as any other value
        if len(clean) >= self._generation_max:
            self._clean = ({}, *self._clean)
            self._restack()
            self._trim()
        return value

    def _keep_clean(self, entries: Entries) -> None:
        """Keep what was written; it is newer than all clean entries, so it goes above or over them."""
        if len(entries) <= MERGE_ENTRIES_MAX:
            self._clean[0].update(entries)
        else:
            self._clean = ({}, entries, *(clean for clean in self._clean if clean))

    def _trim(self) -> None:
        """Drop the oldest clean generations beyond the bound. Only the oldest may go: a younger one may hide
        values in it that are out of date."""
        if len(self._clean) == 1:
            return
        room = self._entries_max - self.unwritten_entries()
        youngest = self._clean[0]  # it may still grow to a whole generation
        keep, total = [youngest], max(len(youngest), self._generation_max)
        for clean in self._clean[1:]:
            total += len(clean)
            if total > room or len(keep) == CLEAN_GENERATIONS_MAX:
                break
            keep.append(clean)
        if len(keep) < len(self._clean):
            self._clean = tuple(keep)
            self._restack()

    def _restack(self) -> None:
        self._layers = (*(part.entries for part in self._frozen), *self._clean)
