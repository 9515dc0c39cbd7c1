"""Takes back what a record did to keyed state when the author's function raised half-way through it."""

from __future__ import annotations

from typing import Any

from processor.contracts.state_store import KeptTable, KeyedState, KeyedTable, MapTable
from processor.records.batch import Key

_Written = list[tuple[KeptTable, Any, Any]]
"""Where, and what was kept there before."""


class UndoLog:
    """Tables that remember what they overwrote until the record is done.

    Only for steps that skip records: under Fail the whole attempt goes back to a checkpoint anyway.
    """

    def __init__(self, state: KeyedState) -> None:
        self._state = state
        self._written: _Written = []

    def table(self, name: str) -> KeyedTable[Any]:
        """The table of that name, written through this log."""
        return _LoggedTable(self._state.table(name), self._written)

    def map_table(self, name: str) -> MapTable:
        """Likewise for maps."""
        return _LoggedMap(self._state.map_table(name), self._written)

    def keep(self) -> None:
        """The record is done: its writes stay."""
        self._written.clear()

    def undo(self) -> None:
        """Every value is again what it was before the record, the latest write first."""
        for table, key, before in reversed(self._written):
            table.keep(key, before)
        self._written.clear()


class _Logged:
    __slots__ = ("_table", "_written", "kept")

    def __init__(self, table: KeptTable, written: _Written) -> None:
        self._table = table
        self._written = written
        self.kept = table.kept

    def keep(self, key: Any, kept: Any) -> None:
        before = self.kept(key)
        self._table.keep(key, kept)
        self._written.append((self._table, key, before))


class _LoggedTable(_Logged):
    __slots__ = ("_put", "get")

    def __init__(self, table: KeyedTable[Any], written: _Written) -> None:
        super().__init__(table, written)
        self.get = table.get
        self._put = table.put

    def put(self, key: Key, value: Any) -> None:
        before = self.kept(key)
        self._put(key, value)
        self._written.append((self._table, key, before))

    def remove(self, key: Key) -> None:
        self.keep(key, None)


class _LoggedMap(_Logged):
    __slots__ = ("entries",)

    def __init__(self, table: MapTable, written: _Written) -> None:
        super().__init__(table, written)
        self.entries = table.entries
