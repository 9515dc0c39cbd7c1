"""What a manifest says of the type of values: enough to tell, without the author's classes, what may stand in their
encoding.

``declared_schema`` makes one of a type, ``schema_text`` writes it as a line and reads it back, ``evolution`` compares
two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from processor.contracts.clock import TimeDomain

SCALARS = ("None", "bool", "int", "float", "str", "bytes")
"""Types by their own name, each with an encoding of its own."""

TEXTS = ("datetime", "date", "time", "timedelta", "UUID", "Decimal")
"""Written as text; a datetime with a time zone as a moment in UTC."""

ATOMS = (*SCALARS, "bytearray", *TEXTS, "Any")

SEQUENCES = ("list", "set", "frozenset", "collection")
"""Arrays of any length, beside ``tuple[X, ...]``."""

Constant: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Limits:
    """Of an Annotated type, such as ``Annotated[int, Meta(ge=0)]``: name and value, sorted."""

    of: tuple[tuple[str, Constant], ...] = ()


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Atom:
    """A type without parts, one of ATOMS."""

    name: str
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Constants:
    """A Literal or an enum: one of these values, sorted as texts."""

    values: tuple[str | int | None, ...]
    name: str = ""
    """Of the enum; "" for a Literal."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Any number of items of one type."""

    form: str
    """One of SEQUENCES, or ``tuple``."""
    item: TypeSchema
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class FixedTuple:
    """So many items, each of its type."""

    items: tuple[TypeSchema, ...]


@dataclass(frozen=True, slots=True)
class Mapped:
    """A dict."""

    key: TypeSchema
    value: TypeSchema
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record, by its name in the encoding."""

    name: str
    type: TypeSchema
    required: bool = True
    """A reader refuses a record without it."""
    default: str = ""
    """What a reader takes where it is not there, in JSON. "": required, or made by a factory, or nothing at all."""
    left_out: bool = False
    """A writer may leave it out where it is the default; without one, where it is not set."""


@dataclass(frozen=True, slots=True)
class Record:
    """A class with fields. A tag comes first among them, as a Literal."""

    name: str
    """Of its class; the same for no other class in the same schema."""
    fields: tuple[Field, ...]
    by_place: bool = False
    """Encoded as an array of its fields."""
    strict: bool = False
    """A reader refuses fields that it does not know."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A record around this place: it contains itself."""

    name: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union, sorted by text."""

    types: tuple[TypeSchema, ...]


TypeSchema: TypeAlias = Atom | Constants | Sequence | FixedTuple | Mapped | Record | Inside | OneOf


@dataclass(frozen=True, slots=True)
class StateSchema:
    """Of one declared state: its kind, and the types in it."""

    kind: str
    values: TypeSchema
    """Of a list its items, of a map the values of its entries."""
    keys: TypeSchema | None = None
    """Of a map the keys of its entries."""
    expires_by: str = ""
    """The time by which it expires, and which stands beside every value, item or entry; "": it does not. How long it
    lasts is left out: that may change from one start to the next, for what is kept is the time of the last touch."""


VALUE, LIST, MAP, REDUCING, AGGREGATING = (
    "ValueState",
    "ListState",
    "MapState",
    "ReducingState",
    "AggregatingState",
)
SPLIT_LIST, UNION_LIST, BROADCAST = "SplitListState", "UnionListState", "BroadcastState"
"""Of subtasks, and of no key."""
WITH_KEYS = (MAP, BROADCAST)
EXPIRES_BY = tuple(str(domain) for domain in TimeDomain)
KINDS = (VALUE, LIST, MAP, REDUCING, AGGREGATING, SPLIT_LIST, UNION_LIST, BROADCAST)


def branches(schema: TypeSchema) -> tuple[TypeSchema, ...]:
    """The types of a union; any other is its own."""
    return schema.types if isinstance(schema, OneOf) else (schema,)


def parts(schema: TypeSchema) -> Iterator[TypeSchema]:
    """The types right inside a type."""
    match schema:
        case OneOf(types=types) | FixedTuple(items=types):
            yield from types
        case Sequence(item=item):
            yield item
        case Mapped(key=key, value=value):
            yield from (key, value)
        case Record(fields=fields):
            yield from (field.type for field in fields)
        case _:
            return
