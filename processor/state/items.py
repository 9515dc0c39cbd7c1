"""A list of one subtask, of no key: in memory, and written whole into a checkpoint when it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.ids import KeyGroupRange
from processor.records.batch import Key
from processor.state.snapshot import Block
from processor.state.value_types import ValueType

T = TypeVar("T")


class Items(Generic[T]):
    """The list of this subtask. What comes out is a copy where it can be changed in place: changing it changes no
    state."""

    __slots__ = ("_at_start", "_kept", "_values", "version")

    def __init__(self, values: ValueType) -> None:
        self._values = values
        self._kept: list[Any] = []
        """Objects, or bytes where they can be changed in place. Only ever appended to: what else is to be becomes
        another list. So a list and a length are what it was at a moment."""
        self._at_start = (self._kept, 0)
        self.version = 0
        """Another one after each change."""

    def get(self) -> list[T]:
        """All items."""
        if self._values.shared:
            return list(self._kept)
        return [self._values.opened(kept) for kept in self._kept]

    def __iter__(self) -> Iterator[T]:
        """``get``, one by one."""
        return iter(self.get())

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._kept)

    def append(self, value: T) -> None:
        """Put a value, as it is now, at the end. Raises UserCodeError for one that is not of the declared type."""
        self.extend((value,))

    def extend(self, values: Iterable[T]) -> None:
        """``append`` of each."""
        kept = self._checked(values)
        if kept:
            self._kept += kept
            self.version += 1

    def set(self, values: Iterable[T]) -> None:
        """Let these be all items. Raises like ``append``."""
        self._kept = self._checked(values)
        self.version += 1

    def clear(self) -> None:
        """Let there be none."""
        self.set(())

    def _checked(self, values: Iterable[T]) -> list[Any]:
        of = self._values
        kept: list[Any] = []
        for value in values:
            of.check(value)
            kept.append(value if of.shared else of.encode(value))
        return kept

    # --- for the engine

    def begin(self) -> None:
        """A record begins: what there is now is what ``undo`` goes back to."""
        self._at_start = (self._kept, len(self._kept))

    def undo(self) -> None:
        """Everything since ``begin`` was not."""
        self._kept, length = self._at_start
        del self._kept[length:]
        self.version += 1

    def frozen(self) -> tuple[list[Any], int]:
        """What a snapshot taken now holds, whatever comes after; in constant time."""
        return self._kept, len(self._kept)

    def restore(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Further items out of a snapshot, before the first record; the keys are their places there."""
        self._kept += self._checked(values)

    def blocks(self, frozen: Any, groups: KeyGroupRange) -> Iterator[Block]:
        """What ``frozen`` gave, for a file; on any thread. Raises UserCodeError for what cannot be read back."""
        of, at = self._values, 0
        kept = islice(*frozen)
        while some := list(islice(kept, BLOCK_ENTRIES_MAX)):
            values = some if of.shared else [msgspec.Raw(each) for each in some]
            of.verify(values)
            yield Block(groups=groups, keys=range(at, at + len(some)), values=values)
            at += len(some)

    @property
    def kind(self) -> Any:
        """The type of the values."""
        return self._values.kind
