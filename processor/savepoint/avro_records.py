"""Records of an Avro file: their columns, and the way of plain values into them and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from processor.savepoint.avro_type import AvroType, Convert, array_of
from processor.state.type_schema import Atom, Field, Inside, Mapped, Record, TypeSchema, branches, parts


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a record in the file."""

    field: Field
    name: str
    type: AvroType
    default: Any
    """A plain value; _NONE: the field is always there, or its absence is kept."""
    absence: bool
    """An array of one or none."""


_NONE: Final = object()


def column_of(field: Field, name: str, of: AvroType) -> Column:
    if not field.left_out:
        return Column(field, name, of, _NONE, absence=False)
    if field.default and _json_is_plain(field.type):
        default = msgspec.json.decode(field.default)
        if default is not None or Atom("None") in branches(field.type):
            return Column(field, name, of, default, absence=False)
    return Column(field, name, array_of(of), _NONE, absence=True)


def _json_is_plain(schema: TypeSchema) -> bool:
    """Whether the JSON of a value says what msgpack does."""
    match schema:
        case Atom(name="bytes" | "bytearray" | "datetime" | "Any") | Inside():
            return False
        case Mapped(key=key) if key != Atom("str"):
            return False
        case _:
            return all(map(_json_is_plain, parts(schema)))


def as_they_are(record: Record, columns: list[Column]) -> bool:
    return all(
        column.name == column.field.name and not column.field.left_out and column.type.write is None
        for column in columns
    )


def by_name_write(columns: list[Column]) -> Convert:
    def write(found: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for column in columns:
            value = found.get(column.field.name, _NONE)
            if column.absence:
                value = [] if value is _NONE else [value]
            elif value is _NONE:
                value = column.default
                if value is _NONE:
                    raise ValueError(f"the field '{column.field.name}' is missing")
            made[column.name] = value if column.type.write is None else column.type.write(value)
        return made

    return write


def by_name_read(columns: list[Column]) -> Convert:
    def read(found: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for column in columns:
            value = found[column.name]
            value = value if column.type.read is None else column.type.read(value)
            if not column.absence:
                made[column.field.name] = value
            elif value:
                made[column.field.name] = value[0]
        return made

    return read


def by_place_write(columns: list[Column]) -> Convert:
    def write(found: Any) -> dict[str, Any]:
        return {
            column.name: value if column.type.write is None else column.type.write(value)
            for column, value in zip(columns, found, strict=True)
        }

    return write


def by_place_read(columns: list[Column]) -> Convert:
    def read(found: Any) -> list[Any]:
        return [
            found[column.name] if column.type.read is None else column.type.read(found[column.name])
            for column in columns
        ]

    return read
