"""Asked to end in the middle of a restore: nothing of it counts as done (case 23)."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.errors import Unavailable
from processor.fault_points import FaultPoint
from processor.operators.aggregates import Count
from processor.runtime.supervisor import EXIT_GRACE_PASSED
from processor.savepoint import NewSavepoint, open_savepoint
from processor.state.declarations import ValueState
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun, Once
from tests.unit.task.kit import ListSource, MemorySink

KEYS = 200_000
POLLS = 5


def totals(run: JobRun) -> Job:
    job = Job("totals")
    words = job.read("read", run.source).key_by("by-word", lambda word: word)
    words.aggregate("count", Count()).write("out", MemorySink(run.outside))
    return job


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seed") / "savepoint"
    made = NewSavepoint(str(path), "totals")
    made.state("count", "total", ValueState(int), ((f"k{at}", at) for at in range(KEYS)))
    made.finish()
    return path


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_case_23_a_stop_during_a_restore_loses_no_key(seed: Path, tmp_path: Path, backend: str):
    run = JobRun(
        tmp_path / "jobs",
        source=ListSource({"words/0": ["k0", "k1"]}, bounded=False),
        build=totals,
        backend={"backend": backend, "directory": tmp_path / "local"},
        runtime={"restart": {"strategy": "none"}},
    )

    def end() -> None:
        run.signals.asked = True
        raise Unavailable("ended in the middle of a restore")

    run.faults = half_read = Once(FaultPoint.RECOVERY_STATE_HALF_READ, end)
    assert run.run(origin=str(seed)) == EXIT_GRACE_PASSED
    assert FaultPoint.RECOVERY_STATE_HALF_READ in half_read.passed
    run.signals.asked = False
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        run.signals.asked = polls > POLLS

    run.source.on_poll = poll
    assert run.run(origin=str(seed)) == 0, "the same command again"
    held = dict(open_savepoint(str(run.directory.path)).read("count", "total"))
    assert len(held) == KEYS
    assert held == {f"k{at}": at for at in range(KEYS)} | {"k0": 1, "k1": 2}
