"""From a key to its bytes and its key group: stable over processes, machines and versions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast
from uuid import UUID
from zlib import crc32

from processor.errors import JobError
from processor.records.batch import Key

# One tag a type, so that keys of different types never share bytes: "1" and 1 and b"1" are three keys.
_TAG_STR, _TAG_BYTES, _TAG_INT, _TAG_UUID, _TAG_DATETIME, _TAG_BOOL, _TAG_TUPLE = b"sbiudot"


def encode_key(key: Key) -> bytes:
    """Bytes of a key: equal keys of equal type give equal bytes, all others differ.

    ``bool`` is a type of its own. Raises JobError for a type that cannot be a key.
    """
    kind = type(key)
    if kind is str:
        return b"s" + cast(str, key).encode()
    if kind is int:
        number = cast(int, key)
        return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    if kind is bytes:
        return b"b" + cast(bytes, key)
    if kind is bool:
        return b"o\x01" if key else b"o\x00"
    if kind is UUID:
        return b"u" + cast(UUID, key).bytes
    if kind is datetime:
        moment = cast(datetime, key)
        if moment.tzinfo is None:
            raise JobError(
                f"the key {moment!r} is a datetime without a time zone.",
                remedy="Give it one, such as datetime.UTC.",
            )
        return b"d" + moment.astimezone(UTC).isoformat(timespec="microseconds").encode()
    if kind is tuple:
        parts = [encode_key(part) for part in cast(tuple[Key, ...], key)]
        return b"t" + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    raise JobError(
        f"a key of type {kind.__name__} cannot be used: {key!r:.80}.",
        remedy="Keys are str, bytes, int, bool, UUID, datetime, or tuples of them.",
    )


def decode_key(data: bytes) -> Key:
    """Inverse of encode_key."""
    tag, body = data[0], data[1:]
    if tag == _TAG_STR:
        return body.decode()
    if tag == _TAG_INT:
        return int.from_bytes(body, "big", signed=True)
    if tag == _TAG_BYTES:
        return body
    if tag == _TAG_BOOL:
        return body == b"\x01"
    if tag == _TAG_UUID:
        return UUID(bytes=body)
    if tag == _TAG_DATETIME:
        return datetime.fromisoformat(body.decode())
    if tag == _TAG_TUPLE:
        parts: list[Key] = []
        at = 0
        while at < len(body):
            length = int.from_bytes(body[at : at + 4], "big")
            parts.append(decode_key(body[at + 4 : at + 4 + length]))
            at += 4 + length
        return cast(Key, tuple(parts))
    raise ValueError(f"unknown key tag {tag}")


def key_group(key: Key, max_parallelism: int) -> int:
    """The key group of a key: a stable hash of its bytes, modulo the job's maximum parallelism."""
    if type(key) is str:  # the common case, inlined
        return crc32(b"s" + key.encode()) % max_parallelism
    return crc32(encode_key(key)) % max_parallelism
