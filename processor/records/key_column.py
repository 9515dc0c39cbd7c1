"""Between a column of keys and bytes: keys of one type at once, all others one by one.

The numbers of kinds are in files that are kept: none is ever used for anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from uuid import UUID

import msgspec

from processor.records.batch import Key
from processor.records.columns import encodable
from processor.records.key_groups import decode_key, encode_key

KeyColumn = tuple[int, bytes | memoryview]
"""How the keys are encoded, and their bytes."""

_STR, _INT, _BYTES, _EACH, _BOOL, _UUID, _TUPLES = range(7)
_KINDS: Final[Mapping[type, int]] = {str: _STR, int: _INT, bytes: _BYTES, bool: _BOOL, UUID: _UUID}
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1

_encoder = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoders: Final[Mapping[int, msgspec.msgpack.Decoder[list[Any]]]] = {
    number: msgspec.msgpack.Decoder(cast(Any, list)[kind]) for kind, number in _KINDS.items()
}
_each_decoder = msgspec.msgpack.Decoder(list[bytes])
_tuples_decoder = msgspec.msgpack.Decoder(list[tuple[int, memoryview]])


def encode_keys(keys: Sequence[Key]) -> tuple[int, bytes]:
    """How the keys are encoded, and their bytes. Raises JobError for what cannot be a key."""
    kinds = set(map(type, keys))
    if len(kinds) == 1:
        (kind,) = kinds
        number = _KINDS.get(kind)
        if number is not None and (number != _INT or _in_64_bits(cast(Sequence[int], keys))):
            return number, _encoder.encode(encodable(keys))
        if kind is tuple:
            tuples = cast(Sequence[tuple[Key, ...]], keys)
            if len(set(map(len, tuples))) == 1 and tuples[0]:
                return _TUPLES, _encoder.encode([encode_keys(part) for part in zip(*tuples, strict=True)])
    return _EACH, _encoder.encode([encode_key(key) for key in keys])


def decode_keys(number: int, encoded: bytes | memoryview) -> list[Key]:
    """Inverse of ``encode_keys``; datetimes come back in UTC. Raises ValueError for what it does not make."""
    try:
        return _decode(number, encoded)
    except (msgspec.MsgspecError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"these are no keys: {error}") from error


def _decode(number: int, encoded: bytes | memoryview) -> list[Key]:
    decoder = _decoders.get(number)
    if decoder is not None:
        return decoder.decode(encoded)
    if number == _EACH:
        return [decode_key(key) for key in _each_decoder.decode(encoded)]
    if number == _TUPLES:
        parts = [_decode(*part) for part in _tuples_decoder.decode(encoded)]
        return cast(list[Key], list(zip(*parts, strict=True)))
    raise ValueError(f"keys of the unknown kind {number}")


def _in_64_bits(numbers: Sequence[int]) -> bool:
    """Whether msgpack can hold them."""
    return min(numbers) >= _INT64_MIN and max(numbers) <= _UINT64_MAX
