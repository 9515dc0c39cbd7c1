"""Savepoints that programs write: from nothing, and out of others. Real jobs start from them (C8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from processor.errors import JobError, SettingsError
from processor.operators.aggregates import Count
from processor.savepoint import (
    Change,
    NewSavepoint,
    Savepoint,
    open_savepoint,
    rewrite_savepoint,
    verify_files,
)
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun
from tests.unit.savepoint.kept import FAR_MS, Seen, counting
from tests.unit.task.kit import ListSource, MemorySink

POLLS = 12


def started(root: Path, words: list[str], build: Any, parallelism: int = 1, **options: Any) -> Savepoint:
    """A job over these words, stopped; what it holds then."""
    source = ListSource({"words/0": words}, bounded=False)
    run = JobRun(root, source=source, build=build, parallelism=parallelism, checkpoint={"interval": "10ms"})
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        run.signals.asked = polls > POLLS

    source.on_poll = poll
    assert run.run(**options) == 0
    return open_savepoint(str(run.directory.path))


def totals(run: JobRun) -> Job:
    job = Job("totals")
    words = job.read("read", run.source).key_by("by-word", lambda word: word)
    words.aggregate("count", Count()).write("out", MemorySink(run.outside))
    return job


@pytest.mark.parametrize("parallelism", [1, 3])
def test_c8_a_job_started_from_a_made_savepoint_finds_its_state(tmp_path, parallelism):
    made = NewSavepoint(str(tmp_path / "made"), "totals")
    made.state("count", "total", ValueState(int), ((word, 100) for word in ("a", "b", "c")))
    made.positions("read", {"words/0": 2})
    savepoint = made.finish()
    assert verify_files(savepoint).damage == ()
    held = started(
        tmp_path / "jobs", ["a", "b", "a", "d"], totals, parallelism, origin=str(tmp_path / "made")
    )
    assert dict(held.read("count", "total")) == {"a": 101, "b": 100, "c": 100, "d": 1}, "two were read before"


def test_c8_every_kind_of_state_and_timers_can_be_made(tmp_path):
    made = NewSavepoint(str(tmp_path / "made"), "words", max_parallelism=128)
    made.state("count", "seen", ValueState(Seen), [("a", Seen(1, "old")), ("a", Seen(5, "ape"))])
    made.state("count", "lengths", ListState(int), [("a", [3, 3]), ("z", [])])
    made.state("count", "words", MapState(str, int), [("a", {"ape": 5}), ("b", {})])
    made.timers("count", [("a", FAR_MS), ("a", FAR_MS + 1)], event_time=False)
    made.event_time("count", 7)
    savepoint = made.finish()
    assert dict(savepoint.read("count", "seen", Seen)) == {"a": Seen(5, "ape")}, "the last of a key counts"
    held = started(tmp_path / "jobs", ["apple"], counting, 2, origin=str(tmp_path / "made"))
    assert dict(held.read("count", "seen", Seen)) == {"a": Seen(6, "apple")}
    assert dict(held.read("count", "lengths")) == {"a": [3, 3, 5], "z": []}
    assert dict(held.read("count", "words")) == {"a": {"ape": 5, "apple": 1}}
    assert sorted(timer.time_ms - FAR_MS for timer in held.timers("count")) == [0, 1, 97]


@pytest.mark.parametrize(
    ("give", "says"),
    [
        (lambda made: made.state("s", "n", ValueState(int), [("k", "x")]), "key 'k' cannot be kept.*int"),
        (lambda made: made.state("s", "n", ValueState(int), [(None, 1)]), "key of type NoneType"),
        (lambda made: made.state("s", "n", ValueState(int), [("k", None)]), "key 'k'"),
        (lambda made: made.state("s", "n", MapState(str, int), [("k", {"e": 1.5})]), "entry 'e' of key 'k'"),
        (
            lambda made: [made.state("s", "n", ValueState(int), []) for _ in range(2)],
            "given its entries already",
        ),
        (lambda made: [made.timers("s", [("k", 1)], event_time=True) for _ in range(2)], "already"),
    ],
)
def test_c8_what_does_not_fit_is_refused_by_its_key(tmp_path, give, says):
    made = NewSavepoint(str(tmp_path / "made"), "job")
    with pytest.raises(JobError, match=says):
        give(made)
    with pytest.raises(JobError, match="no whole checkpoint"):
        open_savepoint(str(tmp_path / "made"))


def test_c8_a_made_savepoint_is_refused_by_a_job_that_declares_another_type(tmp_path):
    made = NewSavepoint(str(tmp_path / "made"), "totals")
    made.state("count", "total", ValueState(str), [("a", "x")])
    made.finish()
    with pytest.raises(JobError, match="is int in the job and str in the checkpoint"):
        started(tmp_path / "jobs", [], totals, origin=str(tmp_path / "made"))


def test_c8_nothing_is_written_over(tmp_path):
    NewSavepoint(str(tmp_path / "made"), "totals").finish()
    with pytest.raises(SettingsError, match="is not empty"):
        NewSavepoint(str(tmp_path / "made"), "totals")


class Better(msgspec.Struct, frozen=True):
    count: int
    last: str
    longest: int


def test_c8_states_are_changed_and_dropped_and_a_changed_job_starts_from_it(tmp_path):
    held = started(tmp_path / "old", ["apple", "axe", "bee"], counting, 2)
    changed = rewrite_savepoint(
        held,
        str(tmp_path / "changed"),
        changes={
            ("count", "seen"): Change(
                to=lambda key, seen: None if key == "b" else Better(seen.count, seen.last, 5),
                declared=ValueState(Better),
                kind=Seen,
            ),
            ("count", "words"): Change(
                to=lambda word, times: times * 10 if word == "axe" else times, declared=MapState(str, int)
            ),
            ("count", "lengths"): Change(to=lambda key, lengths: lengths[:1], declared=ListState(int)),
        },
        drop=["count/length"],
    )
    assert dict(changed.read("count", "seen", Better)) == {"a": Better(2, "axe", 5)}
    assert dict(changed.read("count", "words")) == {"a": {"apple": 1, "axe": 10}, "b": {"bee": 1}}
    assert dict(changed.read("count", "lengths")) == {"a": [5], "b": [3]}
    assert [state.name for state in changed.states if state.name == "length"] == []
    assert dict(held.read("count", "seen", Seen)) == {"a": Seen(2, "axe"), "b": Seen(1, "bee")}, (
        "that one stays"
    )
    after = started(
        tmp_path / "new", ["apple", "axe", "bee", "ace"], counting, origin=str(tmp_path / "changed")
    )
    assert dict(after.read("count", "seen", Seen)) == {"a": Seen(3, "ace")}, "which knows no longest"
    assert dict(after.read("count", "length")) == {"a": 3}


def test_c8_a_rewritten_savepoint_is_one_of_its_own(tmp_path):
    """Started from after the first, it is not taken for it (R3)."""
    held = started(tmp_path / "old", ["apple"], counting)
    rewrite_savepoint(held, str(tmp_path / "one"))
    again = rewrite_savepoint(open_savepoint(str(tmp_path / "one")), str(tmp_path / "two"))
    assert again.entry.incarnation != open_savepoint(str(tmp_path / "one")).entry.incarnation
    after = started(tmp_path / "new", ["apple"], counting, 3, origin=str(tmp_path / "two"))
    assert dict(after.read("count", "seen", Seen)) == {"a": Seen(1, "apple")}
    with pytest.raises(JobError, match=r"there is no 'count/other'.*count/lengths"):
        rewrite_savepoint(held, str(tmp_path / "three"), drop=["count/other"])
    with pytest.raises(JobError, match="only the type of its values can change"):
        rewrite_savepoint(
            held,
            str(tmp_path / "four"),
            changes={("count", "lengths"): Change(to=lambda key, value: value, declared=ValueState(int))},
        )
