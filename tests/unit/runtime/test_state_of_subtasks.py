"""State that belongs to subtasks, through savepoints and at other parallelisms, in a whole job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import (
    BroadcastContext,
    BroadcastState,
    Context,
    Job,
    KeyedBroadcastProcess,
    RecordContext,
    SplitListState,
    Transform,
    UnionListState,
)
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


class ByRules(KeyedBroadcastProcess[str, str, str, str]):
    """Every word with all rules known then, and what event time is."""

    rules = BroadcastState(str, int)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        context.emit(f"{value} {','.join(self.rules)} {context.watermark_ms}")

    def on_broadcast(self, value: str, /, context: BroadcastContext) -> None:
        rules = context.writable(self.rules)
        rules.set(value, (self.rules.get(value) or 0) + 1)
        if (self.rules.get(value) or 0) > 1:
            raise ValueError(f"{value} is broadcast again")


def by_rules() -> Job:
    job = Job("by-rules")
    rules = job.read("rules", KafkaSource("rules", Json(str))).broadcast("to-all")
    words = job.read("words", KafkaSource("words", Json(str)))
    timed = words.event_time(lambda word: int(word[1:]), disorder=timedelta(0))
    told = timed.key_by("by-word", str).connect_broadcast(rules).process("tell", ByRules)
    told.write("write", KafkaSink("out", Json(str)))
    return job


@pytest.mark.parametrize("parallelisms", [(1, 3), (3, 1), (2, 3)])
def test_d4_broadcast_state_is_whole_in_every_subtask_at_any_parallelism(
    parallelisms: tuple[int, int],
) -> None:
    """A job whose broadcast stream has no event time: the other stream's counts, and nobody waits."""
    before, after = parallelisms
    with run_job(by_rules(), parallelism=before) as running:
        running.feed("rules", "b", "a")
        running.feed("words", *(f"w{number}" for number in range(20)))
        assert {record.value.split()[1] for record in running.written("write")} == {"a,b"}
        running.restart(parallelism=after)
        running.feed("rules", "c")
        running.feed("words", *(f"w{number}" for number in range(20, 40)))
        told = [record.value.split() for record in running.written("write")[20:]]
        assert {rules for _, rules, _ in told} == {"a,b,c"}
        assert sorted(word for word, _, _ in told) == sorted(f"w{number}" for number in range(20, 40))
        assert max(int(time_ms) for _, _, time_ms in told) >= 19, "event time of before the restart"
