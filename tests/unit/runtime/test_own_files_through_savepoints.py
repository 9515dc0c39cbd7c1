"""RocksDB's own files in a job's life: savepoints of both formats out of them, looked into, and started from."""

from __future__ import annotations

import pytest

from processor.savepoint import open_savepoint, verify_files
from processor.state.rocksdb_store import RocksDbOptions
from tests.unit.runtime.kit import JobRun
from tests.unit.runtime.test_claimed_origin import counting, newest, stop_after
from tests.unit.task.kit import ListSource


@pytest.fixture(autouse=True)
def own_files_however_small(monkeypatch):
    monkeypatch.setitem(RocksDbOptions.__init__.__kwdefaults__, "own_files_min_bytes", 0)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_c2_c3_a_savepoint_of_own_files_is_read_and_started_from(tmp_path, native, parallelism, backend):
    local = {"directory": tmp_path / "local"}
    run = JobRun(
        tmp_path / "first",
        source=ListSource({"lines/0": ["a", "b", "a"]}),
        build=counting,
        backend={"backend": "rocksdb", **local},
    )
    run.source.on_poll = stop_after(run, 10)
    assert run.run() == 0
    states = [state for subtask in newest(run).subtasks for state in subtask.keyed]
    assert states
    assert all(state.database is not None for state in states)
    saved = tmp_path / "saved"
    run.savepoint(newest(run), saved, native=native)

    savepoint = open_savepoint(str(saved))
    assert dict(savepoint.read("count", "seen", int)) == {"a": 2, "b": 1}
    assert verify_files(savepoint).damage == ()
    assert dict(open_savepoint(str(run.directory.path)).read("count", "seen", int)) == {"a": 2, "b": 1}

    run.source.records["lines/0"] += ["a", "b"]
    again = JobRun(
        tmp_path / "second",
        source=run.source,
        build=counting,
        parallelism=parallelism,
        chance=run.chance,
        backend={"backend": backend, **local},
    )
    again.source.on_poll = stop_after(again, 10)
    assert again.run(origin=str(saved)) == 0
    assert {row for index in range(parallelism) for row in again.out(index)} == {b"a 3", b"b 2"}
