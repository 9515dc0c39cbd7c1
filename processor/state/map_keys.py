"""What the entries of a map may be called: keys of one type, checked, and in stored form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import msgspec
from msgspec import inspect

from processor.errors import JobError, UserCodeError, Where
from processor.ids import StepName
from processor.state.stored_keys import StoredKey, normalise_key
from processor.state.type_schema import TypeSchema
from processor.state.value_types import constrained, describe_type, described, inspected

_CLASSES: dict[type[inspect.Type], type] = {
    inspect.StrType: str,
    inspect.BytesType: bytes,
    inspect.IntType: int,
    inspect.BoolType: bool,
    inspect.UUIDType: UUID,
    inspect.DateTimeType: datetime,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapKeys:
    """The type of the keys of one map's entries."""

    kind: Any
    of_class: type
    """The class of all of them: keys of two would have no order."""
    told_by_class: bool
    """The class tells all, and the key is its own stored form."""
    declared: str
    step: StepName
    state: str

    def stored(self, key: Any) -> StoredKey:
        """The stored form. Raises UserCodeError for a key of another type."""
        fits = key.__class__ is self.of_class
        if not fits:
            raise self._misfit(key)
        if self.told_by_class:
            return cast(StoredKey, key)
        try:
            msgspec.convert(key, self.kind)
            return normalise_key(key)
        except (msgspec.ValidationError, JobError) as error:
            raise self._misfit(key, f": {error}") from error

    def _misfit(self, key: object, why: str = "") -> UserCodeError:
        return UserCodeError(
            f"state '{self.state}' is declared as {self.declared} and was asked for the key {key!r:.80} of type "
            f"{type(key).__name__}{why}.",
            remedy="Use keys of the declared type, or declare another.",
            where=Where(step=self.step),
        )


def map_keys(kind: Any, *, step: StepName, state: str, declared: str) -> MapKeys:
    """Look at a declared type of keys once. Raises JobError like ``describe_map_keys``."""
    info = inspected(kind)
    of_class = _class_of(kind, info)
    return MapKeys(
        kind=kind,
        of_class=of_class,
        told_by_class=of_class in (str, bytes, int) and not constrained(info),
        declared=declared,
        step=step,
        state=state,
    )


def described_map_keys(kind: Any) -> TypeSchema:
    """``described`` of a type of keys. Raises JobError for one that cannot be."""
    _class_of(kind, inspected(kind))
    return described(kind)


def _class_of(kind: Any, info: inspect.Type) -> type:
    parts: tuple[inspect.Type, ...] = ()
    match info:
        case _ if type(info) in _CLASSES:
            return _CLASSES[type(info)]
        case inspect.TupleType(item_types=types):
            parts = tuple(types)
        case inspect.VarTupleType(item_type=item):
            parts = (item,)
        case _:
            pass
    if parts and all(type(part) in _CLASSES for part in parts):
        return tuple
    raise JobError(
        f"keys of a map cannot be of type {describe_type(kind)}.",
        remedy="Keys are str, bytes, int, bool, UUID, datetime with a time zone, or tuples of them.",
    )
