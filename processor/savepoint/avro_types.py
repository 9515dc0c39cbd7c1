"""The Avro type of a type of values, and the way of a value into it and back.

What goes in and comes out is a *plain* value: what msgpack has for it. Most of them Avro has as they are. The others:

    int beyond 64 bits signed   ``fixed`` of 9 bytes with the logical type ``decimal``: all ints of that file
    datetime                    text in ISO 8601, in UTC if it has a time zone
    date, time, timedelta, UUID, Decimal, enum, Literal     what they are in msgpack: text, or a long
    set, tuple of any length    array
    tuple of so many items      record with ``item_1``, ``item_2``, ...
    record encoded as an array  record with its fields
    dict whose keys are no text array of records with ``key`` and ``value``
    field that may not be there array of one or none
    Any                         bytes: msgpack
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, cast

import msgspec

from processor.savepoint.avro_records import (
    Column,
    as_they_are,
    by_name_read,
    by_name_write,
    by_place_read,
    by_place_write,
    column_of,
)
from processor.savepoint.avro_type import NAMESPACE, AvroType, Convert, array_of, each_value
from processor.savepoint.avro_union import Union
from processor.state.type_schema import (
    Atom,
    Constants,
    Field,
    FixedTuple,
    Inside,
    Mapped,
    OneOf,
    Record,
    Sequence,
    TypeSchema,
    branches,
)

WIDE_INT: Final = {
    "type": "fixed",
    "name": "processor.Integer",
    "size": 9,
    "logicalType": "decimal",
    "precision": 20,
    "scale": 0,
}

_ATOMS: Final[dict[str, Any]] = {
    "None": "null",
    "bool": "boolean",
    "int": "long",
    "float": "double",
    "str": "string",
    "bytes": "bytes",
    "bytearray": "bytes",
}
_NO_NAME = re.compile(r"[^A-Za-z0-9_]", re.ASCII)
_UTC = "+00:00"


def avro_type(schema: TypeSchema, *, wide: bool) -> AvroType:
    """``wide``: for ints of more than 64 bits signed."""
    return _Types(wide).of(schema)


class _Types:
    """Types of one file, whose records have names of their own."""

    def __init__(self, wide: bool) -> None:
        self._wide = wide
        self._names: dict[str, str] = {}
        """Of records, by those in the schema."""
        self._used: set[str] = set()
        self._made: dict[str, AvroType] = {}
        self._records: dict[str, Record] = {}

    def of(self, schema: TypeSchema) -> AvroType:
        match schema:
            case Atom():
                return self._atom(schema)
            case Constants(values=values):
                kinds = {type(value) for value in values}
                named = [_ATOMS[name] for name, kind in (("int", int), ("str", str)) if kind in kinds]
                some = ["null", *named] if type(None) in kinds else named
                return AvroType(some if len(some) > 1 else some[0])
            case Sequence(item=item):
                return array_of(self.of(item))
            case FixedTuple(items=items):
                fields = [Field(f"item_{at}", item) for at, item in enumerate(items, 1)]
                return self._record(Record(self._free("tuple"), tuple(fields), by_place=True))
            case Mapped():
                return self._by_text(schema) or self._pairs(schema)
            case Record(name=name):
                if name in self._names:  # it stands in the schema already
                    made = self._made[name]
                    return AvroType(self._names[name], made.write, made.read)
                return self._record(schema)
            case Inside(name=name):
                return AvroType(self._names[name], self._later(name, "write"), self._later(name, "read"))
            case OneOf():
                return self._union(schema)

    def _atom(self, schema: Atom) -> AvroType:
        if schema.name == "int" and self._wide:
            name = cast(str, WIDE_INT["name"])
            known, self._used = name in self._used, self._used | {name}
            return AvroType(name if known else WIDE_INT, Decimal, int)
        if schema.name == "Any":
            return AvroType(
                {"type": "bytes", "holds": "msgpack"}, msgspec.msgpack.encode, msgspec.msgpack.decode
            )
        if schema.name == "datetime":
            return AvroType({"type": "string", "holds": "datetime"}, _moment_text, _moment)
        return AvroType(_ATOMS.get(schema.name) or {"type": "string", "holds": schema.name})

    def _by_text(self, schema: Mapped) -> AvroType | None:
        """A map, if all keys are text."""
        if not all(map(_is_text, branches(schema.key))):
            return None
        value = self.of(schema.value)
        return AvroType({"type": "map", "values": value.schema}, *each_value(value))

    def _pairs(self, schema: Mapped) -> AvroType:
        # In the order in which they stand: a name is defined where it comes first.
        name = self._full(self._free("pair"))
        key, value = self.of(schema.key), self.of(schema.value)
        fields = [{"name": "key", "type": key.schema}, {"name": "value", "type": value.schema}]
        write_key, write = key.write or _same, value.write or _same
        read_key, read = key.read or _same, value.read or _same
        return AvroType(
            {"type": "array", "items": {"type": "record", "name": name, "fields": fields}},
            lambda found: [{"key": write_key(k), "value": write(v)} for k, v in found.items()],
            lambda found: {_hashable(read_key(each["key"])): read(each["value"]) for each in found},
        )

    def _in_union(self, schema: Mapped, records: bool) -> AvroType:
        """A union has one array, and a map is not told from a record when it is read: else it is a record itself."""
        made = None if records else self._by_text(schema)
        if made is not None:
            return made
        name = self._full(self._free("dict"))
        pairs = self._pairs(schema)
        write, read = pairs.write or _same, pairs.read or _same
        return AvroType(
            {"type": "record", "name": name, "fields": [{"name": "entries", "type": pairs.schema}]},
            lambda found: {"entries": write(found)},
            lambda found: read(found["entries"]),
        )

    def _record(self, record: Record) -> AvroType:
        self._records[record.name] = record
        self._names[record.name] = full = self._full(self._free(_NO_NAME.sub("_", record.name)))
        used: set[str] = set()
        columns: list[Column] = []
        for field in record.fields:
            name = _unique(_NO_NAME.sub("_", field.name), used)
            used.add(name)
            columns.append(column_of(field, name, self.of(field.type)))
        # What an Avro tool shows is said in the schema, so that nobody has to guess the name in the encoding.
        fields = [
            {"name": column.name, "type": column.type.schema}
            | ({"doc": column.field.name} if column.name != column.field.name else {})
            for column in columns
        ]
        schema = {"type": "record", "name": full, "fields": fields}
        if not record.by_place and as_they_are(record, columns):
            made = AvroType(schema)
        elif record.by_place:
            made = AvroType(schema, by_place_write(columns), by_place_read(columns))
        else:
            made = AvroType(schema, by_name_write(columns), by_name_read(columns))
        self._made[record.name] = made
        return made

    def _union(self, schema: OneOf) -> AvroType:
        if Atom("Any") in schema.types:
            return self._atom(Atom("Any"))
        records = any(isinstance(one, Record | Inside | FixedTuple) for one in schema.types)
        schemas: list[Any] = []
        union = Union()
        for one in schema.types:
            made = self._in_union(one, records) if isinstance(one, Mapped) else self.of(one)
            known = self._records[one.name] if isinstance(one, Inside) else one
            for each in made.schema if isinstance(made.schema, list) else [made.schema]:
                schemas.append(each)
                union.add(known, each, made)
        order = {"null": 0, "boolean": 1, "long": 2}
        schemas.sort(key=lambda each: order.get(each, 3) if isinstance(each, str) else 3)
        return AvroType(schemas) if union.as_it_is() else AvroType(schemas, union.write, union.read)

    def _later(self, name: str, way: str) -> Convert:
        def convert(value: Any) -> Any:
            known = getattr(self._made[name], way)
            return value if known is None else known(value)

        return convert

    def _free(self, name: str) -> str:
        name = _unique(name, self._used)
        self._used.add(name)
        return name

    def _full(self, name: str) -> str:
        return f"{NAMESPACE}.{name}"


def _is_text(schema: TypeSchema) -> bool:
    if isinstance(schema, Constants):
        return all(isinstance(value, str) for value in schema.values)
    return isinstance(schema, Atom) and schema.name == "str"


def _unique(name: str, used: set[str]) -> str:
    plain = name = name if name and not name[0].isdigit() else f"_{name}"
    number = 1
    while name in used:
        number += 1
        name = f"{plain}_{number}"
    return name


def _same(value: Any) -> Any:
    return value


def _hashable(key: Any) -> Any:
    return tuple(map(_hashable, key)) if isinstance(key, list) else key


def _moment_text(moment: Any) -> str:
    """One without a time zone is text in msgpack, too."""
    return moment.isoformat() if isinstance(moment, datetime) else cast(str, moment)


def _moment(text: str) -> Any:
    return datetime.fromisoformat(text) if text.endswith(_UTC) else text
