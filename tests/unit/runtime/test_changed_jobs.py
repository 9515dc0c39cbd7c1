"""A job that was changed is started from what the one before it left (C5)."""

from __future__ import annotations

from typing import Any

import pytest

from processor.errors import JobError
from processor.operators.aggregates import Count
from processor.savepoint import open_savepoint
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun
from tests.unit.task.kit import ListSource, MemorySink

POLLS = 20
"""The first finds all there is."""


def with_counts(*steps: str):
    """A job that counts its records in each of these steps."""

    def build(run: JobRun) -> Job:
        job = Job("changing")
        read = job.read("read", run.source).key_by("by-value", lambda value: value)
        for step in steps:
            read.aggregate(step, Count()).write(f"out-{step}", MemorySink(run.outside))
        return job

    return build


def started(tmp_path, run: JobRun | None, build, values: list[str], **options) -> JobRun:
    """Run the job over more records until it has read them all, then stop it."""
    source = ListSource({"lines/0": []}) if run is None else run.source
    source.records["lines/0"] += values
    more: dict[str, Any] = {} if run is None else {"outside": run.outside, "chance": run.chance}
    again = JobRun(tmp_path / "jobs", source=source, build=build, **more)
    polls = 0

    def on_poll() -> None:
        nonlocal polls
        polls += 1
        again.signals.asked = polls > POLLS

    source.on_poll = on_poll
    assert again.run(**options) == 0
    return again


def test_c5_a_step_with_state_is_removed_only_by_name_and_the_others_keep_theirs(tmp_path):
    run = started(tmp_path, None, with_counts("count", "other"), ["a", "b", "a"])
    one = with_counts("count")
    with pytest.raises(JobError, match="step 'other' has state in the checkpoint") as refused:
        started(tmp_path, run, one, [])
    assert "--allow-dropped-state STEP" in str(refused.value)
    left = frozenset({"other"})
    run = started(tmp_path, run, one, ["a"], dropped_state=left)
    assert open_savepoint(str(run.directory.path)).entry.shape.stateful.keys() == {"count"}
    run = started(tmp_path, run, one, ["b"], dropped_state=left)
    assert dict(open_savepoint(str(run.directory.path)).read("count", "total")) == {"a": 3, "b": 2}
    run = started(tmp_path, run, one, ["b"])
    assert dict(open_savepoint(str(run.directory.path)).read("count", "total")) == {"a": 3, "b": 3}
