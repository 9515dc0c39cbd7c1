"""Hooks of an author take part in checkpoints, and functions hear what became of them (A7, A14), in a real job."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from processor.contracts.checkpoint_hook import HOOK_BYTES_MAX, CheckpointHook
from processor.errors import JobError, Unavailable, UserCodeError
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun
from tests.unit.task.kit import ListSource, MemorySink


@dataclass
class Life:
    """What all hooks of a job have seen, over all attempts."""

    taken: list[int] = field(default_factory=list)
    restored: list[bytes] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)
    fail: list[Exception] = field(default_factory=list)
    data: bytes | None = None
    bad_news: bool = False


class Version(CheckpointHook):
    def __init__(self, life: Life) -> None:
        self.life = life

    def take(self, checkpoint: int) -> bytes:
        if self.life.fail:
            raise self.life.fail.pop()
        self.life.taken.append(checkpoint)
        return b"version of %d" % checkpoint if self.life.data is None else self.life.data

    def restore(self, data: bytes) -> None:
        self.life.restored.append(data)

    def completed(self, checkpoint: int) -> None:
        self.life.completed.append(checkpoint)
        if self.life.bad_news:
            raise ValueError("nobody wants to know")

    def aborted(self, checkpoint: int) -> None:
        self.life.aborted.append(checkpoint)


def hooked(tmp_path, life: Life, **more) -> JobRun:
    def build(run: JobRun) -> Job:
        job = Job("hooked")
        job.hook("version", lambda: Version(life))
        job.read("read", run.source).write("out", MemorySink(run.outside))
        return job

    source = ListSource({"lines/0": ["a", "b", "c"]}, bounded=True)
    return JobRun(tmp_path, source=source, build=build, **more)


def test_a07_what_a_hook_keeps_is_part_of_the_entry_and_given_back_to_the_next_attempt(tmp_path):
    life = Life()
    run = hooked(tmp_path, life)
    assert run.run() == 0
    newest = run.log.read_all().checkpoints()[-1]
    (state,) = newest.participants
    assert (state.name, state.data) == ("hook version", b"version of %d" % newest.checkpoint)
    assert life.restored == [], "a first checkpoint has nothing of it"
    assert newest.checkpoint in life.taken
    assert run.run() == 0
    assert life.restored == [state.data]


def test_a07_r23_what_a_hook_kept_goes_along_with_a_savepoint(tmp_path):
    life = Life()
    run = hooked(tmp_path / "old", life)
    assert run.run() == 0
    entry = run.log.read_all().checkpoints()[-1]
    saved = tmp_path / "saved"
    run.savepoint(entry, saved)
    again = hooked(tmp_path / "new", life)
    assert again.run(origin=str(saved)) == 0
    assert life.restored == [b"version of %d" % entry.checkpoint]


def test_a07_a16_a_hook_that_fails_gives_the_checkpoint_up_before_its_barriers(tmp_path):
    life = Life(fail=[Unavailable("no lease")])
    run = hooked(tmp_path, life)
    assert run.run() == 0
    counts = run.statistics.picture().counts
    assert counts.given_up == {"participant-failed": 1}
    assert len(life.aborted) == 1
    assert life.aborted[0] not in [entry.checkpoint for entry in run.log.read_all().checkpoints()]


def test_a07_news_that_a_hook_does_not_want_are_no_failure(tmp_path):
    life = Life(bad_news=True)
    run = hooked(tmp_path, life)
    assert run.run() == 0
    assert run.control.restarts == 0


def test_a07_a_hook_that_keeps_too_much_is_refused_by_name(tmp_path):
    life = Life(data=bytes(HOOK_BYTES_MAX + 1))
    run = hooked(
        tmp_path, life, checkpoint={"tolerated_failures": 0}, runtime={"restart": {"strategy": "none"}}
    )
    with pytest.raises(Exception, match=f"hook 'version' took {HOOK_BYTES_MAX + 1} bytes"):
        run.run()


def test_a_hook_has_a_name_of_its_own_and_is_made_by_something():
    job = Job("hooked")
    job.hook("version", CheckpointHook)
    with pytest.raises(JobError, match="two hooks"):
        job.hook("version", CheckpointHook)
    with pytest.raises(JobError, match="makes nothing"):
        job.hook("other", CheckpointHook())  # type: ignore[arg-type]


class Told(KeyedProcess[str, str, str]):
    """Remembers what it was told, over all instances."""

    completed: list[int]
    fail = False

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        context.emit(value)

    def on_completed(self, checkpoint: int, /) -> None:
        type(self).completed.append(checkpoint)
        if type(self).fail:
            raise ValueError("not now")


def told_job(run: JobRun) -> Job:
    job = Job("told")
    keyed = job.read("read", run.source).key_by("by", str)
    keyed.process("tell", Told).write("out", MemorySink(run.outside))
    return job


def test_a14_functions_hear_of_completed_checkpoints_once_each(tmp_path):
    Told.completed, Told.fail = [], False
    source = ListSource({"lines/0": ["a", "b", "c"]})
    run = JobRun(tmp_path, source=source, build=told_job)

    def on_poll() -> None:
        run.signals.asked = len(Told.completed) >= 2

    source.on_poll = on_poll
    assert run.run() == 0
    assert Told.completed == sorted(set(Told.completed))
    decided = [entry.checkpoint for entry in run.log.read_all().checkpoints()]
    assert set(decided[-2:]) & set(Told.completed), "of those that are kept at least one was told"


def test_a14_a_function_that_fails_at_the_news_is_named(tmp_path):
    Told.completed, Told.fail = [], True
    source = ListSource({"lines/0": ["a"]})
    run = JobRun(tmp_path, source=source, build=told_job, runtime={"restart": {"strategy": "none"}})
    with pytest.raises(UserCodeError, match=r"on_completed of checkpoint \d+ raised ValueError: not now"):
        run.run()
