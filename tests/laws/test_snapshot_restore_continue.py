"""The law of keyed state: snapshot, restore anywhere, continue, and nobody can tell it from a plain dict.

For any sequence of operations, cuts at any places, completions that advance slice by slice in between, are
discarded or run late, restores into any number of subtasks over either backend: every read equals the read of
a dict, and every snapshot equals the dict at its cut.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from processor.contracts.snapshot_format import SnapshotFormat
from processor.contracts.state_store import KeyedState, TableSpec
from processor.ids import CheckpointId, key_groups_of, owner_of
from processor.protocol.entries import StateFile
from processor.records.key_groups import encode_key, key_group
from processor.state import map_blocks, memory_store, rocksdb_keys, rocksdb_table, snapshot
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.state.rocksdb_store import RocksDbOptions
from processor.state.stored_keys import key_bytes, normalise_key
from processor.storage.snapshot_file import SnapshotFiles
from tests.unit.state.fakes import BACKENDS, MAX_PARALLELISM, OWN_FILES, Place, PlainSnapshots

KEYS: list[Any] = ["", "a", "b", "c", b"", b"a", 0, 1, True, False, -1, (1, "a"), (True, "a"), 2**70]
TABLES = {"number": int, "items": list[int]}
MAP = TableSpec(name="map", kind=int, mapped=True)
ENTRY_KEYS: list[Any] = ["", "a", 0, True, (1, "a")]
FORMATS: dict[str, SnapshotFormat] = {"plain": PlainSnapshots(), "files": SnapshotFiles()}

Model = dict[tuple[str, bytes], Any]
"""(table, encoded key) to value: a dict of the keys themselves would take 1 and True for one. A map's value is a dict
of such kind by itself; one without entries is not there."""

values = st.one_of(
    st.tuples(st.just("number"), st.integers(-3, 3)),
    st.tuples(st.just("items"), st.lists(st.integers(0, 3), max_size=2)),
)
operations = st.one_of(
    st.tuples(st.just("put"), st.integers(0, len(KEYS) - 1), values),
    st.tuples(st.just("remove"), st.integers(0, len(KEYS) - 1), st.sampled_from(list(TABLES))),
    st.tuples(st.just("get"), st.integers(0, len(KEYS) - 1), st.sampled_from(list(TABLES))),
    st.tuples(
        st.just("entry"),
        st.integers(0, 3),
        st.tuples(st.integers(0, len(ENTRY_KEYS) - 1), st.one_of(st.none(), st.integers(-1, 3))),
    ),
    st.tuples(st.just("append"), st.integers(0, len(KEYS) - 1), st.integers(0, 9)),
    st.tuples(st.just("timer"), st.integers(0, len(KEYS) - 1), st.integers(0, 20)),
    st.tuples(st.just("fire"), st.integers(0, 20), st.none()),
    st.tuples(st.just("cut"), st.none(), st.none()),
    st.tuples(st.just("step"), st.integers(1, 4), st.none()),
    st.tuples(st.just("discard"), st.sampled_from([0, -1]), st.none()),
    st.tuples(st.just("decided"), st.none(), st.none()),
    # A cut that is written and decided at once, or while the one before is still being written: what is built on it.
    st.tuples(st.just("checkpoint"), st.booleans(), st.none()),
    st.tuples(st.just("checkpoint"), st.just(True), st.none()),
    st.tuples(st.just("pressed"), st.none(), st.none()),
    st.tuples(st.just("restore"), st.integers(1, 4), st.sampled_from(BACKENDS)),
)


class Subtasks:
    """The states of all subtasks of one step, as the engine would hold them."""

    def __init__(self, place: Place, snapshots: SnapshotFormat, root: Path) -> None:
        self._place = place
        self._backends: Mapping[str, Any] = {
            "memory": MemoryBackend(snapshots=snapshots, scratch=root / "scratch"),
            # So small a cache that generations turn over all the time.
            "rocksdb": RocksDbBackend(snapshots=snapshots, directory=root, cache_entries_max=6),
            # Every snapshot that is not of changes is the database's own files.
            OWN_FILES: RocksDbBackend(
                snapshots=snapshots,
                directory=root / "files",
                cache_entries_max=6,
                options=RocksDbOptions(own_files_min_bytes=0),
            ),
        }
        self.states: list[KeyedState] = []

    def open(self, backend: str, parallelism: int, restored: Sequence[StateFile]) -> None:
        self.close()
        for index in range(parallelism):
            mine = key_groups_of(index, parallelism, MAX_PARALLELISM)
            files = [file for file in restored if file.key_groups.intersects(mine)]
            request = self._place.request(TABLES, files, index=index, parallelism=parallelism)
            request = replace(
                request, tables=[*request.tables, MAP], described={**request.described, "map": "a map"}
            )
            self.states.append(self._backends[backend].open(request))

    def of(self, key: Any) -> KeyedState:
        return self.states[owner_of(key_group(key, MAX_PARALLELISM), len(self.states), MAX_PARALLELISM)]

    def close(self) -> None:
        for state in self.states:
            state.close()
        self.states = []


class Pending:
    """A completion of all subtasks under way, with what it has to give."""

    def __init__(self, subtasks: Subtasks, number: int, expected: Model, timers: set[Any]) -> None:
        self.expected, self.timers = dict(expected), set(timers)
        self.states = list(subtasks.states)
        self.number = number
        self.completions: list[Any] = [state.cut(CheckpointId(number)) for state in subtasks.states]
        self._work = [completion.steps() for completion in self.completions]

    def step(self) -> bool:
        """One slice of the first subtask that has any left; False when all are through."""
        return any(next(work, None) is None and not _exhausted(work) for work in self._work)

    def decided(self) -> None:
        """Its checkpoint is decided, and its subtasks hear of it."""
        for state in self.states:
            state.decided(CheckpointId(self.number))

    def result(self) -> list[StateFile]:
        return [file for completion in self.completions for file in completion.files]


def _exhausted(work: Any) -> bool:
    return work.gi_frame is None


def check_reads(subtasks: Subtasks, model: Model) -> None:
    for key in KEYS:
        for table in TABLES:
            found = subtasks.of(key).table(table).get(normalise_key(key))
            assert found == model.get((table, encode_key(key))), (table, key)
        entries = subtasks.of(key).map_table("map").entries(normalise_key(key))
        found = {key_bytes(entry_key): value for entry_key, value in entries}
        assert len(found) == len(entries), "no entry comes twice"
        assert found == model.get(("map", encode_key(key)), {}), key


@contextmanager
def small_slices() -> Iterator[None]:
    """Slices of two entries, so that a completion of a few keys has many places to be interrupted at."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (map_blocks, memory_store, rocksdb_keys, snapshot):
            patch.setattr(module, "BLOCK_ENTRIES_MAX", 2)
        patch.setattr(snapshot, "CHANGES_MIN", 4)  # so that some snapshots are whole and some are of changes
        for module in (memory_store, rocksdb_table):
            patch.setattr(module, "WRITE_ENTRIES_MAX", 2)
        patch.setattr(
            rocksdb_table, "FILE_ENTRIES_MIN", 3
        )  # so that some parts go in as files, some in batches
        yield


def run_law(steps: Sequence[Any], snapshots: SnapshotFormat, backend: str, root: Path) -> None:
    subtasks = Subtasks(Place(), snapshots, root)
    subtasks.open(backend, 2, ())
    model: Model = {}
    timers: set[tuple[int, bytes]] = set()
    pending: list[Pending] = []
    done: list[Pending] = []
    for number, (kind, one, two) in enumerate(steps, 1):
        match kind:
            case "put":
                key, (table, value) = KEYS[one], two
                subtasks.of(key).table(table).put(normalise_key(key), value)
                model[(table, encode_key(key))] = value
            case "remove":
                key = KEYS[one]
                subtasks.of(key).table(two).remove(normalise_key(key))
                model.pop((two, encode_key(key)), None)
            case "get":
                key = KEYS[one]
                found = subtasks.of(key).table(two).get(normalise_key(key))
                assert found == model.get((two, encode_key(key)))
            case "entry":
                key, (entry, value) = KEYS[one], two
                place = normalise_key(key), normalise_key(ENTRY_KEYS[entry])
                subtasks.of(key).map_table("map").keep(place, value)
                assert subtasks.of(key).map_table("map").kept(place) == value
                of_map = {**model.get(("map", encode_key(key)), {}), encode_key(ENTRY_KEYS[entry]): value}
                model["map", encode_key(key)] = {at: kept for at, kept in of_map.items() if kept is not None}
            case "append":  # what authors write: get, change in place, set
                key = KEYS[one]
                items = subtasks.of(key).table("items").get(normalise_key(key)) or []
                items.append(two)
                subtasks.of(key).table("items").put(normalise_key(key), items)
                model[("items", encode_key(key))] = list(items)
                items.append(99)  # after set: must change nothing
            case "timer":
                key = KEYS[one]
                subtasks.of(key).timers.add_event(key, two)
                timers.add((two, encode_key(key)))
            case "fire":
                due = {timer for timer in timers if timer[0] <= one}
                fired = [timer for state in subtasks.states for timer in state.timers.due_event(one)]
                assert len(fired) == len(due)
                assert {(time, encode_key(key)) for time, key in fired} == due
                timers -= due
            case "cut":
                pending.append(Pending(subtasks, number, model, timers))
            case "step":
                for _ in range(one):
                    if pending and not pending[0].step():
                        done.append(pending.pop(0))
            case "discard":
                if pending:
                    gone = pending.pop(one)
                    for completion in gone.completions:
                        completion.discard()
                    assert not gone.step()
            case "decided":
                if done:
                    done[-1].decided()
            case "checkpoint":
                pending.append(Pending(subtasks, number, model, timers))
                while pending and (one or len(pending) > 1):
                    if not pending[0].step():
                        done.append(pending.pop(0))
                if done:
                    done[-1].decided()
            case "pressed":
                for state in subtasks.states:
                    state.pressed()
            case "restore":
                while pending and pending[0].step():
                    pass
                if pending:
                    done.append(pending.pop(0))
                if done:
                    last = done[-1]
                    subtasks.open(two, one, last.result())
                    model, timers = dict(last.expected), set(last.timers)
                    pending, done = [], [last]
        check_reads(subtasks, model)
    for late in done[-3:]:
        subtasks.open("memory", 1, late.result())
        check_reads(subtasks, late.expected)
        due = {(time, encode_key(key)) for time, key in subtasks.states[0].timers.due_event(100)}
        assert due == late.timers
    subtasks.close()


@pytest.mark.parametrize("snapshots", list(FORMATS))
@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=120)
@given(steps=st.lists(operations, max_size=60))
# What is removed on top of a decided file.
@example(
    steps=[
        ("put", 1, ("number", 3)),
        ("timer", 1, 7),
        ("checkpoint", True, None),
        ("remove", 1, "number"),
        ("fire", 9, None),
        ("checkpoint", True, None),
        ("restore", 2, "rocksdb"),
    ]
)
# A checkpoint that came to nothing, and one cut before the news of the one before came: both changes go along.
@example(
    steps=[
        ("put", 1, ("number", 3)),
        ("checkpoint", True, None),
        ("put", 2, ("number", 4)),
        ("cut", None, None),
        *[("step", 4, None)] * 12,
        ("put", 3, ("number", 5)),
        ("cut", None, None),
        ("decided", None, None),
        ("put", 4, ("number", 6)),
        ("cut", None, None),
        ("restore", 3, "memory"),
    ]
)
# Entries of maps: one over a decided one, one that is removed, one of another key.
@example(
    steps=[
        ("entry", 1, (0, 1)),
        ("entry", 1, (1, 2)),
        ("entry", 2, (1, 0)),
        ("checkpoint", True, None),
        ("entry", 1, (0, None)),
        ("entry", 1, (1, 3)),
        ("checkpoint", True, None),
        ("restore", 2, "rocksdb"),
        ("entry", 1, (0, 3)),
        ("checkpoint", True, None),
        ("restore", 3, "memory"),
    ]
)
def test_b1_b2_snapshot_restore_continue_shows_what_a_dict_would_show(snapshots, backend, steps):
    with tempfile.TemporaryDirectory() as root, small_slices():
        run_law(steps, FORMATS[snapshots], backend, Path(root))
