"""State as a step's author sees it: the value of the key whose record is at hand.

This is the hottest path of a keyed job, so a handle holds what it calls, and the cell with the
current key, which the step sets before it calls the author's function.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from processor.contracts.state_store import KeyedTable
from processor.errors import JobError
from processor.state.stored_keys import StoredKey

T = TypeVar("T")


class CurrentKey:
    """The cell with the key of the record or timer at hand, in stored form (``stored_keys.normalise``).

    A step assigns ``key`` before each call of the author's function and calls ``leave`` after the last one
    of a batch. Outside, state has no key, and reading or writing it is an error rather than a wrong entry.
    """

    __slots__ = ("key",)

    key: StoredKey

    def leave(self) -> None:
        """There is no current key any more; without effect when there was none."""
        try:
            del self.key
        except AttributeError:
            return

    def __getattr__(self, name: str) -> StoredKey:
        # Called only while the slot is empty: the check costs nothing as long as there is a key.
        raise JobError(
            "state was used where there is no current key.",
            remedy="Use state and timers only inside on_record and on_timer.",
        )


class Value(Generic[T]):
    """One value for each key. Absent is None; 0, "", b"" and empty collections are values like any other."""

    __slots__ = ("_cell", "_get", "_put", "_remove")

    def __init__(self, table: KeyedTable[T], cell: CurrentKey) -> None:
        self._get, self._put, self._remove = table.get, table.put, table.remove
        self._cell = cell

    def get(self) -> T | None:
        """The current key's value, None when it has none.

        What can be changed in place (a list, a dict, a record that is not frozen) comes as a copy: changing
        it has no effect until it is ``set``.
        """
        return self._get(self._cell.key)

    def set(self, value: T) -> None:
        """Give the current key this value, as it is now: changing the object afterwards has no effect.

        Raises UserCodeError for a value that is not of the declared type.
        """
        self._put(self._cell.key, value)

    def clear(self) -> None:
        """Leave the current key without a value; without effect when it has none."""
        self._remove(self._cell.key)
