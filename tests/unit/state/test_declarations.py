"""What an author may declare, and what is refused with the state's name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import msgspec
import pytest

from processor.errors import JobError
from processor.ids import StepName
from processor.state.declarations import (
    STATES_MAX,
    ValueState,
    bind,
    declared_states,
    described_states,
    table_specs,
)
from processor.state.expiry import Expiries
from processor.state.keyed_view import CurrentKey, Value
from processor.state.stored_keys import normalise_key
from processor.state.value_types import describe_type, value_type
from tests.unit.state.fakes import Place, SetTimes, make_backend

T = TypeVar("T")


class Base:
    first = ValueState(int)
    second = ValueState(str)


class Derived(Base):
    third = ValueState(list[int])

    def __init__(self) -> None:
        self.own = 1


@dataclass(frozen=True)
class Click:
    user: str
    at_ms: int
    pages: tuple[str, ...] = ()


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)


class Node(msgspec.Struct, frozen=True):
    name: str
    parent: Node | None = None


class Pair(NamedTuple):
    left: int
    right: str


class Form(TypedDict):
    age: int


class Colour(Enum):
    RED = "r"
    BLUE = "b"


class Box(msgspec.Struct, Generic[T], frozen=True):
    content: T


def test_states_are_collected_in_order_of_definition_inherited_ones_first():
    assert list(declared_states(Derived)) == ["first", "second", "third"]
    assert [(spec.name, spec.kind) for spec in table_specs(Derived)] == [
        ("first", int),
        ("second", str),
        ("third", list[int]),
    ]
    assert described_states(Derived) == {"first": "int", "second": "str", "third": "list[int]"}


def test_a_state_of_two_names_is_refused():
    class Both:
        a = b = ValueState(int)

    with pytest.raises(JobError, match="Both gives one declaration two names: a, b"):
        declared_states(Both)


def test_two_states_of_one_name_are_refused():
    class Again(Base):
        first = ValueState(str)  # type: ignore[assignment]

    with pytest.raises(JobError, match="Again declares the state 'first' twice"):
        declared_states(Again)


def test_hiding_a_state_behind_another_attribute_is_refused():
    class Hidden(Base):
        first = 3  # type: ignore[assignment]

    with pytest.raises(JobError, match="Hidden hides the state 'first'"):
        declared_states(Hidden)


def test_a_common_base_of_two_bases_declares_its_states_once():
    class Left(Base):
        left = ValueState(int)

    class Right(Base):
        right = ValueState(int)

    class Bottom(Left, Right):
        pass

    assert set(declared_states(Bottom)) == {"first", "second", "left", "right"}


def test_more_states_than_the_limit_are_refused():
    names = {f"s{number}": ValueState(int) for number in range(STATES_MAX + 1)}
    with pytest.raises(JobError, match=str(STATES_MAX)):
        declared_states(type("Many", (), dict(names)))


def test_a_type_that_cannot_be_kept_is_refused_with_the_name_of_the_state():
    class Odd:
        handle = ValueState(object)
        socket: Any = None

    class Custom:
        pass

    class Wrong:
        thing = ValueState(Custom)

    with pytest.raises(JobError, match="the state 'thing' of Wrong"):
        described_states(Wrong)


def test_state_used_outside_of_a_running_job_says_so():
    with pytest.raises(JobError, match="state 'first' of Derived is used outside"):
        _ = Derived().first
    assert isinstance(Derived.first, ValueState)


def test_a_bound_instance_reads_and_writes_the_value_of_the_current_key(tmp_path):
    state = make_backend("memory", tmp_path).open(
        Place().request({"first": int, "second": str, "third": list[int]})
    )
    function, cell = Derived(), CurrentKey()
    bind(function, state, cell, StepName("step"), Expiries(SetTimes()))
    assert isinstance(function.first, Value)
    for key in ("a", "b"):
        cell.key = normalise_key(key)
        assert function.first.get() is None
        function.first.set((function.first.get() or 0) + 1)
        function.second.set(key)
    cell.key = "a"
    assert (function.first.get(), function.second.get()) == (1, "a")
    function.first.clear()
    function.first.clear()
    assert function.first.get() is None
    cell.key = "b"
    assert function.first.get() == 1
    other = Derived()
    with pytest.raises(JobError):
        _ = other.first  # another instance is not bound by it


def test_state_without_a_current_key_is_an_error_and_not_an_entry(tmp_path):
    state = make_backend("memory", tmp_path).open(Place().request({"first": int}))
    cell = CurrentKey()
    value: Value[int] = Value(state.table("first"), cell)
    with pytest.raises(JobError, match="no current key"):
        value.set(1)
    cell.key = "a"
    value.set(1)
    cell.leave()
    cell.leave()
    with pytest.raises(JobError, match="on_record and on_timer"):
        value.get()


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        (int, "int"),
        (int | None, "None | int"),
        (str | int, "int | str"),
        (dict[str, list[float]], "dict[str, list[float]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (tuple[int, str], "tuple[int, str]"),
        (frozenset[int], "frozenset[int]"),
        (datetime, "datetime"),
        (Any, "Any"),
        (Literal["b", "a"], 'Literal["a", "b"]'),
        (Colour, 'enum Colour["b", "r"]'),
        (Click, 'Click(user: str, at_ms: int, pages: tuple[str, ...] = "[]" -)'),
        (Node, 'Node(name: str, parent: None | ^Node = "null")'),
        (Pair, "strict array Pair(left: int, right: str)"),
        (Form, "Form(age: int)"),
    ],
)
def test_descriptions_of_types_are_stable(kind, described):
    """They are in manifests: changing one makes old checkpoints look incompatible."""
    assert describe_type(kind) == described


@pytest.mark.parametrize(
    "kind",
    [
        int,
        str,
        bytes,
        float,
        bool,
        datetime,
        Click,
        Node,
        Pair,
        Colour,
        tuple[int, ...],
        frozenset[str],
        int | None,
        Box[int],
    ],
)
def test_what_cannot_be_changed_in_place_is_kept_as_the_object(kind):
    assert value_type(kind, step="s", state="v").shared


@pytest.mark.parametrize(
    "kind",
    [
        list[int],
        dict[str, int],
        set[int],
        Cart,
        Any,
        tuple[list[int], ...],
        Form,
        Box[list[int]],
        Cart | None,
        bytearray,
    ],
)
def test_what_can_be_changed_in_place_is_kept_as_bytes(kind):
    assert not value_type(kind, step="s", state="v").shared


def test_a_generic_record_accepts_its_own_class():
    kind = value_type(Box[int], step="s", state="v")
    assert kind.classes == frozenset({Box})
    kind.verify([Box(3)])


def test_one_moment_survives_encoding():
    kind = value_type(datetime, step="s", state="v")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert kind.decoder.decode(kind.encode(moment)) == moment
