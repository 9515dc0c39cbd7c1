"""A map for each key, whose entries are read and written one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from operator import itemgetter
from typing import Any, Generic, TypeVar

from processor.contracts.state_store import MapTable, Tables, TableSpec
from processor.ids import StepName
from processor.records.batch import Key
from processor.state.declarations import State
from processor.state.expiring_tables import ExpiringMap
from processor.state.expiry import Expiries, Expiry
from processor.state.keyed_view import CurrentKey
from processor.state.map_keys import MapKeys, described_map_keys, map_keys
from processor.state.stamped import stamped
from processor.state.stored_keys import author_keys
from processor.state.type_schema import MAP, StateSchema
from processor.state.value_types import ValueType, described, may_be_none, value_type

K = TypeVar("K", bound=Key)
V = TypeVar("V")


class Mapped(Generic[K, V]):
    """A map for each key. One without entries is the same as none; an entry whose value is None is an entry.

    Where all entries are asked for, they come in no particular order, another one after a restore, unless
    ``ordered`` asks for that of their keys. What comes is a list: changing the map meanwhile changes nothing in it.
    """

    __slots__ = ("_cell", "_keys", "_opened", "_table", "_values")

    def __init__(self, table: MapTable, keys: MapKeys, values: ValueType, cell: CurrentKey) -> None:
        self._table = table
        self._keys = keys
        self._values = values
        self._opened: Callable[[Any], V] = _as_it_is if values.shared else values.opened
        self._cell = cell

    def get(self, key: K, /) -> V | None:
        """The value of one entry of the current key's map; None when there is none, see ``in``."""
        kept = self._table.kept((self._cell.key, self._keys.stored(key)))
        return None if kept is None else self._opened(kept)

    def __contains__(self, key: K, /) -> bool:
        """Whether there is such an entry."""
        return self._table.kept((self._cell.key, self._keys.stored(key))) is not None

    def set(self, key: K, value: V, /) -> None:
        """Give an entry this value, as it is now. Raises UserCodeError for what is not of the declared types."""
        place = self._cell.key, self._keys.stored(key)
        values = self._values
        values.check(value)
        self._table.keep(place, value if values.shared else values.encode(value))

    def remove(self, key: K, /) -> None:
        """Leave the current key's map without such an entry; without effect when it has none."""
        self._table.keep((self._cell.key, self._keys.stored(key)), None)

    def clear(self) -> None:
        """Remove all entries of the current key's map, one by one."""
        key = self._cell.key
        for entry_key, _ in self._table.entries(key):
            self._table.keep((key, entry_key), None)

    def keys(self, *, ordered: bool = False) -> list[K]:
        """The keys of all entries of the current key's map."""
        keys = self._authors(self._table.entries(self._cell.key))
        return sorted(keys) if ordered else keys

    def __iter__(self) -> Iterator[K]:
        """``keys``, one by one."""
        return iter(self.keys())

    def values(self, *, ordered: bool = False) -> list[V]:
        """The values of all entries, each a copy where it can be changed in place; ``ordered`` by their keys."""
        return [value for _, value in self._entries(ordered=ordered)]

    def items(self, *, ordered: bool = False) -> list[tuple[K, V]]:
        """Keys and values of all entries."""
        return list(self._entries(ordered=ordered))

    def _entries(self, *, ordered: bool) -> Iterator[tuple[K, V]]:
        found = self._table.entries(self._cell.key)
        entries = list(zip(self._authors(found), map(itemgetter(1), found), strict=True))
        if ordered:
            entries.sort(key=itemgetter(0))
        for key, kept in entries:
            yield key, self._opened(kept)

    def _authors(self, entries: list[tuple[Any, Any]]) -> list[Any]:
        """The keys of entries as their author has them."""
        return author_keys([entry_key for entry_key, _ in entries])


def _as_it_is(kept: Any) -> Any:
    return kept


class MapState(State[Mapped[K, V]], Generic[K, V]):
    """Declares a map for each key: ``seen_ms = MapState(str, int)`` in the body of a class.

    In a method, ``self.seen_ms`` is a ``Mapped`` with ``get``, ``in``, ``set``, ``remove``, ``keys``, ``values``,
    ``items`` and ``clear``. Reading or writing one entry costs the same however many the map has, and only
    entries that changed are saved.
    """

    def __init__(
        self, keys: type[K], kind: type[V], *, expires_after: timedelta | Expiry | None = None
    ) -> None:
        """``keys`` is the type of the entries' keys: str, bytes, int, bool, UUID, datetime, or a tuple of them.
        ``kind`` is that of their values. Each entry expires by itself. See ``ValueState``."""
        super().__init__(expires_after)
        self.keys = keys
        self.kind = kind

    def spec(self, name: str) -> TableSpec:
        # What is kept as None is not there.
        spec = TableSpec(name=name, kind=self.kind, mapped=True, as_bytes=may_be_none(self.kind))
        return spec if self.expiry is None else stamped(spec)

    def schema(self) -> StateSchema:
        return StateSchema(MAP, described(self.kind), described_map_keys(self.keys))

    def handle(
        self, tables: Tables, name: str, cell: CurrentKey, step: StepName, expiries: Expiries
    ) -> Mapped[K, V]:
        declared = self.described()
        keys = map_keys(self.keys, step=step, state=name, declared=declared)
        values = value_type(
            self.kind, step=step, state=name, declared=declared, as_bytes=may_be_none(self.kind)
        )
        table = tables.map_table(name)
        if self.expiry is not None:
            table = ExpiringMap(table, values, expiries.add(name, self.expiry))
        return Mapped(table, keys, values, cell)
