"""State in this process's memory: a dict a table, from which a snapshot is whole, or of what changed.

Values are the authors' own objects where their type cannot be changed in place, and bytes where it can
(``value_types``), so that nothing an author does after the cut reaches the completion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, cast
from zlib import crc32

import msgspec

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.contracts.state_store import TableSpec
from processor.ids import KeyGroupRange
from processor.invariant import invariant
from processor.records.batch import Key
from processor.state.front import Entries
from processor.state.in_turn import MapsInTurn, ValuesInTurn
from processor.state.map_blocks import changed_map_entries, entry_key, map_block
from processor.state.map_values import MapValues
from processor.state.memory_values import MemoryValues
from processor.state.snapshot import Block, SnapshotTarget, changed_values
from processor.state.stored_keys import StoredKey, author_keys, key_bytes, normalise
from processor.state.value_types import ValueType

WRITE_ENTRIES_MAX = 8_192
"""Entries merged at once, in about half a millisecond."""


class MemoryTable:
    """Values of one state by key."""

    removed_as: Any = int

    def __init__(
        self, values: ValueType, key_groups: KeyGroupRange, max_parallelism: int, *, in_turn: bool = False
    ) -> None:
        """``in_turn``: its places are to be looked at in turn, see ``KeyedState.some``."""
        self._values = values
        self._in_turn = in_turn
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._base: dict[StoredKey, Any] = {}
        self.read = self._base.get
        """The dict's own method: S reads while C writes other keys, and both are single steps."""

    def __len__(self) -> int:
        return len(self._base)

    def write_in_steps(self, entries: Entries) -> Iterator[None]:
        base = self._base
        rest = iter(entries.items())
        # A small dict in between: pairs, or columns, would meet each key at two moments, and wait twice for memory.
        while some := dict(islice(rest, WRITE_ENTRIES_MAX)):
            found = list(some.values())
            if type(None) in set(map(type, found)):
                self._verify([value for value in found if value is not None])
                for key in [key for key, value in some.items() if value is None]:
                    del some[key]
                    base.pop(key, None)  # begun anew, it may be gone
            else:
                self._verify(found)
            base.update(some)
            yield

    def _verify(self, values: list[Any]) -> None:
        shared = self._values.shared
        self._values.verify(values if shared else [msgspec.Raw(value) for value in values])

    def front(self, *, entries_max: int) -> MemoryValues | MapValues:
        """All values stand before the store: nothing to bound."""
        return ValuesInTurn(self) if self._in_turn else MemoryValues(self)

    def entries(self) -> Iterable[tuple[StoredKey, Any]]:
        """What was restored."""
        return self._base.items()

    def blocks(self) -> Iterator[Block]:
        """All entries. Called by C, the only writer: the dict stands still meanwhile."""
        keys, values = iter(self._base.keys()), iter(self._base.values())
        shared = self._values.shared
        while some := list(islice(keys, BLOCK_ENTRIES_MAX)):
            found = list(islice(values, BLOCK_ENTRIES_MAX))
            self._check_group(some[0])
            yield Block(
                groups=self._key_groups,
                keys=author_keys(some),
                values=found if shared else [msgspec.Raw(value) for value in found],
            )

    def _check_group(self, key: StoredKey) -> None:
        """Asking for every key would cost more than the rest. One in a block shows a keyed edge that sends records
        to the wrong subtask before their state is lost in the next rescaling."""
        group = crc32(key_bytes(key)) % self._max_parallelism
        invariant(group in self._key_groups, "a key belongs to the key groups of its subtask")

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        """These entries; True with those that are no longer there."""
        return changed_values(entries, self._key_groups, shared=self._values.shared)

    @property
    def restored_as(self) -> Any:
        """The type with which a snapshot's values are to be read."""
        return self._values.kind if self._values.shared else msgspec.Raw

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Take entries of a snapshot, before the first record."""
        if not self._values.shared:
            values = [bytes(value) for value in values]
        self._base.update(zip(normalise(keys), values, strict=True))

    def forget(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Entries that are no longer there."""
        for key in normalise(keys):
            self._base.pop(key, None)


class MemoryMapTable(MemoryTable):
    """Entries of maps by their place: (key, the entry's key)."""

    removed_as: Any = bytes

    def front(self, *, entries_max: int) -> MapValues:
        """All entries stand before the store: nothing to bound."""
        return MapsInTurn(self) if self._in_turn else MapValues(self)

    def blocks(self) -> Iterator[Block]:
        """See ``MemoryTable.blocks``."""
        rest: Iterator[tuple[Any, Any]] = iter(self._base.items())
        shared = self._values.shared
        while some := list(islice(rest, BLOCK_ENTRIES_MAX)):
            places, values = zip(*some, strict=True)
            self._check_group(places[0][0])
            yield map_block(places, values, self._key_groups, shared=shared)

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        """These entries; True with those that are no longer there."""
        return changed_map_entries(entries, self._key_groups, shared=self._values.shared)

    @property
    def restored_as(self) -> Any:
        """The entry's key and its value."""
        return cast(Any, tuple)[bytes, super().restored_as]

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Take entries of a snapshot, before the first record."""
        shared = self._values.shared
        self._base.update(
            ((key, entry_key(of_entry)), value if shared else bytes(value))
            for key, (of_entry, value) in zip(normalise(keys), values, strict=True)
        )

    def forget(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Entries that are no longer there; the values are their keys."""
        for place in zip(normalise(keys), map(entry_key, values), strict=True):
            self._base.pop(place, None)


class TimerTable:
    """Timers of one kind: (key, time) by itself. Kept in memory by both backends, like their index."""

    restored_as = int
    removed_as = int

    def __init__(self, key_groups: KeyGroupRange) -> None:
        self._key_groups = key_groups
        self._base: dict[StoredKey, Any] = {}
        self.read = self._base.get

    def __len__(self) -> int:
        return len(self._base)

    def write_in_steps(self, entries: Entries) -> Iterator[None]:
        base = self._base
        for some in _slices(entries):
            for key, value in some:
                if value is None:
                    base.pop(key, None)
                else:
                    base[key] = value
            yield

    def entries(self) -> Iterable[tuple[StoredKey, Any]]:
        """What was restored."""
        return self._base.items()

    def blocks(self) -> Iterator[Block]:
        timers: Iterator[Any] = iter(self._base)
        while some := list(islice(timers, BLOCK_ENTRIES_MAX)):
            yield Block(
                groups=self._key_groups,
                keys=author_keys([key for key, _ in some]),
                values=[time for _, time in some],
            )

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        """These timers; True with those that have fired."""
        rest: Iterator[Any] = iter(entries.items())
        while some := list(islice(rest, BLOCK_ENTRIES_MAX)):
            for removed in (False, True):
                timers = [timer for timer, value in some if (value is None) is removed]
                if timers:
                    block = Block(
                        groups=self._key_groups,
                        keys=author_keys([key for key, _ in timers]),
                        values=[time for _, time in timers],
                    )
                    yield removed, block

    def forget(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Timers that have fired."""
        for timer in zip(normalise(keys), values, strict=True):
            self._base.pop(timer, None)

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        self._base.update((timer, True) for timer in zip(normalise(keys), values, strict=True))

    def timers(self) -> Iterator[tuple[StoredKey, int]]:
        """What was restored, for the index."""
        yield from self._base  # type: ignore[misc]


class MemoryStore:
    """Makes the tables of one step in one subtask."""

    def __init__(self, key_groups: KeyGroupRange, max_parallelism: int) -> None:
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism

    def open_table(self, spec: TableSpec, values: ValueType) -> MemoryTable:
        of = MemoryMapTable if spec.mapped else MemoryTable
        return of(values, self._key_groups, self._max_parallelism, in_turn=spec.left_of is not None)

    def open_timers(self, name: str) -> TimerTable:
        return TimerTable(self._key_groups)

    def own_files(self, target: SnapshotTarget) -> None:
        """A dict has no files."""

    def begin_snapshot(self) -> None:
        """Nothing to hold on to: only completions change the tables, and there is one at a time."""

    def end_snapshot(self) -> None:
        """See ``begin_snapshot``."""

    def restored(self) -> None:
        """All of the snapshots are in."""

    def close(self) -> None:
        """Memory goes with its last reference."""


def _slices(entries: Entries) -> Iterator[list[tuple[StoredKey, Any]]]:
    rest = iter(entries.items())
    while some := list(islice(rest, WRITE_ENTRIES_MAX)):
        yield some
