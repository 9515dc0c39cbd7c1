"""A job whose sources all end has an end, however they came into it."""

from __future__ import annotations

from processor.errors import Unavailable
from processor.fault_points import FaultPoint
from processor.protocol.job_status import JobStatus
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun, Once, raising, upper
from tests.unit.task.kit import ListSource, MemorySink


def two_sources(run: JobRun, added: ListSource) -> Job:
    job = Job("echo")
    left = job.read("read", run.source)
    right = job.read("read-too", added)
    left.union("both", right).map("upper", upper).write("out", MemorySink(run.outside))
    return job


def test_a_bounded_source_over_nothing_ends_at_once(tmp_path):
    """Such as a pattern that no topic matches."""
    run = JobRun(tmp_path, source=ListSource({}, bounded=True), parallelism=2)
    assert run.run() == 0
    assert run.state.status is JobStatus.FINISHED
    assert run.out() == []
    assert run.run() == 0, "and again when it is started again"


def test_a_bounded_source_that_was_added_to_a_job_is_read_and_ends(tmp_path):
    first = JobRun(tmp_path, source=ListSource({"lines/0": ["a", "b"]}, bounded=True), parallelism=2)
    assert first.run() == 0
    added = ListSource({"more/0": ["c"], "more/1": ["d"], "more/2": ["e"]}, bounded=True)
    second = JobRun(
        tmp_path,
        source=first.source,
        outside=first.outside,
        build=lambda run: two_sources(run, added),
        parallelism=2,
        chance=first.chance,
    )
    # Whoever dies before the first checkpoint of the new source begins with it again.
    second.faults = Once(FaultPoint.CUT_TAKEN, raising(Unavailable("the disk is gone")))
    assert second.run() == 0
    assert second.state.status is JobStatus.FINISHED
    assert sorted(row or b"" for index in range(2) for row in second.out(index)) == [
        b"A",
        b"B",
        b"C",
        b"D",
        b"E",
    ]
    assert second.run() == 0
    assert len(second.out(0)) + len(second.out(1)) == 5, "nothing twice"


def test_an_empty_bounded_source_that_was_added_does_not_keep_a_job_from_its_end(tmp_path):
    first = JobRun(tmp_path, source=ListSource({"lines/0": ["a"]}, bounded=True))
    assert first.run() == 0
    second = JobRun(
        tmp_path,
        source=first.source,
        outside=first.outside,
        build=lambda run: two_sources(run, ListSource({}, bounded=True)),
        chance=first.chance,
    )
    assert second.run() == 0
    assert second.state.status is JobStatus.FINISHED
