"""Types that an author may declare for values of state, drawn at random: built, with values, and changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
from hypothesis import strategies as st

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
