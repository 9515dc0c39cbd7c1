"""Snapshots of RocksDB in its own files: what is shared, what goes up, what is refused, what is left (R22, A17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from processor.contracts.state_store import KeyedState
from processor.errors import DamagedFile, Unavailable
from processor.fault_points import FaultPoint
from processor.ids import CheckpointId, FileRef
from processor.state import snapshot
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.directory_files import DirectoryFiles
from processor.storage.disk import Disk
from processor.storage.snapshot_file import SnapshotFiles
from tests.unit.state.fakes import BACKENDS, OWN_FILES, Place, make_backend

TABLES = {"n": int}


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def states(tmp_path: Path, place: Place) -> Iterator[Callable[..., KeyedState]]:
    opened: list[KeyedState] = []

    def open_(
        restored: Any = (), *, backend: str = OWN_FILES, tables: Any = TABLES, **more: Any
    ) -> KeyedState:
        opened.append(make_backend(backend, tmp_path / "local").open(place.request(tables, restored, **more)))
        return opened[-1]

    yield open_
    for state in opened:
        state.close()
    assert not [
        path for path in tmp_path.rglob("*") if path.name != ".processor-state.lock" and path.is_file()
    ]


def cut(state: Any, number: int) -> Any:
    return state.cut(CheckpointId(number))


def checkpoint(state: Any, number: int, **values: int) -> Any:
    """Put the values, take a checkpoint, and have it decided."""
    for key, value in values.items():
        state.table("n").put(key, value)
    (file,) = cut(state, number).run()
    state.decided(CheckpointId(number))
    return file


def sorted_files(state_file: Any) -> set[str]:
    return {each.file.name for each in state_file.database}


def test_b2_only_new_files_go_up_and_the_others_are_listed_again(states, place):
    state = states()
    first = checkpoint(state, 1, a=1)
    before = set(place.files.content)
    second = checkpoint(state, 2, b=2)
    assert sorted_files(first) < sorted_files(second)
    new = set(place.files.content) - before
    assert new == {second.file.name, *sorted_files(second) - sorted_files(first)}
    assert set(place.files.content) == {ref.name for ref in (*first.files(), *second.files())}


def test_what_did_not_change_costs_nothing(states, place):
    state = states()
    first = checkpoint(state, 1, a=1)
    before = set(place.files.content)
    assert checkpoint(state, 2) == first
    assert set(place.files.content) == before


def test_r22_files_of_an_undecided_checkpoint_are_not_listed_again(states):
    state = states()
    first = checkpoint(state, 1, a=1)
    state.table("n").put("b", 2)
    (undecided,) = cut(state, 2).run()
    state.table("n").put("c", 3)
    (third,) = cut(state, 3).run()
    assert sorted_files(undecided) & sorted_files(third) == sorted_files(first)
    assert {each.local_name for each in undecided.database} < {each.local_name for each in third.database}
    assert states([third]).table("n").get("b") == 2


def test_r22_two_restores_of_one_checkpoint_give_one_local_name_to_two_files(states):
    first = checkpoint(states(), 1, a=1)
    one, two = states([first]), states([first])
    held = [checkpoint(one, 2, b=1), checkpoint(two, 2, b=2)]
    by_name = [{each.local_name: each.file for each in file.database} for file in held]
    shared = [name for name in by_name[0] if name in by_name[1] and by_name[0][name] != by_name[1][name]]
    assert shared, "this is what the rule is about"
    for value, file in enumerate(held, 1):
        assert sorted_files(first) < sorted_files(file), "a restored database goes on with the files it has"
        again = states([file])
        assert (again.table("n").get("a"), again.table("n").get("b")) == (1, value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_own_files_restore_anywhere(states, backend, parallelism):
    state = states()
    state.timers.add_event("t", 5)
    state.timers.add_processing("t", -7)
    file = checkpoint(state, 1, **{f"k{number}": number for number in range(50)})
    found: dict[str, int] = {}
    for index in range(parallelism):
        part = states([file], backend=backend, index=index, parallelism=parallelism)
        for number in range(50):
            if (value := part.table("n").get(f"k{number}")) is not None:
                found[f"k{number}"] = value
        found |= {f"event {key}": time for time, key in part.timers.due_event(10)}
        found |= {f"processing {key}": time for time, key in part.timers.due_processing(10)}
    assert found == {f"k{number}": number for number in range(50)} | {"event t": 5, "processing t": -7}


def test_a_timer_that_has_fired_is_not_in_the_files(states):
    state = states()
    state.timers.add_event("t", 5)
    state.timers.add_event("t", 9)
    checkpoint(state, 1)
    assert list(state.timers.due_event(5)) == [(5, "t")]
    again = states([checkpoint(state, 2)])
    assert list(again.timers.due_event(100)) == [(9, "t")]
    assert list(states([checkpoint(again, 3)]).timers.due_event(100)) == []


def test_a_state_that_was_added_or_moved_finds_its_table(states):
    file = checkpoint(states(tables={"n": int, "old": int}), 1, a=1)
    more = states([file], tables={"added": int, "old": int, "n": int})
    assert more.table("n").get("a") == 1
    more.table("added").put("a", 2)
    more.table("old").put("a", 3)
    again = states([checkpoint(more, 2)], tables={"n": int, "old": int, "added": int}, backend="memory")
    assert [again.table(name).get("a") for name in ("n", "added", "old")] == [1, 2, 3]


def test_a_state_that_is_gone_is_named(states):
    file = checkpoint(states(tables={"n": int, "old": int}), 1, a=1)
    for backend in BACKENDS:
        with pytest.raises(
            Exception, match="holds state 'old' of step 'count', which the job no longer declares"
        ):
            states([file], backend=backend)


def test_values_that_do_not_fit_are_named(states):
    file = checkpoint(states(), 1, a=1)
    with pytest.raises(Exception, match=r"state 'n' of step 'count' was written as int .*cannot be read"):
        states([file], backend="memory", tables={"n": str})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["../000001.sst", "a/000001.sst", "CURRENT", "000001.sst\n", "", "1.sst"])
def test_a_local_name_that_no_database_gives_is_refused(states, backend, name):
    file = checkpoint(states(), 1, a=1)
    bad = replace(file, database=(replace(file.database[0], local_name=name), *file.database[1:]))
    with pytest.raises(DamagedFile, match=file.database[0].file.name):
        states([bad], backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("which", ["description", "sorted"])
@pytest.mark.parametrize("damage", [None, b"", b"other"])
def test_r8_a_damaged_file_is_refused_by_name(states, place, backend, which, damage):
    file = checkpoint(states(), 1, a=1)
    ref: FileRef = file.file if which == "description" else file.database[0].file
    if damage is None:
        del place.files.content[ref.name]
    else:
        place.files.content[ref.name] = damage
    with pytest.raises(DamagedFile, match=ref.name):
        states([file], backend=backend)


def test_a_file_that_is_not_the_databases_own_is_refused(states, place):
    """Whole by its checksum, and from somewhere else: the database itself finds it."""
    one, two = checkpoint(states(), 1, a=1), checkpoint(states(), 1, a=1, b=2)
    mixed = replace(one, database=tuple(replace(each, file=two.database[0].file) for each in one.database))
    for backend in BACKENDS:
        with pytest.raises(Exception, match=r"no database can be opened|RocksDB cannot be opened"):
            states([mixed], backend=backend)


@pytest.mark.parametrize("slices", range(5))
def test_what_went_up_for_nothing_is_removed_and_the_next_takes_all_along(states, place, slices):
    state = states()
    first = checkpoint(state, 1, a=1)
    kept = set(place.files.content)
    state.table("n").put("b", 2)
    given_up = cut(state, 2)
    steps = given_up.steps()
    for _ in range(slices):
        next(steps, None)
    assert not given_up.files
    given_up.discard()
    assert next(steps, None) is None
    assert set(place.files.content) == kept
    third = checkpoint(state, 3, c=3)
    assert sorted_files(first) < sorted_files(third)
    again = states([third])
    assert [again.table("n").get(key) for key in "abc"] == [1, 2, 3]


def test_closing_gives_up_what_is_under_way(states, place):
    state = states()
    state.table("n").put("a", 1)
    completion = cut(state, 1)
    steps = completion.steps()
    next(steps)
    next(steps)
    state.close()
    assert next(steps, None) is None
    assert completion.files == ()
    assert not place.files.content


def test_little_state_is_entries_and_much_is_files(tmp_path, place, monkeypatch):
    monkeypatch.setattr(snapshot, "CHANGES_MIN", 0)
    backend = RocksDbBackend(
        snapshots=SnapshotFiles(),
        directory=tmp_path,
        options=RocksDbOptions(own_files_min_bytes=6_000_000, compression="none"),
    )
    state = backend.open(place.request({"n": bytes}))
    forms = []
    for number in range(1, 31):
        size = 300_000 if 5 < number <= 12 else 10
        for key in range(30):
            state.table("n").put(key, bytes(size + number))
        files = cut(state, number).run()
        state.decided(CheckpointId(number))
        forms.append(files[0].database is not None)
        memory = MemoryBackend(snapshots=SnapshotFiles(), scratch=tmp_path / "memory")
        again = memory.open(place.request({"n": bytes}, files))
        assert [again.table("n").get(key) for key in range(30)] == [bytes(size + number)] * 30
    state.close()
    assert forms[6:12] == [True] * 6
    assert not forms[0]
    assert not forms[-1], "compaction has made it small again"
    assert sum(before is not after for before, after in pairwise(forms)) == 2, "not to and fro"


class _Full(Disk):
    """A disk on which there is room for so many new names."""

    def __init__(self) -> None:
        self.room = 1_000

    def link_in(self, path: str, folder: int, name: str) -> None:
        self._take()
        super().link_in(path, folder, name)

    def create(self, folder: int, name: str) -> int:
        self._take()
        return super().create(folder, name)

    def _take(self) -> None:
        if not self.room:
            raise OSError(28, "No space left on device")
        self.room -= 1


class _Unlinked(Disk):
    """A disk without links to other folders."""

    def link_in(self, path: str, folder: int, name: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    def link_out(self, folder: int, name: str, path: str) -> None:
        raise OSError(18, "Invalid cross-device link")


def in_directory(tmp_path: Path, disk: Disk) -> Place:
    (tmp_path / "files").mkdir()
    return Place(files=DirectoryFiles(tmp_path / "files", disk))  # type: ignore[arg-type]


@pytest.mark.parametrize("linked", [True, False])
def test_in_a_directory_on_the_same_disk_files_are_links(tmp_path, linked):
    place = in_directory(tmp_path, Disk() if linked else _Unlinked())
    backend = make_backend(OWN_FILES, tmp_path / "local")
    state = backend.open(place.request(TABLES))
    file = checkpoint(state, 1, a=1)
    (each,) = file.database
    found = (tmp_path / "files" / each.file.name).stat()
    assert found.st_nlink == (2 if linked else 1)
    assert found.st_mode & 0o077 == 0
    again = backend.open(place.request(TABLES, [file]))
    assert again.table("n").get("a") == 1
    state.close()
    again.close()
    assert (tmp_path / "files" / each.file.name).stat().st_nlink == 1
    place.files.verify(each.file)


@pytest.mark.parametrize("room", range(4))
def test_a_full_disk_fails_the_checkpoint_and_leaves_nothing(tmp_path, room):
    disk = _Full()
    place = in_directory(tmp_path, disk)
    backend = make_backend(OWN_FILES, tmp_path / "local")
    state = backend.open(place.request(TABLES))
    first = checkpoint(state, 1, a=1)
    kept = place.files.names("")
    state.table("n").put("b", 2)
    state.timers.add_event("b", 1)
    state.table("n").put("c", 3)
    disk.room = room
    completion = cut(state, 2)
    if room < 2:
        with pytest.raises(Unavailable, match="No space left"):
            completion.run()
        assert place.files.names("") == kept
    disk.room = 1_000
    completion.discard()
    file = checkpoint(state, 3)
    assert sorted_files(first) <= sorted_files(file)
    again = backend.open(place.request(TABLES, [file]))
    assert [again.table("n").get(key) for key in "abc"] == [1, 2, 3]
    again.close()
    state.close()


def test_a_restore_passes_the_fault_point_between_its_files(states):
    file = checkpoint(states(), 1, a=1)
    passed: list[FaultPoint] = []
    states([file], faults=passed.append)
    assert passed == [FaultPoint.RECOVERY_STATE_HALF_READ]
