"""A stretch of history: sources end where it says, and find nothing new; the job stops once all is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from processor.cli.replay_until import Until, ends_of, read_until
from processor.contracts.job_control import Outcome
from processor.errors import JobError, SettingsError, Unavailable
from processor.fault_points import FaultPoint
from processor.ids import CheckpointId, JobName, Position, SplitId, StepName, SubtaskId
from processor.plan.layout import Layout
from processor.protocol.entries import CheckpointEntry, SourceState, SubtaskSnapshot
from processor.runtime.replay import read_targets
from processor.runtime.stretch import Stretch, at_its_end, positions_in
from processor.stream.job import Job
from tests.damage.job import Tell, letters
from tests.unit.runtime.kit import JobRun, Once, raising
from tests.unit.storage.entries_made import checkpoint
from tests.unit.task.kit import ListSource, MemorySink

READ = StepName("read")
ONE, TWO = SplitId("in/0"), SplitId("in/1")
WORDS = {"lines/0": ["ax", "by", "ay"], "lines/1": ["bx", "ax", "cy"]}
ENDS = {READ: {SplitId("lines/0"): 2, SplitId("lines/1"): 3}}


class Controlled:
    """A JobControl that is only asked to stop."""

    def __init__(self) -> None:
        self.answers: list[Callable[[Outcome], None]] = []

    def stop(self, savepoint: str | None, answer: Callable[[Outcome], None]) -> None:
        assert savepoint is None
        self.answers.append(answer)


def at(**positions: int) -> dict[SplitId, Position]:
    splits = {"one": ONE, "two": TWO}
    return {splits[name]: Position(next=next_) for name, next_ in positions.items()}


def entry(positions: dict[SplitId, Position], step: StepName = READ) -> CheckpointEntry:
    part = SubtaskSnapshot(subtask=SubtaskId(step, 0), sources=(SourceState(step=step, positions=positions),))
    return replace(checkpoint(2, 1, 1), subtasks=(part,))


def test_c07_the_job_is_asked_to_stop_once_when_every_split_is_at_its_end():
    control, stretch = Controlled(), Stretch({READ: {ONE: 5, TWO: 7}})
    stretch.controlled_by(cast(Any, control))
    stretch.moved(READ, at(one=5))
    stretch.moved(READ, at(two=6))
    assert control.answers == []
    stretch.moved(READ, at(two=7))
    stretch.moved(READ, at(one=5, two=7))
    assert len(control.answers) == 1
    control.answers[0](Outcome(refused="a checkpoint is under way"))
    stretch.moved(READ, at(two=7))
    assert len(control.answers) == 2
    control.answers[1](Outcome(refused="the copy failed", checkpoint=CheckpointId(3)))
    stretch.moved(READ, at(two=7))
    assert len(control.answers) == 2


def test_c07_an_attempt_that_begins_anew_reads_to_the_end_again():
    control, stretch = Controlled(), Stretch({READ: {ONE: 5, TWO: 7}})
    stretch.controlled_by(cast(Any, control))
    stretch.moved(READ, at(one=5))
    stretch.moved(READ, at(one=3, two=7))
    assert control.answers == []


def replayed(run: JobRun) -> Job:
    job = Job("told")
    words = job.read("read", run.source).event_time(lambda word: 0, disorder=timedelta(0))
    words.key_by("by-letter", letters).process("tell", Tell).write("out", MemorySink(run.outside))
    return job


@pytest.mark.parametrize("fault", [None, FaultPoint.CUT_TAKEN, FaultPoint.ENTRY_TAKEN_NOT_TOLD])
def test_c07_a_job_over_a_stretch_reads_so_far_and_stops_without_firing_what_waits(tmp_path, fault):
    stretch = Stretch(ENDS)
    run = JobRun(tmp_path, source=ListSource(WORDS), build=replayed)
    run.layout = Layout.at(stretch.of(run.job().graph(), JobName("told")), 1)
    if fault is not None:
        run.faults = Once(fault, raising(Unavailable("killed here")), 2)
    run.source.on_poll = lambda: stretch.controlled_by(run.control)
    assert run.run() == 0
    newest = run.log.read_all().newest()
    assert newest is not None
    assert at_its_end(newest, ENDS)
    assert positions_in(newest) == ENDS
    words = sorted((row or b"").decode().split()[0] for row in run.out())
    assert words == sorted([*WORDS["lines/0"][:2], *WORDS["lines/1"]]), "no timer has fired"
    assert run.source.told == [], "nobody hears how far a replay has read"


def test_c07_ends_are_offsets_a_time_now_or_a_later_savepoint():
    origin = entry(at(one=3, two=4))
    asked: list[int | None] = []

    def ends(step, splits, time_ms):
        asked.append(time_ms)
        return {ONE: 2, TWO: 9}

    def of(until: Until) -> dict[SplitId, int]:
        return dict(ends_of([READ], origin, until, ends)[READ])

    assert of(read_until("in/1=9")) == {ONE: 3, TWO: 9}, "what is not named stays"
    assert of(read_until("2030-01-01T00:00:00+00:00")) == {ONE: 3, TWO: 9}, "a time before it reads nothing"
    assert of(Until(checkpoint=entry(at(one=8, two=4)))) == {ONE: 8, TWO: 4}
    assert asked == [1_893_456_000_000]
    assert read_until("1893456000000") == read_until("2030-01-01T00:00:00Z")
    assert read_until("now") == Until()


def test_c07_ends_that_cannot_be_are_refused_by_name():
    origin = entry(at(one=3, two=4))

    def never(step, splits, time_ms):
        raise AssertionError("nobody is asked")

    for until, said in [
        (Until(offsets={ONE: 2}), r"end at in/0 offset 2, and it begins at 3"),
        (Until(offsets={SplitId("other/0"): 9}), r"names 'other/0'.*does not read"),
        (Until(checkpoint=entry(at(one=3, two=1))), r"end at in/1 offset 1"),
    ]:
        with pytest.raises(JobError, match=said):
            ends_of([READ], origin, until, never)
    with pytest.raises(JobError, match=r"step 'more' reads, and the savepoint does not say"):
        ends_of([READ, StepName("more")], origin, Until(), never)
    with pytest.raises(SettingsError, match="names no zone"):
        read_until("2030-01-01T00:00:00")
    with pytest.raises(SettingsError, match="TOPIC/PARTITION=OFFSET"):
        read_until("in/0=x")
    with pytest.raises(JobError, match="neither a savepoint"):
        read_until("nowhere")


def test_c07_targets_are_written_once_each():
    assert read_targets(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    for wrong in (["a"], ["=b"], ["a="], ["a=b", "a=c"]):
        with pytest.raises(JobError, match="--topic-map"):
            read_targets(wrong)
