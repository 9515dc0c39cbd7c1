"""Where the entries of a database lie, and how they are read back (``rocksdb_store`` says why so).

======== ============================================================================ ====================
layout   key                                                                          value
======== ============================================================================ ====================
values   number, key group, encoded key                                               the value in msgpack
maps     number, key group, length of the encoded key, encoded key, the entry's key    the same
timers   number, key group, time, encoded key                                         nothing
======== ============================================================================ ====================

The number of the table has 1 byte, the key group 2, the length 4, the time 9; all big-endian, so that a table is one
range of keys, and a key group one range of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, cast

import msgspec
from rocksdict import Rdict, ReadOptions, Snapshot

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX, TableLayout
from processor.ids import KeyGroupRange
from processor.records.batch import Key
from processor.records.key_groups import decode_key
from processor.state.snapshot import Block

HEAD_BYTES: Final = 3
"""Of every key: the table's number and the key group."""

LENGTH_BYTES: Final = 4
TIME_BYTES: Final = 9
TABLES_MAX: Final = 256

_MAP_KEY_AT: Final = HEAD_BYTES + LENGTH_BYTES
_TIMER_KEY_AT: Final = HEAD_BYTES + TIME_BYTES
_TIME_ZERO: Final = 2**64
"""Added to a time, so that the bytes sort as the times do."""
_TEXT_TAG: Final = b"s"[0]

Pair = tuple[bytes, bytes]


def head(number: int, group: int) -> bytes:
    """What the keys of a table's key group begin with."""
    return bytes((number,)) + group.to_bytes(2, "big")


def group_of(key: bytes) -> int:
    """The key group of an entry, from its key in the database."""
    return int.from_bytes(key[1:HEAD_BYTES], "big")


def lengthed(encoded: bytes) -> bytes:
    """A map's key, in front of the keys of its entries."""
    return len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded


def map_keys(place: bytes) -> tuple[bytes, bytes]:
    """The encoded keys of a map and of its entry, from the entry's key in the database."""
    end = _MAP_KEY_AT + int.from_bytes(place[HEAD_BYTES:_MAP_KEY_AT], "big")
    return place[_MAP_KEY_AT:end], place[end:]


def timed(time_ms: int, encoded: bytes) -> bytes:
    """A timer behind its head."""
    return (time_ms + _TIME_ZERO).to_bytes(TIME_BYTES, "big") + encoded


def scan(
    database: Rdict | Snapshot, number: int, groups: KeyGroupRange, *, after: bytes = b""
) -> Iterator[Pair]:
    """The entries of a range of a table's key groups, in order; from ``after`` on where that is in the middle."""
    options = (
        ReadOptions()
    )  # the binding's iterator reads its bound and does not keep it: this generator does
    options.set_iterate_upper_bound(head(number, groups.stop))
    start = max(head(number, groups.start), after)
    yield from cast(Iterator[Pair], database.items(from_key=start, read_opt=options))


def blocks_of(layout: TableLayout, pairs: Iterator[Pair]) -> Iterator[Block]:
    """Entries as they lie, in blocks for a snapshot: the values stay encoded."""
    read = _READERS[layout]
    while some := list(islice(pairs, BLOCK_ENTRIES_MAX)):
        keys, values = read(some)
        groups = KeyGroupRange(group_of(some[0][0]), group_of(some[-1][0]) + 1)
        yield Block(groups=groups, keys=keys, values=values)


def _values(pairs: list[Pair]) -> tuple[list[Key], list[Any]]:
    return _decode_keys([key for key, _ in pairs]), [msgspec.Raw(value) for _, value in pairs]


def _map_entries(pairs: list[Pair]) -> tuple[list[Key], list[Any]]:
    keys: list[Key] = []
    values: list[tuple[bytes, msgspec.Raw]] = []
    for place, data in pairs:
        key, of_entry = map_keys(place)
        keys.append(decode_key(key))
        values.append((of_entry, msgspec.Raw(data)))
    return keys, values


def _timers(pairs: list[Pair]) -> tuple[list[Key], list[Any]]:
    keys = [decode_key(place[_TIMER_KEY_AT:]) for place, _ in pairs]
    return keys, [int.from_bytes(place[HEAD_BYTES:_TIMER_KEY_AT], "big") - _TIME_ZERO for place, _ in pairs]


def _decode_keys(keys: list[bytes]) -> list[Key]:
    if {key[HEAD_BYTES] for key in keys} == {_TEXT_TAG}:  # the common case, without a call a key
        return [key[HEAD_BYTES + 1 :].decode() for key in keys]
    return [decode_key(key[HEAD_BYTES:]) for key in keys]


_READERS: Final[Mapping[TableLayout, Callable[[list[Pair]], tuple[list[Key], list[Any]]]]] = {
    TableLayout.VALUES: _values,
    TableLayout.MAPS: _map_entries,
    TableLayout.TIMERS: _timers,
}
