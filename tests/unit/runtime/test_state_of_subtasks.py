"""State that belongs to subtasks, through savepoints and at other parallelisms, in a whole job."""

from __future__ import annotations

from typing import Any

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Job, RecordContext, SplitListState, Transform, UnionListState
from processor.savepoint import HeldState, open_savepoint
from processor.testing import run_job
from tests.unit.runtime.kit import JobRun
from tests.unit.task.kit import ListSource, MemorySink


class Hold(Transform[int, list[int]]):
    """Holds numbers back; 0 lets go of what this subtask has, with all it was told at its start."""

    held = SplitListState(int)
    seen = UnionListState(int)

    def on_start(self, subtask: int, subtasks: int, /) -> None:
        self.told = self.seen.get()

    def on_record(self, value: int, /, context: RecordContext[list[int]]) -> None:
        if value:
            self.held.append(value)
            self.seen.append(value)
        else:
            context.emit(self.held.get())
            context.emit(self.told)
            self.held.clear()


def holding() -> Job:
    job = Job("hold")
    numbers = job.read("read", KafkaSource("in", Json(int)))
    numbers.transform("hold", Hold).write("write", KafkaSink("out", Json(list[int])))
    return job


def test_d4_a_savepoint_takes_lists_of_subtasks_to_another_parallelism() -> None:
    with run_job(holding(), parallelism=2) as running:
        running.feed("read", 1, 2, 3, 4, 5)
        running.restart(parallelism=1)
        running.feed("read", 0)
        held, told = (record.value for record in running.written("write"))
        assert sorted(held) == [1, 2, 3, 4, 5] == sorted(told)
        running.feed("read", 6, 7, 8)
        running.restart(parallelism=3)
        running.restart(parallelism=1)
        running.feed("read", 0)
        held, told = (record.value for record in running.written("write")[2:])
        assert sorted(held) == [6, 7, 8]
        assert sorted(told) == sorted([1, 2, 3, 4, 5, 6, 7, 8] * 3), "three kept all of it"


def test_c8_lists_of_subtasks_are_read_item_by_item(tmp_path: Any) -> None:
    source = ListSource({"lines/0": ["a", "b"], "lines/1": ["c"]}, bounded=True)

    class Remember(Transform[str, str]):
        lines = SplitListState(str)

        def on_record(self, value: str, /, context: RecordContext[str]) -> None:
            self.lines.append(value)

    def build(run: JobRun) -> Job:
        job = Job("remember")
        lines = job.read("read", run.source).transform("remember", Remember)
        lines.write("write", MemorySink(run.outside))
        return job

    run = JobRun(tmp_path, source=source, build=build, parallelism=2)
    assert run.run() == 0
    savepoint = open_savepoint(str(run.directory.path))
    assert savepoint.states == (HeldState(step="remember", name="lines", kind="SplitListState[str]"),)
    found: dict[Any, Any] = dict(savepoint.read("remember", "lines"))
    assert sorted(found.values()) == ["a", "b", "c"]
    assert found.keys() <= {(subtask, place) for subtask in (0, 1) for place in (0, 1, 2)}
