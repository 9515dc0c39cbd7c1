"""Kafka's framing, and as much of requests and answers as tells what they are about.

Every frame is a length and so many bytes. A request begins with its API, the version of it, a number that the
answer repeats, and the client's name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, assert_never


class Api(IntEnum):
    """The requests that tests speak of, by Kafka's numbers."""

    PRODUCE = 0
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


FLEXIBLE_FROM: Final = {
    Api.PRODUCE: 9,
    Api.INIT_PRODUCER_ID: 2,
    Api.ADD_PARTITIONS_TO_TXN: 3,
    Api.ADD_OFFSETS_TO_TXN: 3,
    Api.END_TXN: 3,
    Api.TXN_OFFSET_COMMIT: 3,
}
"""From this version on texts are compact, and heads end with tagged fields."""

LENGTH: Final = struct.Struct(">i")
HEAD: Final = struct.Struct(">hhi")
FRAME_BYTES_MAX: Final = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came, without its length."""

    api: int
    version: int
    correlation: int
    client: str
    transactional_id: str | None
    """Of those in ``Api``; None where a producer has none, and for all others."""
    data: bytes = field(repr=False)


def request_of(data: bytes) -> Request:
    """Read the head of a request, and the name that those of transactions begin with."""
    number, version, correlation = HEAD.unpack_from(data)
    client, at = _text(data, HEAD.size)
    identity = None
    if number in FLEXIBLE_FROM:
        api = Api(number)
        if version < FLEXIBLE_FROM[api]:
            identity, _ = _text(data, at)
        else:
            identity, _ = _compact_text(data, _past_tags(data, at))
    return Request(
        api=number,
        version=version,
        correlation=correlation,
        client=client or "",
        transactional_id=identity,
        data=data,
    )


def error_code(request: Request, answer: bytes) -> int:
    """The error code of an answer to a request of a transaction; of several partitions the first that is not 0,
    of rows that of the first partition."""
    api = Api(request.api)
    flexible = request.version >= FLEXIBLE_FROM[api]
    at = _past_tags(answer, LENGTH.size) if flexible else LENGTH.size
    throttled = LENGTH.size  # the time for which the broker throttles
    match api:
        case Api.INIT_PRODUCER_ID | Api.ADD_OFFSETS_TO_TXN | Api.END_TXN:
            return _short(answer, at + throttled)
        case Api.ADD_PARTITIONS_TO_TXN | Api.TXN_OFFSET_COMMIT:
            return _first_error(answer, at + throttled, flexible)
        case Api.PRODUCE:
            _, at = _count(answer, at, flexible)
            _, at = _compact_text(answer, at) if flexible else _text(answer, at)
            _, at = _count(answer, at, flexible)
            return _short(answer, at + LENGTH.size)
        case _:
            assert_never(api)


def _first_error(answer: bytes, at: int, flexible: bool) -> int:
    """Of topics, each with partitions, each with an error code."""
    topics, at = _count(answer, at, flexible)
    for _ in range(topics):
        _, at = _compact_text(answer, at) if flexible else _text(answer, at)
        partitions, at = _count(answer, at, flexible)
        for _ in range(partitions):
            code = _short(answer, at + LENGTH.size)
            if code:
                return code
            at += LENGTH.size + 2
            at = _past_tags(answer, at) if flexible else at
        at = _past_tags(answer, at) if flexible else at
    return 0


def _count(data: bytes, at: int, flexible: bool) -> tuple[int, int]:
    if flexible:
        count, at = _varint(data, at)
        return count - 1, at
    return int(LENGTH.unpack_from(data, at)[0]), at + LENGTH.size


def _short(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">h", data, at)[0])


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    length = _short(data, at)
    if length < 0:
        return None, at + 2
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length


def _compact_text(data: bytes, at: int) -> tuple[str | None, int]:
    length, at = _varint(data, at)
    if length == 0:
        return None, at
    return data[at : at + length - 1].decode(), at + length - 1


def _past_tags(data: bytes, at: int) -> int:
    count, at = _varint(data, at)
    for _ in range(count):
        _, at = _varint(data, at)
        size, at = _varint(data, at)
        at += size
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
