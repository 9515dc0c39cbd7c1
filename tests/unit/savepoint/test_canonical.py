"""Savepoints in the canonical format: any Avro tool reads them, any backend starts from them, at any parallelism."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest

from processor.errors import DamagedFile, JobError
from processor.ids import MAX_PARALLELISM_DEFAULT, FileRef, KeyGroupRange, StepName, key_groups_of
from processor.protocol.entries import CheckpointEntry, ReachedEventTime
from processor.records.key_groups import key_group
from processor.savepoint import Savepoint, open_savepoint, verify_files
from processor.savepoint.avro_file import read_avro, write_avro
from processor.savepoint.canonical import from_canonical
from processor.savepoint.held import HeldEntries
from processor.storage.manifest import decode_entry, encode_entry
from tests.unit.runtime.kit import JobRun
from tests.unit.savepoint.kept import FAR_MS, Seen, counting
from tests.unit.state.fakes import BACKENDS, OWN_FILES, MemoryFiles
from tests.unit.task.kit import ListSource

WORDS = ["apple", "axe", "bee", "cat", "bee-", "ace", "dog", "deer"]
POLLS = 12

SEEN = {"a": Seen(3, "ace"), "c": Seen(1, "cat"), "d": Seen(2, "deer")}
WORDS_OF = {
    "a": {"apple": 1, "axe": 1, "ace": 1},
    "c": {"cat": 1},
    "d": {"dog": 1, "deer": 1},
}
LENGTHS = {"a": [5, 3, 3], "b": [3], "c": [3], "d": [3, 4]}


def ran(
    root: Path,
    *,
    backend: str = "memory",
    parallelism: int = 1,
    max_parallelism: int = MAX_PARALLELISM_DEFAULT,
    chained: bool = True,
    **options: Any,
) -> JobRun:
    """A job that reads what there is behind what it starts from, and is stopped."""
    run = JobRun(
        root,
        source=ListSource({"words/0": list(WORDS)}, bounded=False),
        build=lambda run: counting(run, max_parallelism, chained=chained),
        parallelism=parallelism,
        checkpoint={"interval": "10ms"},
        backend={"backend": backend.split()[0], "directory": root.parent / "local"},
        own_files=backend == OWN_FILES,
    )
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        run.signals.asked = polls > POLLS

    run.source.on_poll = poll
    assert run.run(**options) == 0
    return run


def newest(run: JobRun) -> CheckpointEntry:
    entry = run.log.read_all().newest()
    assert entry is not None
    return entry


def saved(run: JobRun, path: Path, *, native: bool = False) -> Savepoint:
    run.savepoint(newest(run), path, native=native)
    return open_savepoint(str(path))


def holds_all(savepoint: Savepoint) -> None:
    assert dict(savepoint.read("count", "seen", Seen)) == SEEN
    assert dict(savepoint.read("count", "words")) == WORDS_OF
    assert dict(savepoint.read("count", "lengths")) == LENGTHS
    assert sorted(timer.time_ms - FAR_MS for timer in savepoint.timers("count")) == [97, 98, 99, 100]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    """Savepoints of both backends in both formats, over two subtasks."""
    paths: dict[tuple[str, bool], Path] = {}
    for backend in BACKENDS:
        root = tmp_path_factory.mktemp(backend)
        run = ran(root / "jobs", backend=backend, parallelism=2)
        for native in (False, True):
            paths[backend, native] = root / f"native-{native}"
            holds_all(saved(run, paths[backend, native], native=native))
    return paths


@pytest.mark.parametrize("backend", BACKENDS)
def test_c2_any_avro_tool_reads_every_state_of_it_without_the_job(made, backend):
    found: dict[str, list[Any]] = {}
    for path in sorted(made[backend, False].rglob("*.avro")):
        with path.open("rb") as file:
            read = fastavro.reader(file)
            found.setdefault(f"{path.parent.parent.name}/{path.parent.name}", []).extend(read)
            assert read.metadata["processor.step"] == "count"
    declared = set(open_savepoint(str(made[backend, False])).entry.shape.stateful[StepName("count")])
    assert found.keys() == {f"count/{name}" for name in declared | {"timers%2Fprocessing"}}
    by_key = {each["key"]: each["value"] for each in found["count/seen"]}
    assert by_key["a"] == {"count": 3, "last": "ace"}
    assert {"key": "d", "entry_key": "dog", "value": 1} in found["count/words"]
    assert {"key": "a", "time_ms": FAR_MS + 97} in found["count/timers%2Fprocessing"]


@pytest.mark.parametrize(
    ("backend", "native", "target", "parallelism", "chained"),
    [
        (*each, sum(map(ord, str(each))) % 2 == 0)  # each pair of the others with both
        for each in product(BACKENDS, [False, True], ["memory", "rocksdb"], [1, 2, 3, 5])
    ],
)
def test_c2_c3_c5_it_is_restored_into_any_backend_at_any_parallelism(
    made, backend, native, target, parallelism, chained, tmp_path
):
    run = ran(
        tmp_path / "jobs",
        backend=target,
        parallelism=parallelism,
        chained=chained,
        origin=str(made[backend, native]),
    )
    holds_all(open_savepoint(str(run.directory.path)))
    assert len([s for s in newest(run).subtasks if s.keyed]) == parallelism


@pytest.mark.parametrize(("parallelism", "maximum"), [(1, 5), (3, 7), (2, 1_000)])
def test_c5_the_maximum_parallelism_is_changed_through_the_canonical_format(
    made, parallelism, maximum, tmp_path
):
    run = ran(
        tmp_path / "jobs",
        parallelism=parallelism,
        max_parallelism=maximum,
        origin=str(made["memory", False]),
    )
    holds_all(open_savepoint(str(run.directory.path)))
    entry = newest(run)
    assert entry.shape.max_parallelism == maximum
    holders = [subtask for subtask in entry.subtasks if subtask.keyed]
    for index, subtask in enumerate(holders):
        groups = key_groups_of(index, parallelism, maximum)
        assert {file.key_groups for file in subtask.keyed} == {groups}
        owned = {key for key in SEEN if key_group(key, maximum) in groups}
        only = Savepoint(
            directory=run.directory,
            log=run.log,
            view=run.log.read_all(),
            entry=replace(entry, subtasks=(subtask,)),
        )
        assert dict(only.read("count", "seen")).keys() == owned
    # It goes on, and again from its own checkpoints.
    again = ran(tmp_path / "jobs", parallelism=parallelism, max_parallelism=maximum)
    holds_all(open_savepoint(str(again.directory.path)))


def test_c5_r27_with_other_key_groups_the_latest_event_time_of_a_step_counts_for_all_its_keys(made):
    entry = open_savepoint(str(made["memory", False])).entry
    everywhere = KeyGroupRange(0, 7)
    reached = [
        (ReachedEventTime(step=StepName("count"), key_groups=KeyGroupRange(0, 64), watermark_ms=time_ms),)
        for time_ms in (5, 9, 7)
    ]
    subtasks = tuple(replace(entry.subtasks[0], keyed=(), event_times=times) for times in reached)
    converted = from_canonical(
        replace(entry, subtasks=subtasks),
        MemoryFiles(),
        MemoryFiles(),
        lambda subtask: "",
        7,
        lambda more: None,
    )
    found = [each for subtask in converted for each in subtask.event_times]
    assert found == [ReachedEventTime(step=StepName("count"), key_groups=everywhere, watermark_ms=9)]


class ReadsBeforeItKnows(MemoryFiles):
    """As a store does, it finds that a file is damaged when it has handed out the most of it."""

    reads = 0

    def read(self, ref: FileRef) -> Iterator[bytes]:
        self.reads += 1
        yield self.content[ref.name]

    def verify(self, ref: FileRef) -> None:
        list(super().read(ref))


def test_r23_avros_reader_is_given_nothing_that_is_damaged():
    """A length of a damaged file could make it ask for any memory."""
    files = ReadsBeforeItKnows()
    entries = HeldEntries(keys=["a"], places=[], values=[msgspec.Raw(msgspec.msgpack.encode(1))])
    table: dict[str, Any] = {"step": "count", "table": "total", "state": "int"}
    ref = write_avro(lambda: files.create("x"), lambda: iter([entries]), **table)
    assert ref is not None
    files.content["x"] = files.content["x"][:-1]
    with pytest.raises(DamagedFile, match="'x'"):
        list(read_avro(files, ref, **table))
    assert files.reads == 0


def test_c5_a_native_savepoint_keeps_its_maximum(made, tmp_path):
    with pytest.raises(
        JobError, match=r"max_parallelism is 7 in the job and 128 in the checkpoint.*canonical"
    ):
        ran(tmp_path / "jobs", max_parallelism=7, origin=str(made["memory", True]))


def test_r23_it_may_be_moved(made, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(made["memory", False], moved)
    holds_all(open_savepoint(str(moved)))
    assert verify_files(open_savepoint(str(moved))).damage == ()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


def swap(path: Path) -> None:
    other = next(each for each in sorted(path.parent.parent.rglob("*.avro")) if each.parent != path.parent)
    path.write_bytes(other.read_bytes())


DAMAGE = {
    "flipped": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "swapped": swap,
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "linked": lambda path: (
        path.rename(path.with_suffix(".real")),
        path.symlink_to(path.with_suffix(".real")),
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("state", ["seen", "words", "timers%2Fprocessing"])
def test_r23_a_damaged_file_is_refused_by_name(made, what, state, tmp_path):
    path = tmp_path / "damaged"
    shutil.copytree(made["memory", False], path)
    file = min((path / "files" / "count" / state).iterdir())
    DAMAGE[what](file)
    name = f"count/{state}/{file.name}"
    with pytest.raises(DamagedFile, match=name):
        ran(tmp_path / "jobs", origin=str(path))
    if what != "linked":
        assert name in verify_files(open_savepoint(str(path))).damage[0]


@pytest.mark.parametrize("name", ["../../outside.avro", "/etc/passwd", "count/../../x.avro", "count//x.avro"])
def test_r23_a_name_that_climbs_out_of_its_root_is_refused(made, name, tmp_path):
    path = tmp_path / "climbing"
    shutil.copytree(made["memory", False], path)
    (tmp_path / "outside.avro").write_bytes(b"")
    (log,) = (path / "log").iterdir()
    entry = decode_entry(log.read_bytes(), 1)
    assert isinstance(entry, CheckpointEntry)
    held = next(s for s in entry.subtasks if s.keyed)
    bad = replace(held.keyed[0], file=replace(held.keyed[0].file, name=name))
    climbing = replace(entry, subtasks=(replace(held, keyed=(bad,)),))
    log.chmod(0o600)
    log.write_bytes(encode_entry(climbing))
    with pytest.raises(DamagedFile, match="cannot be the name of a file"):
        ran(tmp_path / "jobs", origin=str(path))
    with pytest.raises(DamagedFile, match="cannot be the name of a file"):
        list(open_savepoint(str(path)).read("count", bad.table))
