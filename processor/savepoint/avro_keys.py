"""Keys in a canonical savepoint. A key may be of any type that keys have, whatever the keys beside it are, and is of
that type when it is read: ``1``, ``"1"`` and ``True`` stay three keys.

Where all keys of a file are ``str``, ``int`` of 64 bits or ``bytes``, the field is of that type alone. Else it is a
union, in which what Avro lacks has a record of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, cast
from uuid import UUID

from processor.records.batch import Key

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class KeyForm(StrEnum):
    """How the keys of one field stand in a file."""

    STRING = "string"
    LONG = "long"
    BYTES = "bytes"
    ANY = "any"


_UUID, _MOMENT, _INTEGER, _TUPLE = (
    f"processor.key.{name}" for name in ("Uuid", "Moment", "Integer", "Tuple")
)
_PLAIN: Final[list[Any]] = ["string", "long", "bytes", "boolean"]
_FORMS: Final = {str: KeyForm.STRING, int: KeyForm.LONG, bytes: KeyForm.BYTES}


def key_schema(form: KeyForm, *, defined: bool) -> Any:
    """The Avro schema of a field of keys; ``defined``: a field before it has defined the names of ANY."""
    if form is not KeyForm.ANY:
        return form.value
    names = [_UUID, _MOMENT, _INTEGER, _TUPLE]
    if defined:
        return [*_PLAIN, *names]
    parts = {"type": "array", "items": [*_PLAIN, *names]}
    return [
        *_PLAIN,
        _record(_UUID, "hex", "string"),
        _record(_MOMENT, "utc", "string"),
        _record(_INTEGER, "decimal", "string"),
        _record(_TUPLE, "parts", parts),
    ]


def form_of(keys: Sequence[Key]) -> KeyForm:
    """The narrowest form that takes all of these."""
    kinds = set(map(type, keys))
    form = _FORMS.get(cast(Any, kinds.pop()), KeyForm.ANY) if len(kinds) == 1 else KeyForm.ANY
    if form is KeyForm.LONG:
        numbers = cast(Sequence[int], keys)
        if min(numbers) < INT64_MIN or max(numbers) > INT64_MAX:
            return KeyForm.ANY
    return form


def writing(form: KeyForm) -> Callable[[Sequence[Key]], Sequence[Any]]:
    """From keys to what stands in the file."""
    return _as_they_are if form is not KeyForm.ANY else lambda keys: list(map(_datum, keys))


def reading(form: KeyForm) -> Callable[[Sequence[Any]], list[Key]]:
    """Inverse of ``writing``."""
    return cast(Any, list) if form is not KeyForm.ANY else lambda data: list(map(_key, data))


def _as_they_are(keys: Sequence[Key]) -> Sequence[Any]:
    return keys


def _record(name: str, field: str, kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind}]}


def _datum(key: Key) -> Any:
    if isinstance(key, UUID):
        return _UUID, {"hex": key.hex}
    if isinstance(key, datetime):
        return _MOMENT, {"utc": key.astimezone(UTC).isoformat()}
    if isinstance(key, tuple):
        return _TUPLE, {"parts": [_datum(part) for part in key]}
    if type(key) is int and not INT64_MIN <= key <= INT64_MAX:
        return _INTEGER, {"decimal": str(key)}
    return key


def _key(datum: Any) -> Key:
    if type(datum) is not tuple:
        return cast(Key, datum)
    name, held = datum
    if name == _UUID:
        return UUID(hex=held["hex"])
    if name == _MOMENT:
        return datetime.fromisoformat(held["utc"])
    if name == _INTEGER:
        return int(held["decimal"])
    return cast(Key, tuple(_key(part) for part in held["parts"]))
