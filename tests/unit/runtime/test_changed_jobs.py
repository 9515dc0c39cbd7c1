"""A job that was changed is started from what the one before it left (C5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from processor.errors import JobError
from processor.operators.aggregates import Count
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.runtime.renaming import read_renamings
from processor.savepoint import open_savepoint
from processor.state.declarations import ValueState
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


class FirstSeen(msgspec.Struct, frozen=True):
    count: int
    last: str


class SeenNow(msgspec.Struct, frozen=True):
    last: str
    count: float
    best: str | None = None


class SeenOtherwise(msgspec.Struct, frozen=True):
    count: str


def watching(step: str, kind: Any, state: str = "seen"):
    """A job that keeps for each word how often it came, in a record of ``kind``."""

    def on_record(self: Any, value: str, /, context: Context[str, str]) -> None:
        seen = getattr(self, state).get()
        getattr(self, state).set(kind(count=1 if seen is None else seen.count + 1, last=value))

    watch = type("Watch", (KeyedProcess,), {"on_record": on_record, state: ValueState(kind)})

    def build(run: JobRun) -> Job:
        job = Job("changing")
        words = job.read("read", run.source).key_by("by-value", lambda value: value)
        words.process(step, watch).write("out", MemorySink(run.outside))
        return job

    return build


def test_b7_a_state_whose_type_was_widened_goes_on(tmp_path):
    run = started(tmp_path, None, watching("watch", FirstSeen), ["a", "b", "a"])
    run = started(tmp_path, run, watching("watch", SeenNow), ["a"])
    savepoint = open_savepoint(str(run.directory.path))
    assert dict(savepoint.read("watch", "seen", SeenNow)) == {
        "a": SeenNow(count=3.0, last="a"),
        "b": SeenNow(count=1.0, last="b"),
    }
    assert savepoint.states[0].kind == 'SeenNow(last: str, count: float, best: None | str = "null")'


def test_b7_an_incompatible_type_is_refused_at_start_with_both_schemas(tmp_path):
    run = started(tmp_path, None, watching("watch", FirstSeen), [])
    with pytest.raises(JobError) as refused:
        started(tmp_path, run, watching("watch", SeenOtherwise), [])
    text = str(refused.value)
    assert (
        "is SeenOtherwise(count: str) in the job and FirstSeen(count: int, last: str) in the checkpoint"
        in text
    )
    assert "(count: int cannot be read as str)" in text, "although no value is kept yet"


def test_c5_a_step_and_a_state_are_renamed_by_name_and_again_by_the_same_command(tmp_path):
    run = started(tmp_path, None, watching("watch", FirstSeen), ["a", "b", "a"])
    other = watching("count", FirstSeen, "counted")
    with pytest.raises(JobError, match="step 'watch' has state in the checkpoint") as refused:
        started(tmp_path, run, other, [])
    assert "--rename OLD=NEW" in str(refused.value)
    names = read_renamings(["watch=count", "count/seen=count/counted"])
    for words, expected in ((["a"], 3), (["a"], 4)):
        run = started(tmp_path, run, other, words, renamed=names)
        found = dict(open_savepoint(str(run.directory.path)).read("count", "counted", FirstSeen))
        assert found == {"a": FirstSeen(expected, "a"), "b": FirstSeen(1, "b")}
    run = started(tmp_path, run, other, ["b"])
    assert dict(open_savepoint(str(run.directory.path)).read("count", "counted"))["b"]["count"] == 2


def test_c5_a_source_is_renamed_with_its_positions(tmp_path):
    def reading(name: str):
        def build(run: JobRun) -> Job:
            job = Job("changing")
            read = job.read(name, run.source).key_by("by-value", lambda value: value)
            read.aggregate("count", Count()).write("out", MemorySink(run.outside))
            return job

        return build

    run = started(tmp_path, None, reading("read"), ["a", "b", "a"])
    run = started(tmp_path, run, reading("lines"), ["a"], renamed=read_renamings(["read=lines"]))
    assert dict(open_savepoint(str(run.directory.path)).read("count", "total")) == {"a": 3, "b": 1}


@pytest.mark.parametrize("from_savepoint", [False, True])
def test_case_34_counts_go_on_per_key_when_the_input_has_more_partitions(tmp_path, from_savepoint):
    """State is by key group, and not by input partition: the same keys now come in other partitions."""
    keys = [f"k{at}" for at in range(20)]
    run = JobRun(
        tmp_path / "jobs",
        source=ListSource({f"words/{at}": keys[at::2] for at in range(2)}, bounded=False),
        build=with_counts("count"),
        parallelism=2,
        runtime={"discovery_interval": "100ms"},
    )
    wanted = len(keys)

    def poll() -> None:
        out = sum(len(run.out(subtask, "out-count")) for subtask in range(2))
        run.signals.asked = out >= wanted

    run.source.on_poll = poll
    assert run.run() == 0
    options: dict[str, Any] = {}
    if from_savepoint:
        newest = run.log.read_all().newest()
        assert newest is not None
        run.savepoint(newest, tmp_path / "saved")
        options["origin"] = str(tmp_path / "saved")
    run.source.records |= {f"words/{at}": keys[at::4] for at in range(2, 6)}
    run.signals.asked = False
    again = [key for at in range(2, 6) for key in keys[at::4]]
    wanted += len(again)
    assert run.run(**options) == 0
    held = dict(open_savepoint(str(run.directory.path)).read("count", "total"))
    assert held == {key: 1 + again.count(key) for key in keys}
