"""What state has to know of the type of a value: its description, its codec, and whether it may be shared.

A value of a type that cannot be changed in place (``int``, ``str``, frozen records of such) is kept as the
object the author set. A value that can be changed in place (``list``, ``dict``, an ordinary dataclass) is
kept as bytes: encoded by ``set``, decoded by each ``get``. Otherwise an author who appends to a list after
the cut would change the list that the completion has yet to write, and a restored job would count those
records twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

from processor.errors import JobError, UserCodeError, Where
from processor.state.declared_schema import schema_of
from processor.state.schema_text import type_text
from processor.state.type_schema import TypeSchema

_SCALARS: dict[type[inspect.Type], tuple[type, ...]] = {
    inspect.NoneType: (type(None),),
    inspect.BoolType: (bool,),
    inspect.IntType: (int,),
    # An int where a float is declared is what people write (`total.set(0)`); it comes back as a float.
    inspect.FloatType: (float, int),
    inspect.StrType: (str,),
    inspect.BytesType: (bytes,),
}
"""Types of which nothing but the class of the value needs checking, with its classes."""

_ATOMS = (
    inspect.DateTimeType,
    inspect.DateType,
    inspect.TimeType,
    inspect.TimeDeltaType,
    inspect.UUIDType,
    inspect.DecimalType,
)

_encoder = msgspec.msgpack.Encoder()


def described(kind: Any) -> TypeSchema:
    """The schema of a declared type (B7). Raises JobError for a type whose values cannot be kept."""
    return schema_of(inspected(kind))


def describe_type(kind: Any) -> str:
    """``described`` as a line that is the same in every process and version; manifests keep it.

    Raises JobError for a type whose values cannot be kept.
    """
    return type_text(described(kind))


def described_total(kind: Any) -> TypeSchema:
    """``described`` of what values are folded into. Raises JobError for a type with None as well: that is what a key
    without a total has."""
    info = inspected(kind)
    if _nullable(info):
        raise JobError(
            f"what values are folded into is declared as {type_text(schema_of(info))} and may be None, like a key to "
            "which nothing was added.",
            remedy="Declare a type without None.",
        )
    return schema_of(info)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """The type of the values of one state."""

    kind: Any
    shared: bool
    """Values are kept as the author's objects: they cannot be changed in place."""
    classes: frozenset[type] | None
    """The only classes a value may have; None: not told by the class alone."""
    shallow: bool
    """The class tells all: a value of a right class can always be read back."""
    nullable: bool
    """None is a value of the type."""
    declared: str
    """The author's declaration, for errors."""
    decoder: msgspec.msgpack.Decoder[Any]
    many_decoder: msgspec.msgpack.Decoder[list[Any]]
    step: str
    state: str

    def encode(self, value: object) -> bytes:
        """The bytes of one value. Raises UserCodeError for what cannot be encoded."""
        try:
            return _encoder.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self.misfit(value, str(error)) from error

    def opened(self, kept: bytes) -> Any:
        """``encode`` taken back. Raises UserCodeError for bytes of something else than was declared."""
        try:
            return self.decoder.decode(kept)
        except msgspec.MsgspecError as error:
            raise self.misfit(msgspec.Raw(kept), str(error)) from error

    def check(self, value: object) -> None:
        """Raises UserCodeError for a value whose class tells that it is not of this type."""
        if self.classes is not None:
            if value.__class__ not in self.classes:
                raise self.misfit(value)
        elif value is None and not self.nullable:
            raise self.misfit(value)

    def verify(self, values: Sequence[object]) -> None:
        """Raises UserCodeError unless all these can be read back as the declared type.

        Called by completions for values that changed, before a snapshot can hold them: a checkpoint with a
        value that nobody can read would be decided, and then no restart could ever succeed.
        """
        try:
            if self.shallow:
                _encoder.encode(values)  # an int may still have more than 64 bits
            else:
                self.many_decoder.decode(_encoder.encode(values))
        except Exception:
            for value in values:
                try:
                    self.decoder.decode(self.encode(value))
                except msgspec.MsgspecError as error:
                    raise self.misfit(value, str(error)) from error
            raise

    def misfit(self, value: object, why: str = "") -> UserCodeError:
        """The error for a value that is not of this type."""
        shown = value if not isinstance(value, msgspec.Raw) else bytes(value)
        return UserCodeError(
            f"state '{self.state}' is declared as {self.declared} and was set to "
            f"{type(value).__name__} {shown!r:.80}{': ' + why if why else ''}.",
            remedy="Set a value of the declared type, use clear() to remove it, or declare another type.",
            where=Where(step=self.step),
        )


def may_be_none(kind: Any) -> bool:
    """Whether None is a value of the type. Raises JobError for a type whose values cannot be kept."""
    return _nullable(inspected(kind))


def value_type(
    kind: Any, *, step: str, state: str, declared: str | None = None, as_bytes: bool = False
) -> ValueType:
    """Look at a declared type once; ``declared`` is how errors name it, if not by the type. ``as_bytes``: values
    are kept as bytes whether they can be changed in place or not; where None is one, it does not mean then that
    there is none. Raises JobError for a type whose values cannot be kept."""
    info = inspected(kind)
    return ValueType(
        kind=kind,
        shared=_shared(info, frozenset()) and not as_bytes,
        classes=_classes(info),
        shallow=_shallow(info),
        nullable=_nullable(info),
        declared=declared or type_text(schema_of(info)),
        decoder=msgspec.msgpack.Decoder(kind),
        many_decoder=msgspec.msgpack.Decoder(list[kind]),
        step=step,
        state=state,
    )


def inspected(kind: Any) -> inspect.Type:
    """What msgspec knows of a type. Raises JobError for one whose values cannot be kept."""
    try:
        info = inspect.type_info(kind)
        msgspec.msgpack.Decoder(kind)
    except Exception as error:  # msgspec raises many kinds, down to NameError for a name that is not there
        raise JobError(
            f"values of type {kind!r:.80} cannot be kept as state: {error}.",
            remedy="Use plain values, lists, dicts, tuples, dataclasses or msgspec Structs of them.",
        ) from error
    if _any_custom(info, frozenset()):
        raise JobError(
            f"values of type {kind!r:.80} cannot be kept as state: there is no encoding for it.",
            remedy="Use plain values, lists, dicts, tuples, dataclasses or msgspec Structs of them.",
        )
    return info


def _parts(info: inspect.Type) -> tuple[inspect.Type, ...]:
    """The types inside a type."""
    match info:
        case inspect.UnionType(types=types):
            return tuple(types)
        case inspect.TupleType(item_types=types):
            return tuple(types)
        case inspect.CollectionType(item_type=item):  # lists, sets, tuples of any length
            return (item,)
        case inspect.DictType(key_type=key, value_type=value):
            return key, value
        case (
            inspect.StructType(fields=fields)
            | inspect.DataclassType(fields=fields)
            | inspect.NamedTupleType(fields=fields)
            | inspect.TypedDictType(fields=fields)
        ):
            return tuple(field.type for field in fields)
        case _:
            return ()


def _origin(cls: Any) -> Any:
    """The class of the values of a generic class with its arguments."""
    return getattr(cls, "__origin__", cls)


def _any_custom(info: inspect.Type, seen: frozenset[Any]) -> bool:
    cls = getattr(info, "cls", None)
    if cls in seen:
        return False
    if isinstance(info, inspect.CustomType | inspect.RawType | inspect.ExtType | inspect.MemoryViewType):
        return True
    return any(_any_custom(part, seen | {cls} if cls else seen) for part in _parts(info))


def _shared(info: inspect.Type, seen: frozenset[Any]) -> bool:
    """Whether no value of this type can be changed in place, however deep one looks."""
    match info:
        case _ if type(info) in _SCALARS or type(info) in _ATOMS:
            return True
        case inspect.EnumType() | inspect.LiteralType():
            return True
        case (
            inspect.UnionType()
            | inspect.TupleType()
            | inspect.VarTupleType()
            | inspect.FrozenSetType()
            | inspect.NamedTupleType()
        ):
            pass
        case inspect.StructType(cls=cls):
            if not _origin(cls).__struct_config__.frozen:
                return False
        case inspect.DataclassType(cls=cls):
            parameters = getattr(_origin(cls), "__dataclass_params__", None)
            if parameters is None or not parameters.frozen:
                return False
        case _:
            return False
    record = getattr(info, "cls", None)
    if record in seen:
        return True
    return all(_shared(part, seen | {record} if record else seen) for part in _parts(info))


def _classes(info: inspect.Type) -> frozenset[type] | None:
    match info:
        case _ if type(info) in _SCALARS:
            return frozenset(_SCALARS[type(info)])
        case inspect.UnionType(types=types):
            parts = [_classes(part) for part in types]
            return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
        case inspect.StructType(cls=cls) | inspect.DataclassType(cls=cls) | inspect.NamedTupleType(cls=cls):
            return frozenset((_origin(cls),))
        case inspect.TupleType() | inspect.VarTupleType():
            return frozenset((tuple,))
        case _:
            return None


def _shallow(info: inspect.Type) -> bool:
    if isinstance(info, inspect.UnionType):
        return all(_shallow(part) for part in info.types)
    return type(info) in _SCALARS and not constrained(info)


def _nullable(info: inspect.Type) -> bool:
    if isinstance(info, inspect.UnionType):
        return any(map(_nullable, info.types))
    if isinstance(info, inspect.LiteralType):
        return None in info.values
    return isinstance(info, inspect.NoneType | inspect.AnyType)


def constrained(info: inspect.Type) -> bool:
    """Limits of an Annotated type, such as ``Annotated[int, Meta(ge=0)]``."""
    return any(
        getattr(info, limit, None) is not None
        for limit in ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
    )
