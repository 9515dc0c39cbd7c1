"""All tables and timers of one step in one subtask, over any store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, TypeAlias

import msgspec

from processor.contracts.completion import Completion
from processor.contracts.snapshot_format import REMOVED, TIMER_DESCRIPTION, TIMER_TABLES, SnapshotWriter
from processor.contracts.state_store import (
    NOTHING_OVER,
    KeyedStateRequest,
    KeyedTable,
    MapTable,
    TableSpec,
)
from processor.fault_points import FaultPoint
from processor.ids import CheckpointId, FileRef
from processor.invariant import invariant
from processor.protocol.entries import StateFile
from processor.records.batch import Key
from processor.state.batch_cache import BatchCache
from processor.state.front import FrozenPart, StoreTable
from processor.state.held_entries import StateReader
from processor.state.in_turn import MapsInTurn, ValuesInTurn
from processor.state.map_cache import MapCache
from processor.state.map_values import MapValues
from processor.state.memory_store import TimerTable
from processor.state.memory_values import MemoryValues
from processor.state.restored_values import RestoredValues
from processor.state.snapshot import (
    BlockSource,
    Chain,
    Changes,
    CompletionLane,
    SnapshotCompletion,
    SnapshotStore,
    SnapshotTarget,
)
from processor.state.stamped_blocks import BlocksLeft
from processor.state.timers import StepTimers, TimerQueue
from processor.state.value_types import ValueType, value_type

AnyFront: TypeAlias = BatchCache | MemoryValues | MapValues


class StoredTable(StoreTable, BlockSource, Protocol):
    """One table as the completion's thread sees it."""

    @property
    def restored_as(self) -> Any:
        """The type with which a snapshot's values are to be read for it."""
        ...

    @property
    def removed_as(self) -> Any:
        """Likewise for entries that are no longer there."""
        ...

    def restore(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Take entries of a snapshot, before the first record; they replace what is there."""
        ...

    def forget(self, keys: list[Key], values: Iterable[Any]) -> None:
        """Entries that are no longer there; for timers the values are their times, for maps the entries' keys."""
        ...


class OpenTable(StoredTable, Protocol):
    """One table of a store, which knows what stands before it for the subtask's thread."""

    def front(self, *, entries_max: int) -> AnyFront:
        """What the subtask's thread reads and writes; ``entries_max`` bounds it where the store is on disk."""
        ...


class Store(SnapshotStore, Protocol):
    """Where the tables of one step in one subtask are."""

    def open_table(self, spec: TableSpec, values: ValueType) -> OpenTable: ...

    def open_timers(self, name: str) -> TimerTable: ...

    def restored(self) -> None:
        """All of the snapshots are in."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Undecided:
    """A cut whose checkpoint may yet come to nothing."""

    checkpoint: CheckpointId
    frozen: Sequence[FrozenPart | None]
    """What changed up to it since the cut before, for each table; None where nothing did."""
    completion: SnapshotCompletion


class StepState:
    """The KeyedState of both backends."""

    def __init__(
        self,
        request: KeyedStateRequest,
        store: Store,
        reader: StateReader,
        *,
        cache_entries_max: int | None,
        goes_on: bool = False,
        lock: Callable[[], AbstractContextManager[object]] = Lock,
    ) -> None:
        """``cache_entries_max`` bounds what is held decoded over a store on disk; None: the store is
        memory. ``goes_on``: the store has what is restored already, in its own files. ``lock`` makes a lock between
        the subtask's thread and the completions'."""
        self._request = request
        self._store = store
        self._reader = reader
        self._entries_max = cache_entries_max
        self._lane = CompletionLane(lock)
        self._cuts = 0
        # The files of a database that goes on with them are its own, and of a decided checkpoint.
        self._chain = Chain(files=tuple(request.restored)) if goes_on else Chain()
        self._undecided: list[_Undecided] = []
        share = max(1, (cache_entries_max or 0) // max(1, len(request.tables)))
        self._opened: dict[str, StoredTable] = {}
        self._caches: dict[str, AnyFront] = {}
        self._handles: dict[str, KeyedTable[Any]] = {}
        self._maps: dict[str, MapTable] = {}
        self._described: list[tuple[str, str]] = []
        self._values: dict[str, ValueType] = {}
        self._specs = {spec.name: spec for spec in request.tables}
        for spec in request.tables:
            values = self._values[spec.name] = value_type(
                spec.kind,
                step=request.step,
                state=spec.name,
                declared=request.described[spec.name],
                as_bytes=spec.as_bytes,
            )
            table = store.open_table(spec, values)
            cache = table.front(entries_max=share)
            self._add(spec.name, request.described[spec.name], table, cache)
            if isinstance(cache, MapCache | MapValues):
                self._maps[spec.name] = _Map(cache)
            else:
                self._handles[spec.name] = (
                    _ObjectTable(cache, values) if values.shared else _Sealed(cache, values)
                )
        event, processing = map(store.open_timers, TIMER_TABLES)
        timers = [MemoryValues(event), MemoryValues(processing)]
        for name, kept, front in zip(TIMER_TABLES, (event, processing), timers, strict=True):
            self._add(name, TIMER_DESCRIPTION, kept, front)
        if not goes_on:
            self._read()
        store.restored()
        for cache in self._caches.values():
            cache.restored()
        self._timers = StepTimers(
            TimerQueue(timers[0], event.timers()), TimerQueue(timers[1], processing.timers())
        )

    def table(self, name: str) -> KeyedTable[Any]:
        """The table of a declared state. Keys are given in stored form (``stored_keys.normalise``)."""
        invariant(name in self._handles, f"the step declared the state '{name}' it asks for")
        return self._handles[name]

    def map_table(self, name: str) -> MapTable:
        """Likewise of a declared map."""
        invariant(name in self._maps, f"the step declared the map '{name}' it asks for")
        return self._maps[name]

    @property
    def timers(self) -> StepTimers:
        return self._timers

    def some(self, name: str, places_max: int) -> Sequence[tuple[Any, Any]]:
        """See ``KeyedState.some``."""
        cache = self._caches[name]
        invariant(isinstance(cache, ValuesInTurn | MapsInTurn | BatchCache), "only of state that expires")
        assert isinstance(cache, ValuesInTurn | MapsInTurn | BatchCache)
        return cache.some(places_max)

    def cut(
        self, checkpoint: CheckpointId, over_ms: Mapping[str, int] = NOTHING_OVER
    ) -> Completion[tuple[StateFile, ...]]:
        """Swap dicts and remember references: microseconds, whatever the size of the state."""
        frozen = [cache.freeze() for cache in self._caches.values()]
        self._cuts += 1
        # The token is drawn here, in the thread that draws all others, so that a seeded run repeats itself.
        name = f"{self._request.file_prefix}{self._request.token()}.state"
        completion = SnapshotCompletion(
            number=self._cuts,
            lane=self._lane,
            parts=[part for cache in self._caches.values() for part in cache.unwritten_parts()],
            changes=self._changes(frozen),
            store=self._store,
            tables=[self._whole(name, table, over_ms) for name, table in self._opened.items()],
            create=self._creator(name),
            target=self._target(name),
            describe=self._describe,
        )
        self._undecided.append(_Undecided(checkpoint=checkpoint, frozen=frozen, completion=completion))
        return completion

    def _whole(self, name: str, table: StoredTable, over_ms: Mapping[str, int]) -> BlockSource:
        return BlocksLeft(table, self._specs[name], over_ms[name]) if name in over_ms else table

    def _changes(self, frozen: Sequence[FrozenPart | None]) -> Changes:
        """All that was frozen since the newest checkpoint known to be decided, this cut's included: a file of
        an undecided one may be garbage, so nothing is built on it (R22)."""
        cuts = [*(undecided.frozen for undecided in self._undecided), frozen]
        return Changes(
            chain=self._chain,
            parts=[
                [part for cut in cuts if (part := cut[number]) is not None]
                for number in range(len(self._caches))
            ],
        )

    def start_anew(self) -> None:
        """See ``KeyedState.start_anew``."""
        self._chain = Chain()

    def decided(self, checkpoint: CheckpointId) -> None:
        """See ``KeyedState.decided``."""
        for index, undecided in enumerate(self._undecided):
            if undecided.checkpoint == checkpoint:
                invariant(undecided.completion.chain is not None, "what is decided was written")
                assert undecided.completion.chain is not None
                self._chain = undecided.completion.chain
                del self._undecided[: index + 1]
                return

    def pressed(self) -> bool:
        """To be asked once a batch; it also takes notice of what completions have written meanwhile."""
        unwritten = 0
        for cache in self._caches.values():
            cache.settle()
            unwritten += cache.unwritten_entries()
        return self._entries_max is not None and unwritten >= self._entries_max

    def close(self) -> None:
        """Give up what is held; a completion under way ends at its next slice. Idempotent."""
        self._lane.closed = True
        with self._lane.slice_lock:
            self._store.close()

    def _add(self, name: str, described: str, table: StoredTable, cache: AnyFront) -> None:
        self._opened[name] = table
        self._described.append((name, described))
        self._caches[name] = cache

    def _creator(self, name: str) -> Callable[[bool], SnapshotWriter]:
        request = self._request
        removed = [(table + REMOVED, "removed") for table, _ in self._described]
        return lambda whole: self._reader.format.create(
            request.files.create(name),
            step=request.step,
            max_parallelism=request.max_parallelism,
            key_groups=request.key_groups,
            tables=self._described if whole else [*self._described, *removed],
        )

    def _describe(self, file: FileRef) -> StateFile:
        request = self._request
        return StateFile(
            step=request.step, file=file, key_groups=request.key_groups, states=dict(request.described)
        )

    def _target(self, name: str) -> SnapshotTarget:
        request = self._request
        return SnapshotTarget(
            files=request.files,
            format=self._reader.format,
            name=name,
            step=request.step,
            states=request.described,
            tables=self._described,
            max_parallelism=request.max_parallelism,
            key_groups=request.key_groups,
            known=self._chain.known,
        )

    def _read(self) -> None:
        request = self._request
        half_read = False
        for state in request.restored:
            tables = {state.kept_as.get(name, name): name for name in self._opened}
            readers = {kept: self._values_in(name, state) for kept, name in tables.items()}
            codecs = {kept: reader.kind for kept, reader in readers.items()}
            codecs |= {kept + REMOVED: self._opened[name].removed_as for kept, name in tables.items()}
            for entries in self._reader.entries(state, request.key_groups, codecs):
                kept = entries.table.removesuffix(REMOVED)
                table = self._opened[tables[kept]]
                if kept == entries.table:
                    table.restore(list(entries.keys), readers[kept].read(entries.values))
                else:
                    table.forget(list(entries.keys), entries.values)
                if not half_read:
                    request.faults(FaultPoint.RECOVERY_STATE_HALF_READ)
                    half_read = True

    def _values_in(self, name: str, state: StateFile) -> RestoredValues:
        """How values of a table are read from a file."""
        as_kept = self._opened[name].restored_as
        evolved = name in self._values and state.states.get(name) != self._request.described[name]
        return RestoredValues(as_kept, self._values[name] if evolved else None)


class _Map:
    """Maps, each entry as it is kept."""

    __slots__ = ("entries", "keep", "kept")

    def __init__(self, cache: MapCache | MapValues) -> None:
        self.kept: Callable[[Any], Any] = cache.get
        self.keep: Callable[[Any, Any], None] = cache.put
        self.entries = cache.entries


class _ObjectTable:
    """Values that cannot be changed in place, as the objects the author set."""

    __slots__ = ("get", "keep", "kept", "put", "remove")

    def __init__(self, cache: BatchCache | MemoryValues, values: ValueType) -> None:
        self.get: Callable[[Any], Any] = cache.get
        self.kept: Callable[[Any], Any] = cache.get
        self.keep: Callable[[Any, Any], None] = cache.put
        self.remove: Callable[[Any], None] = cache.remove
        self.put: Callable[[Any, Any], None] = (
            cache.put if values.classes is None else cache.checked_put(values.classes, values.misfit)
        )


class _Sealed:
    """Values that can be changed in place, kept as bytes: ``get`` gives a copy, ``put`` takes one."""

    __slots__ = ("_cache", "_decode", "_encode", "_values", "keep", "kept")

    def __init__(self, cache: BatchCache | MemoryValues, values: ValueType) -> None:
        self._cache = cache
        self.kept: Callable[[Any], Any] = cache.get
        self.keep: Callable[[Any, Any], None] = cache.put
        self._values = values
        self._encode = values.encode
        self._decode = values.decoder.decode

    def get(self, key: Any) -> Any:
        data = self._cache.get(key)
        if data is None:
            return None
        try:
            return self._decode(data)
        except msgspec.MsgspecError as error:  # it was set to something else than was declared
            raise self._values.misfit(msgspec.Raw(data), str(error)) from error

    def put(self, key: Any, value: Any) -> None:
        self._cache.put(key, None if value is None else self._encode(value))

    def remove(self, key: Any) -> None:
        self._cache.remove(key)
