"""Keyed state as a checkpoint holds it: its files, each with what changed after the one before, put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import REMOVED, SnapshotEntries
from processor.ids import KeyGroupRange, StepName
from processor.protocol.entries import CheckpointEntry, StateFile, SubtaskSnapshot
from processor.records.batch import Key
from processor.state.held_entries import StateReader
from processor.state.map_blocks import entry_key
from processor.state.rocksdb_directory import LocalDirectories, default_root
from processor.state.stored_keys import StoredKey, author_key, normalise_key
from processor.storage.snapshot_file import SnapshotFiles


def held_values(
    entry: CheckpointEntry, files: FileStore, step: StepName, state: str, kind: Any
) -> Iterator[tuple[Key, Any]]:
    """Every key with its value, subtask by subtask, of which each is read whole before its first is handed out.

    Raises DamagedFile by name; JobError for values that cannot be read as ``kind``.
    """
    for subtask in entry.subtasks:
        held: dict[StoredKey, Any] = {}
        for block in _blocks(entry, files, subtask, step, state, kind, gone=int):
            keys = map(normalise_key, block.keys)
            if block.table == state:
                held.update(zip(keys, block.values, strict=True))
            else:
                for key in keys:
                    held.pop(key, None)
        for stored, value in held.items():
            yield author_key(stored), value


def held_maps(
    entry: CheckpointEntry, files: FileStore, step: StepName, state: str, kind: Any
) -> Iterator[tuple[Key, dict[Key, Any]]]:
    """Every key with its map, as ``held_values``; ``kind`` is the type of the entries' values."""
    for subtask in entry.subtasks:
        held: dict[StoredKey, dict[StoredKey, Any]] = {}
        for block in _blocks(entry, files, subtask, step, state, cast(Any, tuple)[bytes, kind], gone=bytes):
            keys = map(normalise_key, block.keys)
            if block.table == state:
                for key, (place, value) in zip(keys, block.values, strict=True):
                    held.setdefault(key, {})[entry_key(place)] = value
            else:
                for key, place in zip(keys, block.values, strict=True):
                    held.get(key, {}).pop(entry_key(place), None)
        for stored, entries in held.items():
            if entries:
                yield author_key(stored), {author_key(place): value for place, value in entries.items()}


def held_of_subtasks(
    entry: CheckpointEntry, files: FileStore, step: StepName, state: str, kind: Any, *, all_alike: bool
) -> Iterator[tuple[Key, Any]]:
    """What belongs to subtasks and to no key: of a list every item under (subtask, place), of what all have alike
    that of the first. Raises like ``held_values``."""
    everything = KeyGroupRange(0, entry.shape.max_parallelism)
    owners = [
        (subtask.subtask.index, held)
        for subtask in entry.subtasks
        for held in subtask.operators
        if held.step == step
    ]
    owners.sort(key=lambda owner: owner[0])
    reader = StateReader(files=files, format=SnapshotFiles(), scratch=LocalDirectories(default_root()))
    for index, held in owners[:1] if all_alike else owners:
        for block in reader.entries(held, everything, {state: kind}, others=True):
            for key, value in zip(block.keys, block.values, strict=True):
                yield (key if all_alike else (index, cast(int, key))), value


def held_times(
    entry: CheckpointEntry, files: FileStore, step: StepName, table: str
) -> Iterator[tuple[int, Key]]:
    """(time in ms, key) of every timer of one of TIMER_TABLES. Raises DamagedFile by name."""
    for subtask in entry.subtasks:
        held: dict[tuple[int, StoredKey], None] = {}
        for block in _blocks(entry, files, subtask, step, table, int, gone=int):
            timers = zip(block.values, map(normalise_key, block.keys), strict=True)
            if block.table == table:
                held.update(dict.fromkeys(timers))
            else:
                for timer in timers:
                    held.pop(timer, None)
        for time_ms, stored in held:
            yield time_ms, author_key(stored)


def _blocks(
    entry: CheckpointEntry,
    files: FileStore,
    subtask: SubtaskSnapshot,
    step: StepName,
    table: str,
    kind: Any,
    *,
    gone: Any,
) -> Iterator[SnapshotEntries]:
    """Blocks of a table and of what was removed from it, in the order of the files, their values of type ``kind``
    and ``gone``."""
    everything = KeyGroupRange(0, entry.shape.max_parallelism)
    reader = StateReader(files=files, format=SnapshotFiles(), scratch=LocalDirectories(default_root()))
    for held in files_of(subtask, step):
        yield from reader.entries(held, everything, {table: kind, table + REMOVED: gone}, others=True)


def files_of(subtask: SubtaskSnapshot, step: StepName) -> Sequence[StateFile]:
    """The files of a step in one subtask, in order."""
    return [held for held in subtask.keyed if held.step == step]
