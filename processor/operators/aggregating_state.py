"""A running total for each key, of values of another type than the total or the result."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Generic, TypeVar

from processor.contracts.state_store import KeyedTable, Tables, TableSpec
from processor.ids import StepName
from processor.operators.aggregates import Aggregate, total_type
from processor.state.declarations import State
from processor.state.expiry import Expiries, Expiry
from processor.state.keyed_view import CurrentKey
from processor.state.type_schema import AGGREGATING, StateSchema
from processor.state.value_types import ValueType, described_total, value_type

A = TypeVar("A")
V = TypeVar("V")
R = TypeVar("R")


class Aggregated(Generic[V, R]):
    """The total of each key's values; a key to which none was added has none."""

    __slots__ = ("_cell", "_get", "_how", "_put", "_remove", "_totals")

    def __init__(
        self, table: KeyedTable[Any], totals: ValueType, how: Aggregate[V, Any, R], cell: CurrentKey
    ) -> None:
        self._get, self._put, self._remove = table.get, table.put, table.remove
        self._totals = totals
        self._how = how
        self._cell = cell

    def get(self) -> R | None:
        """The result of the current key's total; None when no value was added since it was cleared."""
        total = self._get(self._cell.key)
        return None if total is None else self._how.result(total)

    def add(self, value: V) -> None:
        """Add a value to the current key's total.

        Raises UserCodeError when the new total is not of the type that ``create`` is declared to return; nothing
        has changed then.
        """
        key = self._cell.key
        total = self._get(key)
        total = self._how.add(self._how.create() if total is None else total, value)
        self._totals.check(total)
        self._put(key, total)

    def clear(self) -> None:
        """Leave the current key without a total; without effect when it has none."""
        self._remove(self._cell.key)


class AggregatingState(State[Aggregated[V, R]], Generic[V, R]):
    """Declares a total for each key: ``visits = AggregatingState(Count())``, or of an ``Aggregate`` of one's own.

    In a method, ``self.visits`` is an ``Aggregated`` with ``add``, ``get`` and ``clear``. The total is kept with
    the type that the aggregate's ``create`` is annotated to return.
    """

    def __init__(self, how: Aggregate[V, A, R], *, expires_after: timedelta | Expiry | None = None) -> None:
        """``expires_after`` is counted from the last ``add``, see ``ValueState``."""
        super().__init__(expires_after)
        self.how: Aggregate[V, Any, R] = how

    def spec(self, name: str) -> TableSpec:
        return self.spec_of_values(name, total_type(self.how))

    def schema(self) -> StateSchema:
        return StateSchema(AGGREGATING, described_total(total_type(self.how)))

    def handle(
        self, tables: Tables, name: str, cell: CurrentKey, step: StepName, expiries: Expiries
    ) -> Aggregated[V, R]:
        kind = total_type(self.how)
        totals = value_type(kind, step=step, state=name, declared=self.described())
        return Aggregated(self.table_of_values(tables, name, totals, expiries), totals, self.how, cell)
