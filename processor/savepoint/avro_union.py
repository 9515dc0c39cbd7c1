"""Which type of a union a value has, on its way into an Avro file and out of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, cast

from processor.savepoint.avro_type import NAMESPACE, AvroType
from processor.state.type_schema import Atom, Constants, FixedTuple, Mapped, Record, Sequence, TypeSchema

_NONE: Final = object()


@dataclass(frozen=True, slots=True)
class _Branch:
    """One type of a union."""

    type: AvroType
    record: str
    """Its name, if it is one in the file."""
    tag: tuple[int | str, Any] | None
    """Of a record: where its tag stands in the plain value, and the tag."""


class Union:
    """Chooses among types, by what a value is and by tags."""

    def __init__(self) -> None:
        self._plain: dict[str, list[_Branch]] = {}
        """By what a plain value is."""
        self._datum: dict[str, _Branch] = {}
        """By what comes out of a file, but for records."""
        self._records: dict[str, _Branch] = {}

    def add(self, schema: TypeSchema, avro: Any, made: AvroType) -> None:
        branch = _Branch(made, _record_name(avro), _tag(schema))
        plain = _wire(schema, avro)
        self._plain.setdefault(plain, []).append(branch)
        if branch.record:
            self._records[branch.record] = branch
        else:
            self._datum[plain] = branch

    def as_it_is(self) -> bool:
        """Whether Avro chooses by itself, and nothing is converted."""
        converts = (branch.type.write for some in self._plain.values() for branch in some)
        return len(self._records) < 2 and all(convert is None for convert in converts)

    def write(self, value: Any) -> Any:
        wire = _WIRE_OF[type(value)]
        some = self._plain.get(wire) or (self._plain["float"] if wire == "int" else [])
        chosen = some[0]
        if len(some) > 1:
            tagged = (one for one in some if one.tag and _at(value, one.tag[0]) == one.tag[1])
            chosen = next(tagged, None) or _no_tag(value)
        made = value if chosen.type.write is None else chosen.type.write(value)
        return (chosen.record, made) if chosen.record else made

    def read(self, value: Any) -> Any:
        """Records of a union of several come with their name."""
        kind = type(value)
        if kind is tuple:
            chosen, value = self._records[value[0]], value[1]
        elif kind is dict and self._records:
            (chosen,) = self._records.values()
        else:
            chosen = self._datum[_WIRE_OF[kind]]
        return value if chosen.type.read is None else chosen.type.read(value)


_WIRE_OF: Final[dict[type, str]] = {
    type(None): "None",
    bool: "bool",
    int: "int",
    float: "float",
    str: "text",
    bytes: "text",
    datetime: "text",
    list: "array",
    tuple: "array",
    dict: "map",
    Decimal: "int",
}


def _wire(schema: TypeSchema, avro: Any) -> str:
    """Which plain values go there."""
    match schema:
        case Atom(name="None" | "bool" | "int" | "float" as name):
            return name
        case Constants():
            return {"null": "None", "long": "int"}.get(avro, "text")
        case Sequence() | FixedTuple() | Record(by_place=True):
            return "array"
        case Mapped() | Record():
            return "map"
        case _:
            return "text"


def _tag(schema: TypeSchema) -> tuple[int | str, Any] | None:
    if isinstance(schema, Record) and schema.fields and isinstance(schema.fields[0].type, Constants):
        return 0 if schema.by_place else schema.fields[0].name, schema.fields[0].type.values[0]
    return None


def _no_tag(value: Any) -> _Branch:
    raise ValueError(f"{value!r:.80} has none of the tags")


def _at(value: Any, place: int | str) -> Any:
    try:
        return value[place]
    except (KeyError, IndexError):
        return _NONE


def _record_name(avro: Any) -> str:
    if isinstance(avro, dict):
        return cast(str, avro["name"]) if avro["type"] == "record" else ""
    return avro if isinstance(avro, str) and avro.startswith(f"{NAMESPACE}.") else ""
