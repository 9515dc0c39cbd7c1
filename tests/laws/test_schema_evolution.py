"""Over pairs of types: what the comparison of schemas calls readable is read, without an error and as it was (B7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from processor.state.evolution import why_unreadable
from processor.state.schema_text import read_state_schema, type_text
from processor.state.type_schema import StateSchema
from processor.state.value_types import described

RECORDS = ("struct", "array", "strict", "sparse", "tagged", "dataclass", "named", "typed")
ATOMS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (int, st.integers(-(2**40), 2**40)),
    "float": (float, st.floats(allow_nan=False) | st.integers(-5, 5)),
    "str": (str, st.sampled_from(["", "a", "b", "c"])),
    "bool": (bool, st.booleans()),
    "bytes": (bytes, st.binary(max_size=2)),
    "few": (Literal["a", "b"], st.sampled_from(["a", "b"])),
    "numbers": (Literal[1, 2], st.sampled_from([1, 2])),
    "enum": (Enum("Colour", {"A": "a", "C": "c"}), st.just(None)),
    "any": (Any, st.sampled_from([None, 1, "a", [1], {"k": 1}])),
}


@dataclass(frozen=True)
class Shape:
    """A type to be built: its form, and the shapes inside; of a record each with its name, and True for a default."""

    form: str
    inner: tuple[Shape, ...] = ()
    names: tuple[tuple[str, bool], ...] = ()
    called: str = "R"


@st.composite
def shapes(draw: Any, depth: int = 2) -> Shape:
    forms = [*ATOMS] if depth == 0 else [*ATOMS, "maybe", "list", "tuple", "pair", "set", "dict", *RECORDS]
    form = draw(st.sampled_from(forms))
    if form in ATOMS:
        return Shape(form)
    if form == "set":
        return Shape(form, (Shape(draw(st.sampled_from(["int", "str", "few"]))),))
    count = 2 if form == "pair" else draw(st.integers(1, 3)) if form in RECORDS else 1
    inner = tuple(draw(shapes(depth - 1)) for _ in range(count))
    if form not in RECORDS:
        return Shape(form, inner)
    # Fields with a default come last: by place nothing else is possible.
    defaults = sorted(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    return Shape(form, inner, tuple((f"f{at}", default) for at, default in enumerate(defaults)))


@st.composite
def changed(draw: Any, shape: Shape) -> Shape:
    """The same type some time later."""
    acts: list[Callable[[], Shape]] = [lambda: Shape("maybe", (shape,)), lambda: draw(shapes(1))]
    if shape.form == "int":
        acts.append(lambda: Shape("float"))
    if shape.form in ("few", "enum"):
        acts.append(lambda: Shape("str"))
    if shape.form in ("list", "tuple", "set"):
        acts.append(lambda: Shape(draw(st.sampled_from(["list", "tuple", "set"])), shape.inner))
    if shape.form in RECORDS:
        acts += [
            lambda: Shape(shape.form, shape.inner, shape.names, "Renamed"),
            lambda: Shape(draw(st.sampled_from(RECORDS)), shape.inner, shape.names, shape.called),
            lambda: Shape(shape.form, shape.inner[1:], shape.names[1:], shape.called),
            lambda: Shape(
                shape.form, (*shape.inner, draw(shapes(0))), (*shape.names, ("new", draw(st.booleans())))
            ),
            lambda: _reordered(draw, shape),
        ]
    if shape.inner:
        acts += [lambda: _inside(draw, shape)] * 4
    return draw(st.sampled_from(acts))()


def _inside(draw: Any, shape: Shape) -> Shape:
    at = draw(st.integers(0, len(shape.inner) - 1))
    inner = (*shape.inner[:at], draw(changed(shape.inner[at])), *shape.inner[at + 1 :])
    return Shape(shape.form, inner, shape.names, shape.called)


def _reordered(draw: Any, shape: Shape) -> Shape:
    order = draw(st.permutations(range(len(shape.inner))))
    inner, names = tuple(shape.inner[at] for at in order), tuple(shape.names[at] for at in order)
    return Shape(shape.form, inner, names, shape.called)


def built(shape: Shape) -> tuple[Any, st.SearchStrategy[Any]]:
    """The type, and values of it."""
    if shape.form in ATOMS:
        kind, values = ATOMS[shape.form]
        return kind, st.sampled_from(list(kind)) if shape.form == "enum" else values
    inner = [built(each) for each in shape.inner]
    kinds, of = [kind for kind, _ in inner], [values for _, values in inner]
    match shape.form:
        case "maybe":
            return kinds[0] | None, st.none() | of[0]
        case "list":
            return list[kinds[0]], st.lists(of[0], max_size=3)  # type: ignore[valid-type]
        case "tuple":
            return tuple[kinds[0], ...], st.lists(of[0], max_size=3).map(tuple)  # type: ignore[valid-type]
        case "pair":
            return tuple[kinds[0], kinds[1]], st.tuples(*of)  # type: ignore[valid-type]
        case "set":
            return set[kinds[0]], st.sets(of[0], max_size=3)  # type: ignore[valid-type]
        case "dict":
            return dict[str, kinds[0]], st.dictionaries(st.sampled_from(["k1", "k2"]), of[0])  # type: ignore[valid-type]
        case _:
            kind = _record(shape, kinds)
            some = {name: values for (name, _), values in zip(shape.names, of, strict=True)}
            if shape.form == "typed":
                may = {name: some.pop(name) for name, default in shape.names if default}
                return kind, st.fixed_dictionaries(some, optional=may)
            return kind, st.builds(kind, **some)


def _record(shape: Shape, inner: list[Any]) -> Any:
    # A default must be of the type: whether it is is the author's business, and msgspec does not look.
    named = [(name, kind, default) for (name, default), kind in zip(shape.names, inner, strict=True)]
    if shape.form == "named":
        made: Any = NamedTuple(shape.called, [(name, kind) for name, kind, _ in named])  # type: ignore[misc]
        made.__new__.__defaults__ = tuple("default" for _, _, default in named if default)
        made._field_defaults = {name: "default" for name, _, default in named if default}
        return made
    if shape.form == "typed":
        hints = {name: NotRequired[kind] if default else kind for name, kind, default in named}
        return TypedDict(shape.called, hints)  # type: ignore[operator]
    if shape.form == "dataclass":
        columns = [
            (
                name,
                kind,
                dataclass_field(kw_only=True, default="default")
                if default
                else dataclass_field(kw_only=True),
            )
            for name, kind, default in named
        ]
        return make_dataclass(shape.called, columns)
    options: dict[str, Any] = {
        "array": {"array_like": True},
        "strict": {"forbid_unknown_fields": True},
        "sparse": {"omit_defaults": True},
        "tagged": {"tag": True},
    }.get(shape.form, {})
    defined = [(name, kind, "default") if default else (name, kind) for name, kind, default in named]
    return msgspec.defstruct(shape.called, defined, kw_only=True, **options)


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
