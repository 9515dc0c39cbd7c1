"""Keyed state of one step in one subtask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from processor.contracts.completion import Completion
from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import SnapshotFormat
from processor.fault_points import FaultHook, no_faults
from processor.ids import CheckpointId, KeyGroupRange, StepName
from processor.protocol.entries import StateFile
from processor.records.batch import Key

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """One declared state: its name within the step and the type of its values."""

    name: str
    kind: Any
    """A type msgspec can encode and decode."""
    mapped: bool = False
    """Under each key there are entries with keys of their own, each with a value of this type."""
    as_bytes: bool = False
    """Values are kept as bytes, also where they cannot be changed in place."""
    left_of: Callable[[Any, int], Any] | None = None
    """Of state that expires: given something kept and a time in ms, what is left of it when what was touched then or
    earlier is over: the same object, another one, or None for nothing. None: it does not expire."""


class KeptTable(Protocol):
    """Values as they are kept: the objects themselves, or their bytes where they can be changed in place."""

    def kept(self, key: Any) -> Any:
        """What is kept there; None: nothing."""
        ...

    def keep(self, key: Any, kept: Any) -> None:
        """Keep this instead; None removes."""
        ...


class KeyedTable(KeptTable, Protocol[T]):
    """Values by key. Absent is None from ``get``; falsy and empty values are values like any other.

    Keys are given in stored form: a step calls ``state.stored_keys.normalise`` once on the keys of a batch.
    As Python compares them, True would be read and written as 1. Timers take and give authors' keys.
    """

    def get(self, key: Key) -> T | None: ...

    def put(self, key: Key, value: T) -> None: ...

    def remove(self, key: Key) -> None: ...


class MapTable(KeptTable, Protocol):
    """Maps by key. The place of an entry is (key, the entry's key), both in stored form."""

    def entries(self, key: Any) -> list[tuple[Any, Any]]:
        """All entries of one key: the entry's key in stored form, and what is kept. In no particular order."""
        ...


NOTHING_OVER: Final[Mapping[str, int]] = MappingProxyType({})


class Tables(Protocol):
    """The tables of a step by the names of its states."""

    def table(self, name: str) -> KeyedTable[Any]: ...

    def map_table(self, name: str) -> MapTable: ...


class Timers(Protocol):
    """Timers of all keys, de-duplicated by (kind, key, time), part of every snapshot (B6)."""

    def add_event(self, key: Key, time_ms: int) -> None: ...

    def add_processing(self, key: Key, time_ms: int) -> None: ...

    def due_event(self, watermark_ms: int) -> Iterator[tuple[int, Key]]:
        """Take event-time timers with time <= watermark in (time, encoded key) order, those included that
        are added while iterating and are due."""
        ...

    def due_processing(self, now_ms: int) -> Iterator[tuple[int, Key]]: ...

    def next_processing_ms(self) -> int | None: ...


class KeyedState(Tables, Protocol):
    """All tables and timers of one step in one subtask. One thread, but for the completions."""

    @property
    def timers(self) -> Timers: ...

    def cut(
        self, checkpoint: CheckpointId, over_ms: Mapping[str, int] = NOTHING_OVER
    ) -> Completion[tuple[StateFile, ...]]:
        """Freeze what changed since the last cut: bounded, no I/O. The files together hold the state as it is
        now, each on top of the ones before it. Completions run one after another, in the order of their cuts,
        possibly on another thread; a discarded one is folded into the next.

        ``over_ms``: of states that expire, the time at or before which what was touched is over; a whole snapshot
        leaves it out."""
        ...

    def some(self, name: str, places_max: int) -> Sequence[tuple[Any, Any]]:
        """Of a state that expires: some places with what is kept there, others each time, all of them in turn. Work
        for so many places, however many there are."""
        ...

    def start_anew(self) -> None:
        """The next cut builds on no files that are there; and the one after it, unless it was decided."""
        ...

    def decided(self, checkpoint: CheckpointId) -> None:
        """The checkpoint is decided: later ones may build on its files (R22)."""
        ...

    def pressed(self) -> bool:
        """The cache is full of state that only a completion may write: stop the sources until then."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedStateRequest:
    """What a step asks of a backend when it opens."""

    step: StepName
    subtask_index: int
    max_parallelism: int
    key_groups: KeyGroupRange
    tables: Sequence[TableSpec]
    described: Mapping[str, str]
    """States with a description of their type, as the manifest keeps them."""
    files: FileStore
    file_prefix: str
    token: Callable[[], str]
    restored: Sequence[StateFile]
    """Files whose ranges meet ``key_groups``; keys outside are left out."""
    faults: FaultHook = field(default=no_faults)


class StateBackend(Protocol):
    """Memory or RocksDB, chosen by a setting."""

    @property
    def name(self) -> str: ...

    @property
    def snapshots(self) -> SnapshotFormat:
        """How files of state are laid out."""
        ...

    def open(self, request: KeyedStateRequest) -> KeyedState:
        """An empty state, or one with what ``restored`` holds. Raises DamagedFile by name."""
        ...
