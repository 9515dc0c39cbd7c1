"""Schemas of states as manifests keep them: read back as they were written, and refused when nobody wrote them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, IntEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from processor import ListState, MapState, ReducingState, ValueState
from processor.contracts.clock import TimeDomain
from processor.errors import DamagedFile
from processor.state.expiry import Expiry
from processor.state.schema_text import SCHEMA_DEPTH_MAX, read_state_schema, state_text, type_text
from processor.state.type_schema import StateSchema
from processor.state.value_types import described

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    ODD = 'o"d]d'


class Size(IntEnum):
    SMALL = -1
    LARGE = 2


class Strict(Struct, forbid_unknown_fields=True):
    at: datetime


class Point(Struct, array_like=True, tag="point"):
    x: int
    y: int = 0


class Circle(Struct, tag_field="is", tag=7, rename="kebab"):
    outer_radius: float


@dataclass
class Plain:
    """One that was read without a field does not write it."""

    at: datetime = datetime(2026, 1, 1)
    size: Size = Size.LARGE
    made: list[int] = field(default_factory=lambda: [1])


@dataclass(frozen=True, slots=True)
class Slotted:
    note: str = "-"


class Sparse(Struct, omit_defaults=True):
    count: int = 0
    names: list[str] = msgspec.field(default_factory=list)
    maybe: str | UnsetType = UNSET


class Pair(NamedTuple):
    left: int
    right: str = ""


class Form(TypedDict):
    name: str
    age: NotRequired[int]


@dataclass
class Tree:
    value: int
    below: list[Tree] = field(default_factory=list)


class Box(Struct, Generic[T]):
    inside: T


class enum(Struct):  # noqa: N801  a name that means something in the text
    array: int


Odd = msgspec.defstruct("what is this?", [("a", int), ("f", int)], rename={"a": "a, (field"})

TYPES = [
    (Annotated[int, Meta(ge=0, lt=2**62)], "int{ge=0, lt=4611686018427387904}"),
    (Annotated[str, Meta(pattern='a"+', max_length=3)], 'str{max_length=3, pattern="a\\"+"}'),
    (Annotated[datetime, Meta(tz=True)], "datetime{tz=True}"),
    (Annotated[float, Meta(gt=-1.5e300)], "float{gt=-1.5e+300}"),
    (Annotated[list[int], Meta(max_length=2)], "list[int]{max_length=2}"),
    (Colour, 'enum Colour["o\\"d]d", "red"]'),
    (Size | None, "None | enum Size[-1, 2]"),
    (Literal[1, "a", None], '"'),
    (Strict, "strict Strict(at: datetime)"),
    (Point | int, 'array Point(type: Literal["point"], x: int, y: int = "0") | int'),
    (Circle, 'Circle(is: Literal[7] =, "outer-radius": float)'),
    (Sparse, 'Sparse(count: int = "0" -, names: list[str] = "[]" -, maybe: str = -)'),
    (Pair, 'strict array Pair(left: int, right: str = "\\"\\"")'),
    (
        Plain,
        '(at: datetime = "\\"2026-01-01T00:00:00\\"" -, size: enum Size[-1, 2] = "2" -, made: list[int] =)',
    ),
    (Slotted, 'Slotted(note: str = "\\"-\\"")'),
    (Form, "Form(age: int = -, name: str)"),
    (Tree, 'Tree(value: int, below: list[^Tree] = "[]")'),
    (tuple[Box[int], Box[str], Box[int]], "tuple[Box(inside: int), Box_2(inside: str), Box(inside: int)]"),
    (tuple[()], "tuple[]"),
    (tuple[int, ...], "tuple[int, ...]"),
    (enum, "enum(array: int)"),
    (Odd, '"what is this?"("a, (field": int, f: int)'),
    (dict[UUID, Any], "dict[UUID, Any]"),
    (Collection[int], "list[int]"),
    (frozenset[bytes] | bytearray, "bytearray | frozenset[bytes]"),
]


@pytest.mark.parametrize(("kind", "text"), TYPES)
def test_b7_a_schema_is_read_back_as_it_was_written(kind, text):
    schema = described(kind)
    assert text in type_text(schema)
    assert read_state_schema(type_text(schema)) == StateSchema("ValueState", schema)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (ValueState(int), "int"),
        (ListState(Pair), 'ListState[strict array Pair(left: int, right: str = "\\"\\"")]'),
        (MapState(tuple[str, int], int), "MapState[tuple[str, int], int]"),
        (ReducingState(int, max), "ReducingState[int]"),
        (ValueState(int, expires_after=Expiry(timedelta(1), TimeDomain.EVENT)), "int, expires by event time"),
        (MapState(str, int, expires_after=timedelta(1)), "MapState[str, int], expires by processing time"),
    ],
)
def test_b7_a_state_says_its_kind(state, text):
    assert state.described() == text
    assert state_text(read_state_schema(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "integer",
        "list[int",
        "list[int]]",
        "Click(user str)",
        "Click(user: str = 5)",
        'Click(user: str "5")',
        "MapState[int]",
        "int{ge=}",
        'Literal["a]',
        "int | ",
        "^",
        "dict[int]",
        "int, expires by lunar time",
        "list[" * (SCHEMA_DEPTH_MAX + 1) + "int" + "]" * (SCHEMA_DEPTH_MAX + 1),
        "x" * 1_000_001,
    ],
)
def test_b7_what_nobody_wrote_is_refused(text):
    with pytest.raises(DamagedFile, match="cannot be read"):
        read_state_schema(text)


@given(st.text(alphabet='aint|[](){},.:="^- \\Lisrecdoyk0', max_size=30))
def test_b7_any_text_is_a_schema_or_refused(text):
    try:
        schema = read_state_schema(text)
    except DamagedFile:
        return
    assert read_state_schema(state_text(schema)) == schema
