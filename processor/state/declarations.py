"""What an author declares: state as attributes of a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar, overload

from processor.contracts.state_store import TableSpec
from processor.errors import JobError
from processor.state.keyed_view import Value
from processor.state.value_types import describe_type

T = TypeVar("T")

STATES_MAX = 200
"""States one step may declare; a table's number is one byte of every key in RocksDB."""


class ValueState(Generic[T]):
    """Declares one value for each key: ``last_seen_ms = ValueState(int)`` in the body of a class.

    In a method, ``self.last_seen_ms`` is a ``Value`` with ``get``, ``set`` and ``clear``. ``kind`` is a type
    that can be encoded: plain values, lists, dicts, sets and tuples of them, dataclasses, msgspec Structs.
    The state hangs on the attribute's name: renaming it begins a new state.
    """

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind
        self.names: list[str] = []
        """The attributes it is assigned to; more than one is refused by ``declared_states``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.names.append(name)

    @overload
    def __get__(self, obj: None, owner: type) -> Self: ...

    @overload
    def __get__(self, obj: object, owner: type) -> Value[T]: ...

    def __get__(self, obj: object | None, owner: type) -> Self | Value[T]:
        if obj is None:
            return self
        # The engine puts a Value into the instance, which Python finds first: coming here means it did not.
        raise JobError(
            f"state '{self.names[0] if self.names else '?'}' of {owner.__name__} is used outside of a "
            "running job.",
            remedy="State is there once the engine runs the step; do not use it in __init__.",
        )


def declared_states(function: type) -> Mapping[str, ValueState[Any]]:
    """The states of a class by attribute name: those of its bases first, each class's in order of definition.

    Raises JobError when two declarations share a name, or one declaration has two names.
    """
    found: dict[str, ValueState[Any]] = {}
    for cls in reversed(function.__mro__):
        for name, attribute in vars(cls).items():
            if isinstance(attribute, ValueState):
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
                remedy=f"Write '{name} = ValueState(...)' for each of them.",
            )
    if len(found) > STATES_MAX:
        raise JobError(
            f"{function.__name__} declares {len(found)} states; the limit is {STATES_MAX}.",
            remedy="Put values that change together into one record.",
        )
    return found


def table_specs(function: type) -> tuple[TableSpec, ...]:
    """The tables a step of this class asks of a backend, in the order of ``declared_states``."""
    return tuple(TableSpec(name=name, kind=state.kind) for name, state in declared_states(function).items())


def described_states(function: type) -> Mapping[str, str]:
    """The states of a class with a description of their types, as manifests keep them.

    Raises JobError, naming the state, for a type whose values cannot be kept.
    """
    described: dict[str, str] = {}
    for name, state in declared_states(function).items():
        try:
            described[name] = describe_type(state.kind)
        except JobError as error:
            raise JobError(
                f"the state '{name}' of {function.__name__}: {error.message}", remedy=error.remedy
            ) from error
    return described
