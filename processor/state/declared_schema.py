"""The schema of a type that an author declared."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from processor.errors import JobError
from processor.state.schema_text import type_text
from processor.state.type_schema import (
    NO_LIMITS,
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
    TypeSchema,
)

_ATOMS: dict[type[inspect.Type], str] = {
    inspect.NoneType: "None",
    inspect.BoolType: "bool",
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.StrType: "str",
    inspect.BytesType: "bytes",
    inspect.ByteArrayType: "bytearray",
    inspect.DateTimeType: "datetime",
    inspect.DateType: "date",
    inspect.TimeType: "time",
    inspect.TimeDeltaType: "timedelta",
    inspect.UUIDType: "UUID",
    inspect.DecimalType: "Decimal",
    inspect.AnyType: "Any",
}
_SEQUENCES: dict[type[inspect.Type], str] = {
    inspect.ListType: "list",
    inspect.SetType: "set",
    inspect.FrozenSetType: "frozenset",
    inspect.VarTupleType: "tuple",
    inspect.CollectionType: "collection",
}
_LIMITS = ("ge", "gt", "le", "lt", "max_length", "min_length", "multiple_of", "pattern", "tz")
_EMPTY: dict[Any, str] = {list: "[]", dict: "{}", set: "[]"}
"""Factories whose empty outcome is left out like any other default."""


def schema_of(info: inspect.Type) -> TypeSchema:
    """What ``msgspec.inspect`` knows of a type, as manifests keep it (B7). Modules are left out: moving a class
    changes no state. Raises JobError for a type whose values cannot be kept."""
    return _Classes().schema(info, ())


class _Classes:
    """Classes met so far, each with a name that no other has."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}

    def schema(self, info: inspect.Type, inside: tuple[Any, ...]) -> TypeSchema:
        kind = type(info)
        if kind in _ATOMS:
            return Atom(_ATOMS[kind], _limits(info))
        match info:
            case inspect.UnionType(types=types):
                found = {type_text(each): each for each in (self.schema(part, inside) for part in types)}
                return OneOf(tuple(found[text] for text in sorted(found)))
            case inspect.LiteralType(values=values):
                return Constants(tuple(sorted(values, key=repr)))
            case inspect.EnumType(cls=cls):
                return Constants(tuple(sorted((each.value for each in cls), key=repr)), self._name(cls))
            case inspect.TupleType(item_types=types):
                return FixedTuple(tuple(self.schema(part, inside) for part in types))
            case (
                inspect.ListType(item_type=item)
                | inspect.SetType(item_type=item)
                | inspect.FrozenSetType(item_type=item)
                | inspect.VarTupleType(item_type=item)
                | inspect.CollectionType(item_type=item)
            ):
                return Sequence(_SEQUENCES[kind], self.schema(item, inside), _limits(info))
            case inspect.DictType(key_type=key, value_type=value):
                return Mapped(self.schema(key, inside), self.schema(value, inside), _limits(info))
            case (
                inspect.StructType()
                | inspect.DataclassType()
                | inspect.NamedTupleType()
                | inspect.TypedDictType()
            ):
                return self._record(info, inside)
            case _:
                raise JobError(
                    f"values of type {info!r:.80} cannot be kept as state.",
                    remedy="Use plain values, lists, dicts, tuples, dataclasses or msgspec Structs of them.",
                )

    def _record(self, info: Any, inside: tuple[Any, ...]) -> TypeSchema:
        name = self._name(info.cls)
        if info.cls in inside:
            return Inside(name)
        fields = [self._field(info, field, (*inside, info.cls)) for field in info.fields]
        if isinstance(info, inspect.TypedDictType):
            fields.sort(key=lambda field: field.name)  # of a set: in no order of its own
        struct = isinstance(info, inspect.StructType)
        if struct and info.tag is not None:
            by_place = info.array_like
            # A record by place always has its tag; of others a reader takes one without.
            fields.insert(0, Field(info.tag_field, Constants((info.tag,)), by_place))
        return Record(
            name,
            tuple(fields),
            by_place=(struct and info.array_like) or isinstance(info, inspect.NamedTupleType),
            strict=(struct and info.forbid_unknown_fields) or isinstance(info, inspect.NamedTupleType),
        )

    def _field(self, info: Any, field: inspect.Field, inside: tuple[Any, ...]) -> Field:
        kind = self.schema(field.type, inside)
        if field.required:
            return Field(field.encode_name, kind)
        default = _default(field)
        return Field(field.encode_name, kind, False, default, _left_out(info, field, default))

    def _name(self, cls: Any) -> str:
        if cls not in self._names:
            name = plain = getattr(cls, "__name__", str(cls))
            number = 1
            while name in self._names.values():
                number += 1
                name = f"{plain}_{number}"
            self._names[cls] = name
        return self._names[cls]


def _limits(info: inspect.Type) -> Limits:
    found = ((name, getattr(info, name, None)) for name in _LIMITS)
    of = tuple((name, value) for name, value in found if value is not None)
    return Limits(of) if of else NO_LIMITS


def _default(field: inspect.Field) -> str:
    """In JSON; "" when a factory of the author's makes it, or there is none."""
    if field.default_factory is not msgspec.NODEFAULT:
        return _EMPTY.get(field.default_factory, "")
    if field.default is msgspec.NODEFAULT:
        return ""
    return msgspec.json.encode(field.default, enc_hook=repr).decode()


def _left_out(info: Any, field: inspect.Field, default: str) -> bool:
    """Whether a writer may leave it out."""
    if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        return True  # of a TypedDict, or one whose default is to be unset
    cls = _class(info.cls)
    match info:
        case inspect.StructType(array_like=False):
            return bool(default) and cls.__struct_config__.omit_defaults
        case inspect.DataclassType():
            # One that was decoded without the field has the default from its class, and writes only what is its own.
            return field.default is not msgspec.NODEFAULT and cls.__dictoffset__ != 0
        case _:
            return False


def _class(cls: Any) -> Any:
    """Of a generic class with its arguments, the class."""
    return getattr(cls, "__origin__", cls)
