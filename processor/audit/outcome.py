"""Whether output that was made again is what came then: the records of a stretch, looked for in all that came.

Nobody knows at which offsets the output of a stretch begins and ends, so it is found by its content. The records
of one key are in order: they must be a run, without a gap, of the records of that key then. Records without a key
have no order to rely on: each must be there as often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from processor.contracts.topic_reader import RawHeaders, TopicChunk

DIGEST_BYTES = 16
SHOWN_MAX = 10
"""Differences that are told; the others are counted."""
VALUE_CHARS_MAX = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What came of comparing the output of one sink."""

    records: int
    """Made again."""
    keys: int
    """Of those with a key."""
    different: int
    """Keys whose records are not a run of those of then, and records without a key that are not there."""
    shown: tuple[str, ...]
    """The first of them, in words."""


def compared(then: Iterable[TopicChunk], again: Iterable[TopicChunk]) -> Compared:
    """Compare. Of ``again`` all digests are in memory, of ``then`` those with the same keys."""
    made = _Sequences()
    values: dict[bytes, bytes | None] = {}
    for key, value, headers in _records(again):
        digest = _digest(value, headers)
        made.add(key, digest)
        values.setdefault(digest, value)
    came = _Sequences()
    for key, value, headers in _records(then):
        if key is None or key in made.of_key:
            came.add(key, _digest(value, headers))
    different: list[str] = []
    for key, run in sorted(made.of_key.items()):
        known = bytes(came.of_key.get(key, b""))
        if not _holds(known, bytes(run)):
            different.append(_first_difference(key, known, bytes(run), values))
    for digest, count in sorted((made.without - came.without).items()):
        different.append(f"a record without key, {count} times more than then: {_shown(values[digest])}")
    return Compared(
        records=sum(len(run) for run in made.of_key.values()) // DIGEST_BYTES + made.without.total(),
        keys=len(made.of_key),
        different=len(different),
        shown=tuple(different[:SHOWN_MAX]),
    )


class _Sequences:
    """Digests of records: of each key one behind the other, of those without a key how many."""

    def __init__(self) -> None:
        self.of_key: dict[bytes, bytearray] = {}
        self.without: Counter[bytes] = Counter()

    def add(self, key: bytes | None, digest: bytes) -> None:
        if key is None:
            self.without[digest] += 1
        else:
            self.of_key.setdefault(key, bytearray()).extend(digest)


def _records(chunks: Iterable[TopicChunk]) -> Iterator[tuple[bytes | None, bytes | None, RawHeaders | None]]:
    for chunk in chunks:
        yield from zip(chunk.keys, chunk.values, chunk.headers, strict=True)


def _digest(value: bytes | None, headers: RawHeaders | None) -> bytes:
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in (value, *(each for name, held in headers or () for each in (name.encode(), held))):
        digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return digest.digest()


def _holds(known: bytes, run: bytes) -> bool:
    """Whether the run is somewhere in what is known, digest on digest."""
    at = known.find(run)
    while at >= 0 and at % DIGEST_BYTES:
        at = known.find(run, at + 1)
    return at >= 0


def _first_difference(key: bytes, known: bytes, run: bytes, values: dict[bytes, bytes | None]) -> str:
    """The longest beginning of the run that is known, by halves, and the record after it."""
    low, high = 0, len(run) // DIGEST_BYTES
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if _holds(known, run[: middle * DIGEST_BYTES]) else (low, middle)
    if low == 0 and high > 1 and _holds(known, run[:DIGEST_BYTES]):
        low = 1
    digest = run[low * DIGEST_BYTES : (low + 1) * DIGEST_BYTES]
    where = f"record {low + 1} of key {_shown(key)} is not what came then"
    return f"{where}: {_shown(values[digest])}"


def _shown(value: bytes | None) -> str:
    return "no value" if value is None else repr(value)[1:][: VALUE_CHARS_MAX + 2]
