"""Entries of maps on their way into a snapshot and back: under the map's key, with the entry's key beside the value.

So a reader finds the key group as for any other state, and both stores write the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.ids import KeyGroupRange
from processor.records.key_groups import decode_key
from processor.state.front import Entries
from processor.state.snapshot import Block
from processor.state.stored_keys import StoredKey, author_keys, key_bytes, normalise_key


def map_block(places: Sequence[Any], values: Sequence[Any], groups: KeyGroupRange, *, shared: bool) -> Block:
    """Places (key, the entry's key) and what is kept there; ``shared``: objects, not bytes."""
    kept = values if shared else map(msgspec.Raw, values)
    return Block(
        groups=groups,
        keys=author_keys([key for key, _ in places]),
        values=[(key_bytes(place[1]), value) for place, value in zip(places, kept, strict=True)],
    )


def changed_map_entries(
    entries: Entries, groups: KeyGroupRange, *, shared: bool
) -> Iterator[tuple[bool, Block]]:
    """``BlockSource.changes`` of a table of maps."""
    rest: Iterator[tuple[Any, Any]] = iter(entries.items())
    while some := list(islice(rest, BLOCK_ENTRIES_MAX)):
        there = [(place, value) for place, value in some if value is not None]
        gone = [place for place, value in some if value is None]
        if there:
            places, values = zip(*there, strict=True)
            yield False, map_block(places, values, groups, shared=shared)
        if gone:
            yield (
                True,
                Block(
                    groups=groups,
                    keys=author_keys([key for key, _ in gone]),
                    values=[key_bytes(entry_key) for _, entry_key in gone],
                ),
            )


def entry_key(data: bytes) -> StoredKey:
    """The stored form of an entry's key, from a snapshot or RocksDB."""
    return normalise_key(decode_key(data))
