"""Takes back what a record did to keyed state when the author's function raised half-way through it."""

from __future__ import annotations

from typing import Any

from processor.contracts.state_store import KeyedState, KeyedTable
from processor.records.batch import Key


class UndoLog:
    """Tables that remember what they overwrote until the record is done.

    Only for steps that skip records: under Fail the whole attempt goes back to a checkpoint anyway.
    """

    def __init__(self, state: KeyedState) -> None:
        self._state = state
        self._written: list[tuple[KeyedTable[Any], Key, Any]] = []

    def table(self, name: str) -> KeyedTable[Any]:
        """The table of that name, written through this log."""
        return _LoggedTable(self._state.table(name), self._written)

    def keep(self) -> None:
        """The record is done: its writes stay."""
        self._written.clear()

    def undo(self) -> None:
        """Every value is again what it was before the record, the latest write first."""
        for table, key, before in reversed(self._written):
            table.keep(key, before)
        self._written.clear()


class _LoggedTable:
    __slots__ = ("_inner", "_written", "get", "kept")

    def __init__(self, inner: KeyedTable[Any], written: list[tuple[KeyedTable[Any], Key, Any]]) -> None:
        self._inner = inner
        self._written = written
        self.get = inner.get
        self.kept = inner.kept

    def put(self, key: Key, value: Any) -> None:
        before = self.kept(key)
        self._inner.put(key, value)
        self._written.append((self._inner, key, before))

    def remove(self, key: Key) -> None:
        self.keep(key, None)

    def keep(self, key: Key, kept: Any) -> None:
        before = self.kept(key)
        self._inner.keep(key, kept)
        self._written.append((self._inner, key, before))
