"""What an author declares: state as attributes of a class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar, overload

from processor.contracts.state_store import KeyedTable, Tables, TableSpec
from processor.errors import JobError
from processor.ids import StepName
from processor.state.expiring_tables import ExpiringTable
from processor.state.expiry import Expiries, Expiry, expiry_of
from processor.state.keyed_view import CurrentKey, Value
from processor.state.schema_text import state_text
from processor.state.stamped import stamped
from processor.state.type_schema import VALUE, StateSchema
from processor.state.value_types import ValueType, described, value_type

T = TypeVar("T")
H = TypeVar("H")

STATES_MAX = 200
"""States one step may declare; a table's number is one byte of every key in RocksDB."""


class Declared(ABC, Generic[H]):
    """What all declarations have in common. In a method of a running step, the attribute is a handle ``H``.

    The state hangs on the attribute's name: renaming it begins a new state.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        """The attributes it is assigned to; more than one is refused by ``declared``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.names.append(name)

    @abstractmethod
    def described(self) -> str:
        """Kind and types in a line, as manifests keep it. Raises JobError for a type whose values cannot be kept."""

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...

    @overload
    def __get__(self, obj: object, owner: type) -> H: ...

    def __get__(self, obj: object | None, owner: type) -> Self | H:
        if obj is None:
            return self
        # The engine puts a handle into the instance, which Python finds first: coming here means it did not.
        raise JobError(
            f"state '{self.names[0] if self.names else '?'}' of {owner.__name__} is used outside of a "
            "running job.",
            remedy="State is there once the engine runs the step; do not use it in __init__.",
        )


class State(Declared[H], Generic[H]):
    """A state of the key at hand."""

    def __init__(self, expires_after: timedelta | Expiry | None = None) -> None:
        super().__init__()
        self.expiry = expiry_of(expires_after)

    @abstractmethod
    def spec(self, name: str) -> TableSpec:
        """The table that is asked of a backend."""

    @abstractmethod
    def schema(self) -> StateSchema:
        """Kind and types, as if it never expired. Raises JobError for a type whose values cannot be kept."""

    def described(self) -> str:
        """``schema`` with what it expires by, as manifests keep it. Raises JobError likewise."""
        schema = self.schema()
        return state_text(schema if self.expiry is None else replace(schema, expires_by=str(self.expiry.by)))

    @abstractmethod
    def handle(self, tables: Tables, name: str, cell: CurrentKey, step: StepName, expiries: Expiries) -> H:
        """What the author uses while the step runs. A state that expires is added to ``expiries``."""

    def spec_of_values(self, name: str, kind: Any) -> TableSpec:
        """The table of one value for each key, which may expire."""
        spec = TableSpec(name=name, kind=kind)
        return spec if self.expiry is None else stamped(spec)

    def table_of_values(
        self, tables: Tables, name: str, values: ValueType, expiries: Expiries
    ) -> KeyedTable[Any]:
        """The table of ``spec_of_values``, without what is over."""
        table = tables.table(name)
        if self.expiry is None:
            return table
        return ExpiringTable(table, values, expiries.add(name, self.expiry))


class ValueState(State[Value[T]], Generic[T]):
    """Declares one value for each key: ``last_seen_ms = ValueState(int)`` in the body of a class.

    In a method, ``self.last_seen_ms`` is a ``Value`` with ``get``, ``set`` and ``clear``. ``kind`` is a type
    that can be encoded: plain values, lists, dicts, sets and tuples of them, dataclasses, msgspec Structs.

    With ``expires_after`` a value is gone so long after it was set, by processing time; an ``Expiry`` says more.
    """

    def __init__(self, kind: type[T], *, expires_after: timedelta | Expiry | None = None) -> None:
        super().__init__(expires_after)
        self.kind = kind

    def spec(self, name: str) -> TableSpec:
        return self.spec_of_values(name, self.kind)

    def schema(self) -> StateSchema:
        return StateSchema(VALUE, described(self.kind))

    def handle(
        self, tables: Tables, name: str, cell: CurrentKey, step: StepName, expiries: Expiries
    ) -> Value[T]:
        values = value_type(self.kind, step=step, state=name, declared=self.described())
        return Value(self.table_of_values(tables, name, values, expiries), cell)


def declared(function: type, of: type[Any]) -> Mapping[str, Any]:
    """The declarations of one kind, by attribute name: those of a class's bases first, each class's in order.

    Raises JobError when two declarations share a name, or one declaration has two names.
    """
    found: dict[str, Any] = {}
    for cls in reversed(function.__mro__):
        for name, attribute in vars(cls).items():
            if isinstance(attribute, of):
                if name in found:
                    raise JobError(
                        f"{function.__name__} declares the state '{name}' twice: {cls.__name__} declares it "
                        "again, and both would be kept under one name.",
                        remedy=f"Give the state in {cls.__name__} another name.",
                    )
                found[name] = attribute
            elif name in found:
                raise JobError(
                    f"{cls.__name__} hides the state '{name}' of its base behind another attribute.",
                    remedy="Give the attribute another name.",
                )
    for name, state in found.items():
        if len(set(state.names)) > 1:
            raise JobError(
                f"{function.__name__} gives one declaration two names: {', '.join(sorted(state.names))}.",
                remedy=f"Write '{name} = {type(state).__name__}(...)' for each of them.",
            )
    if len(found) > STATES_MAX:
        raise JobError(
            f"{function.__name__} declares {len(found)} states; the limit is {STATES_MAX}.",
            remedy="Put values that change together into one record.",
        )
    return found


def described_by(function: type, of: type[Any]) -> Mapping[str, str]:
    """What a class declares with a description of kinds and types, as manifests keep it.

    Raises JobError, naming the state, for a type whose values cannot be kept.
    """
    described: dict[str, str] = {}
    for name, state in declared(function, of).items():
        try:
            described[name] = state.described()
        except JobError as error:
            raise JobError(
                f"the state '{name}' of {function.__name__}: {error.message}", remedy=error.remedy
            ) from error
    return described


def declared_states(function: type) -> Mapping[str, State[Any]]:
    """The states of the key at hand that a class declares, see ``declared``."""
    return declared(function, State)


def table_specs(function: type) -> tuple[TableSpec, ...]:
    """The tables a step of this class asks of a backend, in the order of ``declared_states``."""
    return tuple(state.spec(name) for name, state in declared_states(function).items())


def described_states(function: type) -> Mapping[str, str]:
    """Their descriptions, see ``described_by``."""
    return described_by(function, State)


def expiries_of(function: type) -> Mapping[str, Expiry]:
    """The states of a class that expire, with when."""
    return {
        name: state.expiry for name, state in declared_states(function).items() if state.expiry is not None
    }


def bind(function: object, tables: Tables, cell: CurrentKey, step: StepName, expiries: Expiries) -> None:
    """Give one instance of a keyed function its handles; its states that expire are added to ``expiries``.

    They go into the instance's own dict, where attribute access finds them before the class's declaration, at
    the price of any other attribute.
    """
    attributes: dict[str, Any] = vars(function)
    for name, state in declared_states(type(function)).items():
        attributes[name] = state.handle(tables, name, cell, step, expiries)
