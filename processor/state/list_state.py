"""A list for each key, to which values are added without reading it.

It is one value of its table, kept in msgpack, where a list is a length and then its items: to append is to put
bytes behind bytes and to count up, whatever the items are.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar, cast

from processor.contracts.state_store import KeyedTable, Tables, TableSpec
from processor.ids import StepName
from processor.state.declarations import State
from processor.state.expiry import Expiries, Expiry, Stamps
from processor.state.keyed_view import CurrentKey
from processor.state.stamped import joined, stamped_items
from processor.state.type_schema import LIST, StateSchema
from processor.state.value_types import ValueType, described, value_type

T = TypeVar("T")


class Listed(Generic[T]):
    """A list for each key. No list is None; an empty one is a list like any other, and so is one of None."""

    __slots__ = ("_cell", "_items", "_table")

    def __init__(self, table: KeyedTable[list[T]], items: ValueType, cell: CurrentKey) -> None:
        self._table = table
        self._items = items
        self._cell = cell

    def get(self) -> list[T] | None:
        """The current key's list, None when it has none. It is a copy: changing it changes no state."""
        return self._table.get(self._cell.key)

    def append(self, value: T) -> None:
        """Put a value, as it is now, at the end of the current key's list, which begins with it if there was none.

        Raises UserCodeError for a value that is not of the declared type.
        """
        self.extend((value,))

    def extend(self, values: Iterable[T]) -> None:
        """``append`` of each; without effect when there are none."""
        key = self._cell.key
        encoded = self._encoded(values)
        if encoded:
            self._table.keep(key, _longer(self._table.kept(key), encoded))

    def set(self, values: Iterable[T]) -> None:
        """Give the current key a list of these values, as they are now. Raises like ``append``."""
        self._table.keep(self._cell.key, _longer(None, self._encoded(values)))

    def clear(self) -> None:
        """Leave the current key without a list; without effect when it has none."""
        self._table.remove(self._cell.key)

    def _encoded(self, values: Iterable[T]) -> list[bytes]:
        items = self._items
        encoded: list[bytes] = []
        for value in values:
            items.check(value)
            encoded.append(items.encode(value))
        return encoded


class _Expiring(Listed[T]):
    """A list whose items expire: each stands in a pair with the time at which it was put in."""

    __slots__ = ("_stamps",)

    _table: KeyedTable[Any]

    def __init__(self, table: KeyedTable[Any], items: ValueType, cell: CurrentKey, stamps: Stamps) -> None:
        super().__init__(table, items, cell)
        self._stamps = stamps

    def get(self) -> list[T] | None:
        pairs = self._table.get(self._cell.key)
        if pairs is None:
            return None
        over_ms = self._stamps.over_ms()
        items = [item for touched_ms, item in pairs if touched_ms > over_ms]
        if items and self._stamps.reads_renew:
            self.set(items)
        return items or None

    def set(self, values: Iterable[T]) -> None:
        encoded = self._encoded(values)
        self._table.keep(self._cell.key, _longer(None, encoded) if encoded else None)

    def _encoded(self, values: Iterable[T]) -> list[bytes]:
        encoded = super()._encoded(values)
        touched_ms = self._stamps.give() if encoded else 0
        return [joined(touched_ms, item) for item in encoded]


class ListState(State[Listed[T]], Generic[T]):
    """Declares a list for each key: ``pages = ListState(str)`` in the body of a class.

    In a method, ``self.pages`` is a ``Listed`` with ``get``, ``append``, ``extend``, ``set`` and ``clear``. A
    list is one value: reading it reads all of it, and so does every checkpoint after it changed. For many
    values of which few are looked at, use ``MapState``.
    """

    def __init__(self, kind: type[T], *, expires_after: timedelta | Expiry | None = None) -> None:
        """``kind`` is the type of the items. Each item expires by itself, so long after it was put in; a list that
        expires and has no item left is none. See ``ValueState``."""
        super().__init__(expires_after)
        self.kind = kind

    def spec(self, name: str) -> TableSpec:
        if self.expiry is not None:
            return stamped_items(name, self.kind)
        return TableSpec(name=name, kind=cast(Any, list)[self.kind])

    def schema(self) -> StateSchema:
        return StateSchema(LIST, described(self.kind))

    def handle(
        self, tables: Tables, name: str, cell: CurrentKey, step: StepName, expiries: Expiries
    ) -> Listed[T]:
        items = value_type(self.kind, step=step, state=name, declared=self.described())
        if self.expiry is not None:
            return _Expiring(tables.table(name), items, cell, expiries.add(name, self.expiry))
        return Listed(tables.table(name), items, cell)


_FIX, _ARRAY16, _ARRAY32 = 0x90, 0xDC, 0xDD
"""First bytes of an array in msgpack: with its length in the lower half, in two bytes behind it, in four."""


def _longer(array: bytes | None, items: list[bytes]) -> bytes:
    """An array with these encoded items at its end; None is no array yet."""
    if array is None:
        return b"".join((_head(len(items)), *items))
    first = array[0]
    start = {_ARRAY16: 3, _ARRAY32: 5}.get(first, 1)
    length = first & 0x0F if start == 1 else int.from_bytes(array[1:start], "big")
    return b"".join((_head(length + len(items)), memoryview(array)[start:], *items))


def _head(length: int) -> bytes:
    if length < 16:
        return bytes((_FIX | length,))
    if length < 2**16:
        return bytes((_ARRAY16,)) + length.to_bytes(2, "big")
    return bytes((_ARRAY32,)) + length.to_bytes(4, "big")
