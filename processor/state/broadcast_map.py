"""A map that every subtask of a step has alike: in memory, and written whole when it has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, cast

import msgspec

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.ids import KeyGroupRange
from processor.records.batch import Key
from processor.state.map_keys import MapKeys
from processor.state.snapshot import Block
from processor.state.stored_keys import StoredKey, author_key, author_keys, key_bytes, normalise_key
from processor.state.value_types import ValueType

K = TypeVar("K", bound=Key)
V = TypeVar("V")


class BroadcastMap(Generic[K, V]):
    """The map as records of the keyed stream see it: to be read. What comes out is a copy where it can be changed in
    place. Entries come in the order of their keys, wherever the step runs."""

    __slots__ = ("_before", "_frozen", "_kept", "_keys", "_values", "version")

    def __init__(self, keys: MapKeys, values: ValueType) -> None:
        """``values``: of a type with None kept as bytes."""
        self._keys = keys
        self._values = values
        self._kept: dict[StoredKey, Any] = {}
        """Objects, or bytes where they can be changed in place. In the hands of a snapshot: then it is copied before
        it changes."""
        self._frozen = False
        self._before: list[tuple[StoredKey, Any]] = []
        self.version = 0
        """Another one after each change."""

    def get(self, key: K, /) -> V | None:
        """The value of one entry; None when there is none, see ``in``."""
        kept = self._kept.get(self._keys.stored(key))
        return None if kept is None else self._opened(kept)

    def __contains__(self, key: K, /) -> bool:
        """Whether there is such an entry."""
        return self._keys.stored(key) in self._kept

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._kept)

    def __iter__(self) -> Iterator[K]:
        """``keys``, one by one."""
        return iter(self.keys())

    def keys(self) -> list[K]:
        """The keys of all entries."""
        return [key for key, _ in self._entries()]

    def values(self) -> list[V]:
        """The values of all entries, in the order of their keys."""
        return [self._opened(kept) for _, kept in self._entries()]

    def items(self) -> list[tuple[K, V]]:
        """Keys and values of all entries."""
        return [(key, self._opened(kept)) for key, kept in self._entries()]

    def _entries(self) -> list[tuple[K, Any]]:
        entries = [(cast(K, author_key(stored)), kept) for stored, kept in self._kept.items()]
        return sorted(entries, key=lambda entry: cast(Any, entry[0]))

    def _opened(self, kept: Any) -> V:
        return cast(V, kept if self._values.shared else self._values.opened(kept))

    # --- for the engine

    def put(self, key: Any, value: Any) -> None:
        """Raises UserCodeError for what is not of the declared types."""
        stored, of = self._keys.stored(key), self._values
        of.check(value)
        self._change(stored, value if of.shared else of.encode(value))

    def remove(self, key: Any) -> None:
        """Without effect when there is no such entry."""
        stored = self._keys.stored(key)
        if stored in self._kept:
            self._change(stored, None)

    def clear(self) -> None:
        """Remove all entries."""
        for stored in list(self._kept):
            self._change(stored, None)

    def _change(self, stored: StoredKey, kept: Any) -> None:
        if self._frozen:
            self._kept = dict(self._kept)
            self._frozen = False
        self._before.append((stored, self._kept.get(stored)))
        self._put(stored, kept)

    def _put(self, stored: StoredKey, kept: Any) -> None:
        self.version += 1
        if kept is None:
            self._kept.pop(stored, None)
        else:
            self._kept[stored] = kept

    def begin(self) -> None:
        """A record begins: what there is now is what ``undo`` goes back to."""
        self._before.clear()

    def undo(self) -> None:
        """Everything since ``begin`` was not."""
        for stored, kept in reversed(self._before):
            self._put(stored, kept)
        self._before.clear()

    def frozen(self) -> dict[StoredKey, Any]:
        """What a snapshot taken now holds, whatever comes after; in constant time."""
        self._frozen = True
        return self._kept

    def restore(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Entries out of a snapshot, before the first record."""
        kept = values if self._values.shared else map(self._values.encode, values)
        self._kept.update(zip(map(normalise_key, keys), kept, strict=True))

    def blocks(self, frozen: Any, groups: KeyGroupRange) -> Iterator[Block]:
        """What ``frozen`` gave, for a file, in an order of its own: the same content makes the same file. On any
        thread. Raises UserCodeError for what cannot be read back."""
        of = self._values
        entries = iter(sorted(frozen.items(), key=lambda entry: key_bytes(entry[0])))
        while some := list(islice(entries, BLOCK_ENTRIES_MAX)):
            kept = [value for _, value in some]
            values = kept if of.shared else [msgspec.Raw(each) for each in kept]
            of.verify(values)
            yield Block(groups=groups, keys=author_keys([key for key, _ in some]), values=values)

    @property
    def kind(self) -> Any:
        """The type of the values."""
        return self._values.kind


class Writable(Generic[K, V]):
    """The map as the records that are broadcast see it, to be changed. Every subtask is given the same of them in the
    same order; where what is written depends on nothing else, the map is the same everywhere."""

    __slots__ = ("_map",)

    def __init__(self, of: BroadcastMap[K, V]) -> None:
        self._map = of

    def set(self, key: K, value: V, /) -> None:
        """Give an entry this value, as it is now. Raises UserCodeError for what is not of the declared types."""
        self._map.put(key, value)

    def remove(self, key: K, /) -> None:
        """Leave the map without such an entry; without effect when it has none."""
        self._map.remove(key)

    def clear(self) -> None:
        """Remove all entries."""
        self._map.clear()
