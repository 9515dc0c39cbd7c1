"""Whether values that were kept under one schema can be read under another (B7).

Read are: a field with a default that is new, a field that is gone, another order of fields, another name of a
class, a type that takes all that the old one did (``int`` in ``float``, ``X`` in ``X | None``, a list as a tuple of
any length, a constant in its type). Whatever needs a look at the values is refused: what is said here holds for all
there can be.
"""

from __future__ import annotations

from collections.abc import Iterator

from processor.state.schema_text import type_text
from processor.state.type_schema import (
    Atom,
    Constants,
    Field,
    FixedTuple,
    Inside,
    Limits,
    Mapped,
    OneOf,
    Record,
    Sequence,
    StateSchema,
    TypeSchema,
    branches,
    parts,
)

_BYTES = frozenset({"bytes", "bytearray"})
_ORDERED = frozenset({"list", "tuple", "collection"})
_DISTINCT = frozenset({"set", "frozenset"})


def why_unreadable(was: StateSchema, now: StateSchema) -> str:
    """Why what a state kept cannot be read as it is declared now; "" when all of it can be."""
    if was.kind != now.kind:
        return f"{was.kind} is another kind of state than {now.kind}"
    if was.expires_by != now.expires_by:
        return f"what expires by {was.expires_by or 'nothing'} cannot expire by {now.expires_by or 'nothing'}"
    if was.keys is not None and was.keys != now.keys:
        return "the keys of its entries are of another type"
    return _Comparison(was.values, now.values).why(was.values, now.values, "").lstrip(".")


class _Comparison:
    """Of two types, which may contain themselves. ``path`` leads from the value to where it differs."""

    def __init__(self, was: TypeSchema, now: TypeSchema) -> None:
        self._was = {record.name: record for record in _records(was)}
        self._now = {record.name: record for record in _records(now)}
        self._assumed: set[tuple[str, str]] = set()
        """Records being compared: inside themselves they are taken to fit."""

    def why(self, was: TypeSchema, now: TypeSchema, path: str) -> str:
        readers = tuple(_split(now))
        if Atom("Any") in readers:
            return ""
        for one in _split(was):
            why = self._one_of(one, readers, path)
            if why:
                return why
        return ""

    def _one_of(self, was: TypeSchema, readers: tuple[TypeSchema, ...], path: str) -> str:
        if isinstance(was, Inside):
            was = self._was[was.name]
        readers = tuple(self._now[one.name] if isinstance(one, Inside) else one for one in readers)
        wire = _wire(was)
        found = [one for one in readers if _wire(one) == wire]
        if wire == "float" and any(_wire(one) == "int" and one != Atom("int") for one in readers):
            return _differs(
                path, was, readers
            )  # a float may be kept as an int, which not every int type takes
        if wire == "int" and not found:
            found = [one for one in readers if _wire(one) == "float"]
        if len(found) > 1:  # records of a union are told apart by their tag
            found = [one for one in found if _tag(one) == _tag(was) is not None]
        if len(found) != 1:
            return _differs(path, was, readers)
        return self._pair(was, found[0], path)

    def _pair(self, was: TypeSchema, now: TypeSchema, path: str) -> str:
        why: str | None = None
        match was, now:
            case Atom(), Atom():
                same = was.name == now.name or (was.name == "int" and now.name == "float")
                if (same or {was.name, now.name} <= _BYTES) and _within(was.limits, now.limits):
                    why = ""
            case Constants(), Constants():
                why = "" if set(was.values) <= set(now.values) else None
            case Constants(), Atom(name="str" | "int" | "float"):
                why = "" if not now.limits.of else None
            case Sequence(), Sequence():
                if was.form in _DISTINCT or now.form in _ORDERED:
                    why = self._items(was, now, path) if _within(was.limits, now.limits) else None
            case FixedTuple(), FixedTuple():
                if len(was.items) == len(now.items):
                    pairs = enumerate(zip(was.items, now.items, strict=True))
                    why = _first(self.why(a, b, f"{path}[{at}]") for at, (a, b) in pairs)
            case FixedTuple(), Sequence():
                if now.form in _ORDERED and not now.limits.of:
                    why = _first(self.why(item, now.item, f"{path}[]") for item in was.items)
            case Mapped(), Mapped():
                if _within(was.limits, now.limits):
                    why = self._hashed(was.key, now.key, f"{path} keys") or self.why(
                        was.value, now.value, f"{path}[]"
                    )
            case Record(), Record():
                why = self._records(was, now, path)
            case _:
                pass
        return _differs(path, was, (now,)) if why is None else why

    def _items(self, was: Sequence, now: Sequence, path: str) -> str:
        compare = self._hashed if now.form in _DISTINCT else self.why
        return compare(was.item, now.item, f"{path}[]")

    def _hashed(self, was: TypeSchema, now: TypeSchema, path: str) -> str:
        """Of items of a set and keys: whether another type can be hashed too is not looked into."""
        plain = all(isinstance(one, Atom | Constants) for one in (*branches(was), *branches(now)))
        if was != now and not plain:
            return _differs(path, was, (now,))
        return self.why(was, now, path)

    def _records(self, was: Record, now: Record, path: str) -> str | None:
        if was.by_place != now.by_place:
            return None
        pair = was.name, now.name
        if pair in self._assumed:
            return ""
        self._assumed.add(pair)
        try:
            return self._by_place(was, now, path) if was.by_place else self._by_name(was, now, path)
        finally:
            self._assumed.remove(pair)

    def _by_name(self, was: Record, now: Record, path: str) -> str:
        before = {field.name: field for field in was.fields}
        for field in now.fields:
            old = before.pop(field.name, None)
            if old is None:
                if field.required:
                    return f"{path}.{field.name} was not there and has no default"
                continue
            why = _left_out(old, field, path) or self.why(old.type, field.type, f"{path}.{field.name}")
            if why:
                return why
        if before and now.strict:
            return f"{path}.{next(iter(before))} is not known any more, and {now.name} forbids unknown fields"
        return ""

    def _by_place(self, was: Record, now: Record, path: str) -> str:
        for old, field in zip(was.fields, now.fields, strict=False):
            if old.name != field.name:
                return (
                    f"{path}.{field.name} is where {old.name} was, and {now.name} tells fields by their place"
                )
            why = self.why(old.type, field.type, f"{path}.{field.name}")
            if why:
                return why
        for field in now.fields[len(was.fields) :]:
            if field.required:
                return f"{path}.{field.name} was not there and has no default"
        for old in was.fields[len(now.fields) :]:
            if now.strict:
                return f"{path}.{old.name} is not known any more, and {now.name} takes no more fields than it has"
        return ""


def _left_out(was: Field, now: Field, path: str) -> str:
    """A writer that leaves a field out relies on the reader to know what that means."""
    if not was.left_out or (was.default and was.default == now.default):
        return ""
    if was.default:
        is_now = f"its default is {now.default} now" if now.default else "it has no such default now"
        return f"{path}.{now.name} was left out where it is {was.default}, and {is_now}"
    return f"{path}.{now.name} may not be there, and is required now" if now.required else ""


def _within(was: Limits, now: Limits) -> bool:
    return not now.of or was == now


def _split(schema: TypeSchema) -> Iterator[TypeSchema]:
    """The types of a union, and constants by their class: each with one kind of encoding."""
    for one in branches(schema):
        if isinstance(one, Constants):
            for kind in (type(None), int, str):
                values = tuple(value for value in one.values if type(value) is kind)
                if values:
                    yield Atom("None") if kind is type(None) else Constants(values, one.name)
        else:
            yield one


def _wire(schema: TypeSchema) -> str:
    """Which encoding it has: a union has one type of each, but for records with tags."""
    match schema:
        case Atom(name="None" | "bool" | "int" | "float" as name):
            return name
        case Atom(name="Any"):
            return "anything"
        case Constants(values=values):
            return "int" if type(values[0]) is int else "text"
        case Sequence() | FixedTuple() | Record(by_place=True):
            return "array"
        case Mapped() | Record():
            return "map"
        case _:
            return "text"


def _tag(schema: TypeSchema) -> tuple[str, TypeSchema] | None:
    if isinstance(schema, Record) and schema.fields and isinstance(schema.fields[0].type, Constants):
        return schema.fields[0].name, schema.fields[0].type
    return None


def _records(schema: TypeSchema) -> Iterator[Record]:
    if isinstance(schema, Record):
        yield schema
    for part in parts(schema):
        yield from _records(part)


def _first(whys: Iterator[str]) -> str:
    return next((why for why in whys if why), "")


def _differs(path: str, was: TypeSchema, now: tuple[TypeSchema, ...]) -> str:
    reader = type_text(now[0] if len(now) == 1 else OneOf(now))
    return f"{path.lstrip('.') + ': ' if path else ''}{type_text(was)} cannot be read as {reader}"
