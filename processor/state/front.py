"""Values before a store: what a step reads and writes while completions bring the store up to date.

Two threads meet here. The *subtask's thread* (S) reads and writes values, and cuts. The *completion's thread*
(C) writes frozen parts into the store and takes the snapshot from there; one completion at a time. They
share no lock, and no access of S ever waits, because every mutable thing has one writer:

======================  ==========  =====================================================================
thing                   written by  why reading it from the other thread is right
======================  ==========  =====================================================================
the values, ``changed`` S           C never sees them: the cut hands ``changed`` out and begins a new one
a frozen dict           nobody      its last writer was S before the cut; C iterates over it undisturbed
``FrozenPart.written``  C           False to True, once, after all of the part is in the store
the store               C           see below
======================  ==========  =====================================================================

S reads the store while C writes a part into it, entry by entry. S comes to the store only for a key that is
in no unwritten part, and C changes only keys of unwritten parts: they never meet at one key. So what is
required of a store is that reading one key is atomic with respect to writing *another* (a dict under the
interpreter's lock, as long as hashing and comparing keys runs no Python code, which ``stored_keys`` sees to;
RocksDB by itself). And a value is evicted only when S has seen ``written`` of every part with its key, that is
after C's writes: in every interleaving S finds it here or, later, in the store, never in neither.

Until a completion has written a part, nothing of it is evicted, and S never writes to the store at all: the
store always holds the state of exactly one cut, which is what a snapshot must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from processor.state.stored_keys import StoredKey

Entries = dict[StoredKey, Any]
"""None is a deletion."""


class StoreTable(Protocol):
    """One table of a store, behind the values."""

    def read(self, key: StoredKey) -> Any:
        """The value, None when there is none. Called by S, also while C is in ``write_in_steps``."""
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

        May be given up between two slices and begun anew later: S finds these keys among its values until
        ``written``.
        """
        yield from self.table.write_in_steps(self.entries)
        self.written = True


class Front:
    """One table of one step in one subtask. All methods are S's.

    Every write goes to two dicts: the values, so that a read is one lookup, and what changed since the last
    cut, so that a cut swaps a reference, whatever the size.
    """

    __slots__ = ("_frozen", "_store", "_values", "changed")

    def __init__(self, store: StoreTable) -> None:
        self._store = store
        self._values: Entries = {}
        self.changed: Entries = {}
        """What was set since the last cut; another dict after each."""
        self._frozen: tuple[FrozenPart, ...] = ()
        """Oldest first; those not yet seen to be written."""

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
        """Without effect when there is none."""
        raise NotImplementedError

    def _below(self, key: StoredKey) -> bool:
        """Whether the store has the key, or is about to: leaving aside what changed since the last cut."""
        for part in reversed(self._frozen):
            if key in part.entries:
                return part.entries[key] is not None
        return self._store.read(key) is not None

    def freeze(self) -> FrozenPart | None:
        """The cut: what changed becomes a frozen part, if anything did."""
        self.settle()
        if not self.changed:
            return None
        part = FrozenPart(self.changed, self._store)
        self._frozen = (*self._frozen, part)
        self.changed = {}
        return part

    def unwritten_parts(self) -> tuple[FrozenPart, ...]:
        """What a completion has to write, oldest first: its own part, and before it those of completions that
        were discarded."""
        return self._frozen

    def unwritten_entries(self) -> int:
        return len(self.changed) + sum(len(part.entries) for part in self._frozen)

    def settle(self) -> None:
        """Let go of parts that were written meanwhile. To be called once a batch."""
        if self._frozen and self._frozen[0].written:
            self._frozen = tuple(part for part in self._frozen if not part.written)
