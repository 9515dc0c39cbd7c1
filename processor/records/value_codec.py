"""Between the values on an edge and bytes, without pickling.

Values whose type the job names are msgspec's to encode. Values of unknown type are plain (``key_by`` sees to
that): str, bytes, int, float, bool, None, and lists, tuples and dicts of them. Msgpack knows neither tuples nor
numbers of more than 64 bits, nor keys of a dict that are no scalars; those are wrapped, so that what is read
back is what was written. Columns in which there is nothing to wrap are looked at as a whole, value by value only
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, cast

import msgspec

from processor.errors import JobError, UserCodeError

_TUPLE, _DICT, _INTEGER = 1, 2, 3
_ALL_TUPLES = b"\xc1"
"""In front of a column of tuples with nothing to wrap in them; msgpack itself begins nothing with it."""

_SCALARS = frozenset({str, bytes, float, bool, type(None)})
_FLAT = _SCALARS | {int}
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1

_encoder = msgspec.msgpack.Encoder()
_tuples_decoder = msgspec.msgpack.Decoder(list[tuple[Any, ...]])


class ValueCodec:
    """Encodes columns of values of one type; ``kind`` None: plain values."""

    def __init__(self, kind: Any, where: str) -> None:
        """``kind`` is a type that msgspec can decode; ``where`` names the edge in errors."""
        self._kind = kind
        self._where = where
        self._decoder: msgspec.msgpack.Decoder[list[Any]]
        if kind is None:
            self._decoder = msgspec.msgpack.Decoder(list[Any], ext_hook=_unwrapped)
        else:
            self._decoder = msgspec.msgpack.Decoder(cast(Any, list)[kind])

    def encode(self, values: Sequence[Any]) -> bytes:
        """The bytes of a column. Raises UserCodeError for a value that has none."""
        column = values if type(values) is list else list(values)
        try:
            return _encode_plain(column) if self._kind is None else _encoder.encode(column)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._misfit(str(error)) from error

    def verify(self, encoded: bytes | memoryview) -> list[Any]:
        """The values of a column that was encoded by this job, before anybody else relies on them. Raises
        UserCodeError when they cannot be read back: in a checkpoint, no restart would succeed."""
        try:
            return self._decode(encoded)
        except msgspec.MsgspecError as error:
            raise self._misfit(str(error)) from error

    def decode(self, encoded: bytes | memoryview) -> list[Any]:
        """Inverse of ``encode``, for a checkpoint's values. Raises JobError for values of another type than the job
        now names."""
        try:
            return self._decode(encoded)
        except msgspec.MsgspecError as error:
            raise JobError(
                f"records in flight {self._where} cannot be read as {self._kind!r:.80}, the type the job names "
                f"now: {error}.",
                remedy="Give the values their old type back, stop the job with a savepoint, and start the changed "
                "job from that.",
            ) from error

    def _decode(self, encoded: bytes | memoryview) -> list[Any]:
        """Raises MsgspecError."""
        try:
            if self._kind is None and encoded[:1] == _ALL_TUPLES:
                return _tuples_decoder.decode(encoded[1:])
            return self._decoder.decode(encoded)
        except (TypeError, ValueError, RecursionError) as error:  # of what was wrapped, if it was not by us
            raise msgspec.DecodeError(str(error)) from error

    def _misfit(self, why: str) -> UserCodeError:
        named = "plain values" if self._kind is None else f"of type {self._kind!r:.80}"
        return UserCodeError(
            f"values {self._where} should be {named} and cannot be kept in a checkpoint or sent to another worker: "
            f"{why}.",
            remedy="Correct the type that the step before names. A single worker with checkpoint.unaligned false "
            "does without it.",
        )


def _encode_plain(column: list[Any]) -> bytes:
    try:
        kinds = set(map(type, column))
        if kinds <= _FLAT:
            return _encoder.encode(column)
        if kinds == {tuple} and _flat(chain.from_iterable(column)):
            return _ALL_TUPLES + _encoder.encode(column)
        if kinds == {list} and _flat(chain.from_iterable(column)):
            return _encoder.encode(column)
        if kinds == {dict} and _flat_dicts(column):
            return _encoder.encode(column)
    except OverflowError:  # a number of more than 64 bits
        pass
    return _encoder.encode([_wrapped(value) for value in column])


def _flat(members: Iterable[object]) -> bool:
    return set(map(type, members)) <= _FLAT


def _flat_dicts(column: list[dict[object, object]]) -> bool:
    names = set(map(type, chain.from_iterable(column)))
    return names <= {str} and _flat(chain.from_iterable(map(dict.values, column)))


def _wrapped(value: Any) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is int:
        if _INT64_MIN <= value <= _UINT64_MAX:
            return value
        return msgspec.msgpack.Ext(_INTEGER, str(value).encode())
    if kind is list:
        return [_wrapped(item) for item in value]
    if kind is tuple:
        return msgspec.msgpack.Ext(_TUPLE, _encoder.encode([_wrapped(item) for item in value]))
    if kind is dict:
        pairs = [(_wrapped(key), _wrapped(item)) for key, item in value.items()]
        return msgspec.msgpack.Ext(_DICT, _encoder.encode(pairs))
    raise TypeError(f"{kind.__qualname__} is no plain value")


def _unwrapped(code: int, data: memoryview) -> Any:
    if code == _INTEGER:
        return int(bytes(data))
    items = msgspec.msgpack.decode(data, ext_hook=_unwrapped)
    if code == _TUPLE:
        return tuple(items)
    if code == _DICT:
        return dict(items)
    raise ValueError(f"unknown kind {code} of a plain value")
