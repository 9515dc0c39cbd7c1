"""State of every kind, through savepoints of both formats and both backends: what is restored is what there was."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from operator import add
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import (
    AggregatingState,
    BroadcastContext,
    BroadcastState,
    Context,
    Count,
    Expiry,
    Job,
    KeyedBroadcastProcess,
    KeyedProcess,
    Listed,
    ListState,
    MapState,
    RecordContext,
    ReducingState,
    SplitListState,
    TimeDomain,
    Transform,
    UnionListState,
    ValueState,
)
from processor.cli.main import app
from processor.ids import MAX_PARALLELISM_DEFAULT
from processor.savepoint import Savepoint, open_savepoint
from processor.testing import run_job
from tests.unit.runtime.kit import JobRun
from tests.unit.savepoint.kept import FAR_MS, FOR_EVER
from tests.unit.task.kit import ListSource, MemorySink

WORDS = [f"{letter}{number}" for number in range(9) for letter in "abcde"]
RULES = ["x1", "y2", "x3"]
IN_EVENT_TIME = Expiry(FOR_EVER, by=TimeDomain.EVENT, reads_renew=True)
POLLS = 30


class Kinds(KeyedBroadcastProcess[str, str, str, str]):
    """Keeps every word in state of every kind."""

    value = ValueState(str)
    listed: Listed[int | None] = cast(Any, ListState(cast(Any, int | None)))
    mapped = MapState(tuple[str, int], list[int])
    reduced = ReducingState(int, add)
    counted = AggregatingState(Count())
    value_soon = ValueState(list[str], expires_after=FOR_EVER)
    listed_soon = ListState(str, expires_after=IN_EVENT_TIME)
    mapped_soon = MapState(str, int, expires_after=FOR_EVER)
    reduced_soon = ReducingState(int, add, expires_after=IN_EVENT_TIME)
    counted_soon = AggregatingState(Count(), expires_after=FOR_EVER)
    rules = BroadcastState(str, int)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        number = int(value[1:])
        self.value.set(value)
        self.listed.append(number or None)
        self.mapped.set((value, number), [number])
        self.mapped.remove((value[0] + str(number - 2), number - 2))
        self.reduced.add(number)
        self.counted.add(value)
        self.value_soon.set([value])
        self.listed_soon.append(value)
        self.mapped_soon.set(value, number)
        self.reduced_soon.add(number)
        self.counted_soon.add(value)
        context.timers.at_processing_time(FAR_MS + number)
        context.timers.at_event_time(FAR_MS + number)

    def on_broadcast(self, value: str, /, context: BroadcastContext) -> None:
        context.writable(self.rules).set(value[0], int(value[1:]))


class Lists(Transform[str, str]):
    split = SplitListState(str)
    union = UnionListState(str)

    def on_start(self, subtask: int, subtasks: int, /) -> None:
        if subtask:
            self.union.clear()  # or each would keep all of it

    def on_record(self, value: str, /, context: RecordContext[str]) -> None:
        self.split.append(value)
        self.union.append(value)
        context.emit(value)


def build(run: JobRun, max_parallelism: int) -> Job:
    job = Job("kinds", max_parallelism=max_parallelism)
    words = job.read("words", run.source).transform("lists", Lists).returns(str)
    rules = job.read("rules", ListSource({"rules/0": list(RULES)})).broadcast("to-all")
    keyed = words.key_by("by-letter", lambda word: word[0])
    keyed.connect_broadcast(rules).process("kinds", Kinds).write("out", MemorySink(run.outside))
    return job


def ran(
    root: Path, backend: str, parallelism: int, most: int = MAX_PARALLELISM_DEFAULT, **how: Any
) -> JobRun:
    """The job, which reads what there is behind what it starts from, and is stopped."""
    run = JobRun(
        root,
        source=ListSource({"words/0": list(WORDS)}),
        build=lambda run: build(run, most),
        parallelism=parallelism,
        checkpoint={"interval": "10ms"},
        backend={"backend": backend, "directory": root.parent / "local"},
    )
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        run.signals.asked = polls > POLLS

    run.source.on_poll = poll
    assert run.run(**how) == 0
    return run


def contents(savepoint: Savepoint) -> dict[str, Any]:
    """All it holds: of lists of subtasks the items, wherever they are."""
    found: dict[str, Any] = {}
    for held in savepoint.states:
        read = list(savepoint.read(held.step, held.name))
        if held.kind.startswith(("SplitListState", "UnionListState")):
            found[held.name] = sorted(value for _, value in read)
        else:
            found[held.name] = sorted(read, key=repr)
    timers = [(timer.time_ms, timer.key, timer.event_time) for timer in savepoint.timers("kinds")]
    return {**found, "timers": sorted(timers, key=repr)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Path]:
    """The savepoint of a backend in a format, over two subtasks."""
    runs: dict[str, JobRun] = {}
    paths: dict[tuple[str, bool], Path] = {}

    def path_of(backend: str, native: bool) -> Path:
        if backend not in runs:
            runs[backend] = ran(tmp_path_factory.mktemp(backend) / "jobs", backend, 2)
        if (backend, native) not in paths:
            entry = runs[backend].log.read_all().newest()
            assert entry is not None
            path = tmp_path_factory.mktemp("saved") / f"{backend}-{native}"
            runs[backend].savepoint(entry, path, native=native)
            paths[backend, native] = path
        return paths[backend, native]

    return path_of


def test_b4_a_savepoint_holds_state_of_every_kind(saved):
    found = contents(open_savepoint(str(saved("memory", False))))
    assert found["value"] == [(letter, f"{letter}8") for letter in "abcde"]
    assert found["listed"][0] == ("a", [None, *range(1, 9)])
    assert found["reduced"] == found["reduced_soon"] == [(letter, 36) for letter in "abcde"]
    assert found["counted"] == found["counted_soon"] == [(letter, 9) for letter in "abcde"]
    assert dict(found["mapped_soon"])["b"] == {f"b{number}": number for number in range(9)}
    assert dict(found["mapped"])["c"] == {("c7", 7): [7], ("c8", 8): [8]}
    assert dict(found["listed_soon"])["d"] == [f"d{number}" for number in range(9)]
    assert dict(found["value_soon"])["e"] == ["e8"]
    assert found["rules"] == [("x", 3), ("y", 2)]
    assert found["split"] == found["union"] == sorted(WORDS)
    assert len(found["timers"]) == 2 * len(WORDS)


@pytest.mark.parametrize(
    ("backend", "native", "target", "parallelism", "most"),
    [
        ("memory", False, "rocksdb", 3, MAX_PARALLELISM_DEFAULT),
        ("memory", True, "rocksdb", 1, MAX_PARALLELISM_DEFAULT),
        ("rocksdb", False, "memory", 1, MAX_PARALLELISM_DEFAULT),
        ("rocksdb", True, "memory", 3, MAX_PARALLELISM_DEFAULT),
        ("rocksdb", True, "rocksdb", 2, MAX_PARALLELISM_DEFAULT),
        ("memory", False, "memory", 2, 5),
    ],
)
def test_b4_c2_c3_c5_state_of_every_kind_is_restored_as_it_was(
    saved, backend, native, target, parallelism, most, tmp_path
):
    origin = saved(backend, native)
    run = ran(tmp_path / "jobs", target, parallelism, most, origin=str(origin))
    before, after = open_savepoint(str(origin)), open_savepoint(str(run.directory.path))
    assert contents(after) == contents(before)
    if parallelism == 2:  # as it was taken: each has what it had, and one of them had nothing
        held: dict[Any, str] = dict(after.read("lists", "split"))
        assert held == dict(before.read("lists", "split"))
        assert {subtask for subtask, _ in held} == {0}


def test_c8_what_belongs_to_subtasks_is_shown_and_read_like_what_belongs_to_keys(saved):
    path = str(saved("memory", False))
    said = CliRunner().invoke(app, ["savepoint", "show", path]).stdout
    lines = [line.split() for line in said.splitlines()]
    assert ["lists", "split", "SplitListState[str]", str(len(WORDS))] in lines
    assert ["kinds", "rules", "BroadcastState[str,", "int]", "2"] in lines
    read = CliRunner().invoke(app, ["savepoint", "read", path, "lists", "split"]).stdout
    items = [json.loads(line) for line in read.splitlines()]
    assert sorted(item["value"] for item in items) == sorted(WORDS)
    assert sorted(item["key"] for item in items)[0] == [0, 0], "subtask and place"


class Hours(KeyedProcess[str, str, str]):
    """Says what is left of words put in within the last hour."""

    words = ListState(str, expires_after=timedelta(hours=1))
    last = MapState(str, bool, expires_after=timedelta(hours=1))

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        context.emit(f"{self.words.get()} {self.last.keys()}")
        if value != "?":
            self.words.append(value)
            self.last.set(value, True)


def test_b4_r28_a_savepoint_keeps_the_time_of_the_last_touch() -> None:
    job = Job("hours")
    words = job.read("read", KafkaSource("in", Json(str))).key_by("by-nothing", lambda word: "k")
    words.process("hours", Hours).write("write", KafkaSink("out", Json(str)))
    minute_ms = 60_000
    with run_job(job, parallelism=2) as running:
        running.feed("read", "early")
        running.advance_time(40 * minute_ms)
        running.feed("read", "late")
        running.restart(parallelism=3)
        running.advance_time(10 * minute_ms)
        running.feed("read", "?")
        running.advance_time(15 * minute_ms)
        running.restart(parallelism=1)
        running.feed("read", "?")
        assert [record.value for record in running.written("write")] == [
            "None []",
            "['early'] ['early']",
            "['early', 'late'] ['early', 'late']",
            "['late'] ['late']",
        ]
