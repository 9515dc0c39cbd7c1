"""A table of state that expires, as a whole snapshot takes it: without what is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from processor.contracts.state_store import TableSpec
from processor.invariant import invariant
from processor.state.front import Entries
from processor.state.snapshot import Block, BlockSource


class BlocksLeft:
    """See ``BlockSource``. Changes are left as they are: what is over in them is over for whoever reads them, too."""

    def __init__(self, table: BlockSource, spec: TableSpec, over_ms: int) -> None:
        """What was touched at ``over_ms`` or earlier is over."""
        invariant(spec.left_of is not None, "only state that expires leaves anything out")
        assert spec.left_of is not None
        self._table = table
        self._left_of = spec.left_of
        self._mapped = spec.mapped
        self._over_ms = over_ms

    def blocks(self) -> Iterator[Block]:
        for block in self._table.blocks():
            left = [self._left(value) for value in block.values]
            there = [(key, value) for key, value in zip(block.keys, left, strict=True) if value is not None]
            if there:
                keys, values = zip(*there, strict=True)
                yield Block(groups=block.groups, keys=keys, values=values)

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        return self._table.changes(entries)

    def _left(self, value: Any) -> Any:
        """What is left of a value as it stands in a block: of a map beside the entry's key, as bytes undecoded."""
        entry_key, kept = value if self._mapped else (None, value)
        encoded = isinstance(kept, msgspec.Raw)
        kept = bytes(kept) if encoded else kept
        left = self._left_of(kept, self._over_ms)
        if left is kept:
            return value
        if left is None:
            return None
        left = msgspec.Raw(left) if encoded else left
        return (entry_key, left) if self._mapped else left
