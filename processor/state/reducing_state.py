"""One value for each key, into which every further one is folded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

from processor.contracts.state_store import KeyedTable, Tables, TableSpec
from processor.ids import StepName
from processor.state.declarations import State
from processor.state.expiry import Expiries, Expiry
from processor.state.keyed_view import CurrentKey
from processor.state.type_schema import REDUCING, StateSchema
from processor.state.value_types import ValueType, described_total, value_type

T = TypeVar("T")


class Reduced(Generic[T]):
    """What the values of each key were folded to; None for a key to which none was added."""

    __slots__ = ("_cell", "_get", "_put", "_reduce", "_remove", "_values")

    def __init__(
        self, table: KeyedTable[T], values: ValueType, reduce: Callable[[T, T], T], cell: CurrentKey
    ) -> None:
        self._get, self._put, self._remove = table.get, table.put, table.remove
        self._values = values
        self._reduce = reduce
        self._cell = cell

    def get(self) -> T | None:
        """The current key's value, see ``Value.get``."""
        return self._get(self._cell.key)

    def add(self, value: T) -> None:
        """Fold a value into the current key's; the first one is taken as it is.

        Raises UserCodeError when the value or the outcome is not of the declared type; nothing has changed then.
        """
        check = self._values.check
        check(value)
        key = self._cell.key
        before = self._get(key)
        if before is not None:
            value = self._reduce(before, value)
            check(value)
        self._put(key, value)

    def clear(self) -> None:
        """Leave the current key without a value; without effect when it has none."""
        self._remove(self._cell.key)


class ReducingState(State[Reduced[T]], Generic[T]):
    """Declares a value for each key that others are folded into: ``largest = ReducingState(int, max)``.

    In a method, ``self.largest`` is a ``Reduced`` with ``add``, ``get`` and ``clear``. ``reduce`` is given what
    there is and a value, and returns what is kept instead of both; it may be called again for the same record
    after a failure, so it should do nothing else.
    """

    def __init__(
        self, kind: type[T], reduce: Callable[[T, T], T], *, expires_after: timedelta | Expiry | None = None
    ) -> None:
        """``kind`` is a type without None, and ``expires_after`` is counted from the last ``add``: see
        ``ValueState``."""
        super().__init__(expires_after)
        self.kind = kind
        self.reduce = reduce

    def spec(self, name: str) -> TableSpec:
        return self.spec_of_values(name, self.kind)

    def schema(self) -> StateSchema:
        return StateSchema(REDUCING, described_total(self.kind))

    def handle(
        self, tables: Tables, name: str, cell: CurrentKey, step: StepName, expiries: Expiries
    ) -> Reduced[T]:
        values = value_type(self.kind, step=step, state=name, declared=self.described())
        return Reduced(self.table_of_values(tables, name, values, expiries), values, self.reduce, cell)
