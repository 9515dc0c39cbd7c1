"""Tables of state that expires, as its handles see them: what is over is not there, and what is kept is stamped.

They stand over the tables that the undo of a skipped record logs, so that is undone too that a value was touched.
"""

from __future__ import annotations

from typing import Any

from processor.contracts.state_store import KeptTable, MapTable
from processor.state.expiry import Stamps
from processor.state.stamped import apart, joined
from processor.state.value_types import ValueType


class _Expiring:
    """What is kept without its time."""

    __slots__ = ("_shared", "_stamps", "_table")

    def __init__(self, table: KeptTable, values: ValueType, stamps: Stamps) -> None:
        """``values`` is the type without the time."""
        self._table = table
        self._shared = values.shared
        self._stamps = stamps

    def kept(self, key: Any) -> Any:
        pair = self._table.kept(key)
        return None if pair is None else self._current(key, pair)

    def keep(self, key: Any, kept: Any) -> None:
        if kept is None:
            self._table.keep(key, None)
        elif self._shared:
            self._table.keep(key, (self._stamps.give(), kept))
        else:
            self._table.keep(key, joined(self._stamps.give(), kept))

    def _current(self, key: Any, pair: Any) -> Any:
        """The value of a pair; None when it is over."""
        if self._shared:
            touched_ms, value = pair
        else:
            touched_ms, value_at = apart(pair)
            value = pair[value_at:]
        if touched_ms <= self._stamps.over_ms():
            return None
        if self._stamps.reads_renew:
            self.keep(key, value)
        return value


class ExpiringTable(_Expiring):
    """See ``KeyedTable``."""

    __slots__ = ("_values",)

    def __init__(self, table: KeptTable, values: ValueType, stamps: Stamps) -> None:
        super().__init__(table, values, stamps)
        self._values = values

    def get(self, key: Any) -> Any:
        kept = self.kept(key)
        return kept if kept is None or self._shared else self._values.opened(kept)

    def put(self, key: Any, value: Any) -> None:
        self._values.check(value)
        if value is None:  # of a type that has None, and a value that is None is none
            self.remove(key)
        else:
            self.keep(key, value if self._shared else self._values.encode(value))

    def remove(self, key: Any) -> None:
        self._table.keep(key, None)


class ExpiringMap(_Expiring):
    """See ``MapTable``: each entry is over by itself."""

    __slots__ = ("_entries",)

    def __init__(self, table: MapTable, values: ValueType, stamps: Stamps) -> None:
        super().__init__(table, values, stamps)
        self._entries = table.entries

    def entries(self, key: Any) -> list[tuple[Any, Any]]:
        found: list[tuple[Any, Any]] = []
        for entry_key, pair in self._entries(key):
            value = self._current((key, entry_key), pair)
            if value is not None:
                found.append((entry_key, value))
        return found
