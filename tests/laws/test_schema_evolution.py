"""Over pairs of types: what the comparison of schemas calls readable is read, without an error and as it was (B7)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from processor.state.evolution import why_unreadable
from processor.state.schema_text import read_state_schema, type_text
from processor.state.type_schema import StateSchema
from processor.state.value_types import described
from tests.laws.random_types import built, changed, shapes


def agree(was: Any, now: Any) -> bool:
    """Whether a value that was read anew says what it said, but for fields that came or went."""
    old, new = _fields(was), _fields(now)
    if old is not None:
        if new is None:  # read as Any
            return isinstance(now, dict | list)
        return all(agree(old[name], new[name]) for name in old.keys() & new.keys() if old[name] != "default")
    if isinstance(was, Enum) or isinstance(now, Enum):
        return getattr(was, "value", was) == getattr(now, "value", now)
    if isinstance(was, dict):
        return was.keys() == now.keys() and all(agree(was[key], now[key]) for key in was)
    if isinstance(was, set):
        return Counter(was) == Counter(now)
    if isinstance(was, list | tuple):
        return len(was) == len(now) and all(map(agree, was, now))
    return was == now and isinstance(was, bool) == isinstance(now, bool)


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, dict) and (not value or any(name.startswith(("f", "new")) for name in value)):
        return value
    return None


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_b7_what_is_called_readable_is_read_as_it_was(data):
    shape = data.draw(shapes())
    later = shape
    for _ in range(data.draw(st.integers(1, 2))):
        later = data.draw(changed(later))
    try:
        (kind, values), (now, _) = built(shape), built(later)
        was_schema, now_schema = described(kind), described(now)
    except Exception:
        return  # no type that can be declared, such as a required field behind one with a default
    for schema in (was_schema, now_schema):
        assert read_state_schema(type_text(schema)).values == schema
    why = why_unreadable(StateSchema("ValueState", was_schema), StateSchema("ValueState", now_schema))
    event("readable" if not why else "refused")
    value = data.draw(values)
    encoded = msgspec.msgpack.encode(value)
    try:
        msgspec.msgpack.decode(encoded, type=kind)
    except msgspec.ValidationError:
        return  # a default that is not of the type
    try:
        read = msgspec.msgpack.decode(encoded, type=now)
    except msgspec.ValidationError:
        assert why, "what msgspec cannot read is refused"
        return
    if not why:
        assert agree(value, read), "and what it reads is what was written"


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(shapes())
def test_b7_a_type_reads_itself(shape):
    try:
        schema = StateSchema("ValueState", described(built(shape)[0]))
    except Exception:
        return
    assert why_unreadable(schema, schema) == ""


class Old(msgspec.Struct):
    a: int
    b: str


class More(msgspec.Struct):
    b: str
    a: float | None
    c: list[Old] = []


class OldTree(msgspec.Struct):
    of: Old
    below: list[OldTree]


class Tree(msgspec.Struct):
    of: More
    below: tuple[Tree, ...] = ()


class BadTree(msgspec.Struct):
    below: list[BadTree]
    of: int


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Bird(msgspec.Struct, tag=True):
    name: str


class Zero(msgspec.Struct, omit_defaults=True):
    n: int = 0


class Five(msgspec.Struct, omit_defaults=True):
    n: int = 5


class Shown(msgspec.Struct):
    n: int = 0


@dataclass
class Plain:
    note: str = "none"


@dataclass
class Required:
    note: str


class Swapped(NamedTuple):
    b: int
    a: int


class Placed(NamedTuple):
    a: int
    b: int


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (int, float),
        (int, int | None),
        (Old, More),
        (list[Old], tuple[More, ...]),
        (dict[str, Old], dict[str, More | None]),
        (OldTree, Tree),
        (Cat | Dog, Cat | Dog | Bird),
        (Literal["a"], Literal["a", "b"]),
        (Literal["a", 1, None], str | int | None),
        (Old, Any),
        (tuple[int, int], list[float]),
        (set[str], list[str]),
        (Zero, Shown),
    ],
)
def test_b7_these_are_readable(was, now):
    assert _why(was, now) == ""


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        (int, str, "int cannot be read as str"),
        (float, int, "float cannot be read as int"),
        (int | None, int, "None cannot be read as int"),
        (More, Old, "a: None cannot be read as int"),
        (OldTree, BadTree, "of: Old(a: int, b: str) cannot be read as int"),
        (list[int], set[int], "list[int] cannot be read as set[int]"),
        (Cat | Dog, Cat, 'type: Literal["Dog"] cannot be read as Literal["Cat"]'),
        (Zero, Five, "n was left out where it is 0, and its default is 5 now"),
        (Plain, Required, 'note was left out where it is "none", and it has no such default now'),
        (Placed, Swapped, "b is where a was"),
        (Any, int, "Any cannot be read as int"),
        (Old, dict[str, int], "cannot be read as dict"),
        (str, Literal["a"], 'str cannot be read as Literal["a"]'),
    ],
)
def test_b7_these_are_refused_with_where_they_differ(was, now, why):
    assert why in _why(was, now)


def _why(was: Any, now: Any) -> str:
    return why_unreadable(
        StateSchema("ValueState", described(was)), StateSchema("ValueState", described(now))
    )
