"""Checkpoints of one job taken over by another: sealed first, taken whole, removed when that is decided (C6, R22)."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from processor import Context, Job, KeyedProcess, ValueState
from processor.errors import DamagedFile, JobError, Unavailable
from processor.fault_points import FaultPoint
from processor.protocol.entries import CheckpointEntry
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.disk import Disk
from tests.unit.runtime.kit import JobRun, Once, raising
from tests.unit.task.kit import ListSource, MemorySink


class CountWords(KeyedProcess[str, str, str]):
    seen = ValueState(int)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(f"{value} {count}")


def word(line: str) -> str:
    return line


def counting(run: JobRun) -> Job:
    job = Job("counts")
    (
        job.read("read", run.source)
        .key_by("by-word", word)
        .process("count", CountWords)
        .write("out", MemorySink(run.outside))
    )
    return job


def first_job(tmp_path: Path, backend: dict[str, Any]) -> JobRun:
    """It has counted, and was stopped."""
    run = JobRun(
        tmp_path / "first",
        source=ListSource({"lines/0": ["a", "b", "a"]}),
        build=counting,
        backend={**backend, "directory": tmp_path / "local"} if backend else {},
    )
    run.source.on_poll = stop_after(run, 10)
    assert run.run() == 0
    assert run.out() == [b"a 1", b"b 1", b"a 2"]
    return run


def stop_after(run: JobRun, polls: int) -> Any:
    left = [polls]

    def poll() -> None:
        left[0] -= 1
        if left[0] == 0:
            run.control.stop(None, run.answers.append)

    return poll


def second_job(tmp_path: Path, first: JobRun, *, disk: Disk | None = None) -> JobRun:
    """One of the same code with a directory of its own, which goes on with what there is to read."""
    first.source.records["lines/0"] += ["a", "b"]
    run = JobRun(
        tmp_path / "second",
        source=first.source,
        build=counting,
        backend=first.backend,
        disk=disk,
        chance=first.chance,
    )
    run.source.on_poll = stop_after(run, 10)
    return run


def newest(run: JobRun) -> CheckpointEntry:
    entry = run.log.read_all().newest()
    assert entry is not None
    return entry


def claim(run: JobRun, first: JobRun, **more: Any) -> int:
    return run.run(origin=str(first.directory.path), claim=True, **more)


class _Unlinked(Disk):
    def link_in(self, path: str, folder: int, name: str) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
@pytest.mark.parametrize("disk", [None, _Unlinked()])
def test_c6_what_is_claimed_is_gone_on_with_and_gone_where_it_was(tmp_path, backend, disk, monkeypatch):
    monkeypatch.setitem(RocksDbOptions.__init__.__kwdefaults__, "own_files_min_bytes", 0)
    first = first_job(tmp_path, {"backend": backend} if backend == "rocksdb" else {})
    run = second_job(tmp_path, first, disk=disk)
    assert claim(run, first) == 0
    assert run.out() == [b"a 3", b"b 2"]
    assert first.files() == []
    forms = {state.database is not None for subtask in newest(run).subtasks for state in subtask.keyed}
    assert forms == {backend == "rocksdb"}
    for ref in newest(run).files():
        run.store.files.verify(ref)
    # The same command line again goes on where it is, though the files are not there any more (R3).
    run.source.records["lines/0"].append("a")
    run.source.on_poll = stop_after(run, 10)
    assert claim(run, first) == 0
    assert run.out() == [b"a 3", b"b 2", b"a 4"]
    # And the job that was claimed has nothing to go on with.
    with pytest.raises(DamagedFile):
        first.run()


def test_r22_the_log_is_sealed_before_anything_is_taken(tmp_path):
    first = first_job(tmp_path, {})
    before = first.log.read_all().newest_seal()
    run = second_job(tmp_path, first)
    assert claim(run, first) == 0
    seal = first.log.read_all().newest_seal()
    assert before is not None
    assert seal is not None
    assert seal.attempt == before.attempt + 1
    assert seal.place > newest(first).place


@pytest.mark.parametrize("point", [FaultPoint.RECOVERY_SEALED, FaultPoint.RECOVERY_OPENING])
@pytest.mark.parametrize("number", [1, 2])
def test_a_claim_that_fails_on_the_way_is_finished_by_the_next_start(tmp_path, point, number):
    first = first_job(tmp_path, {})
    run = second_job(tmp_path, first)
    run.faults = Once(point, raising(Unavailable("killed here")), number)
    assert claim(run, first) == 0
    assert run.out() == [b"a 3", b"b 2"]
    assert first.files() == []


def test_r23_a_savepoint_is_never_claimed(tmp_path):
    first = first_job(tmp_path, {})
    saved = tmp_path / "saved"
    first.source.on_poll = lambda: None
    first.ask(lambda control, answer: control.stop(str(saved), answer))
    assert first.run() == 0
    run = second_job(tmp_path, first)
    with pytest.raises(JobError, match="is a savepoint, and none is ever claimed"):
        run.run(origin=str(saved), claim=True)
    assert run.run(origin=str(saved)) == 0
    assert run.out() == [b"a 3", b"b 2"]


def test_a_job_does_not_claim_itself(tmp_path):
    first = first_job(tmp_path, {})
    kept = first.files()
    with pytest.raises(JobError, match="is the checkpoint directory of this job itself"):
        claim(first, first, request="again")
    assert first.files() == kept


def test_what_was_not_taken_over_is_not_removed(tmp_path):
    """By its name the rewind was made before, to something else: nothing of this origin is used."""
    first = first_job(tmp_path, {})
    run = second_job(tmp_path, first)
    assert run.run(fresh=True, request="begin") == 0
    kept = first.files()
    assert kept
    run.source.on_poll = stop_after(run, 10)
    assert claim(run, first, request="begin") == 0
    assert first.files() == kept
