"""What a savepoint holds, read without the job (C8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from processor.errors import JobError
from processor.savepoint import Changed, HeldState, HeldTimer, difference, open_savepoint, verify_files
from processor.savepoint.counted import count_keys
from tests.unit.savepoint.kept import FAR_MS, Seen, stopped

FIRST = ["apple", "bee", "axe"]
STATES = (
    "count/latest, count/length, count/lengths, count/recent, count/recent_words, count/seen, count/words"
)
SEEN = "Seen(count: int, last: str)"
THEN = ["cat", "b-", "ace"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return str(stopped(tmp_path_factory.mktemp("words"), FIRST, THEN))


def test_c8_it_names_its_states_with_their_types(kept):
    assert open_savepoint(kept).states == (
        HeldState(step="count", name="latest", kind=f"{SEEN}, expires by processing time"),
        HeldState(step="count", name="length", kind="int"),
        HeldState(step="count", name="lengths", kind="ListState[int]"),
        HeldState(step="count", name="recent", kind=f"ListState[{SEEN}], expires by processing time"),
        HeldState(step="count", name="recent_words", kind="MapState[str, int], expires by processing time"),
        HeldState(step="count", name="seen", kind=SEEN),
        HeldState(step="count", name="words", kind="MapState[str, int]"),
    )


def test_c8_values_are_read_over_all_files_without_their_type_or_with_it(kept):
    savepoint = open_savepoint(kept)
    assert len([s for s in savepoint.entry.subtasks for _ in s.keyed]) > 2, "of whole files and of changes"
    assert dict(savepoint.read("count", "seen")) == {
        "a": {"count": 3, "last": "ace"},
        "c": {"count": 1, "last": "cat"},
    }
    assert dict(savepoint.read("count", "seen", Seen))["a"] == Seen(3, "ace")
    assert dict(savepoint.read("count", "length")) == {"a": 3, "b": 3, "c": 3}


def test_c8_lists_and_maps_are_whole(kept):
    savepoint = open_savepoint(kept)
    assert dict(savepoint.read("count", "lengths")) == {"a": [5, 3, 3], "b": [3], "c": [3]}
    assert dict(savepoint.read("count", "words")) == {"a": {"apple": 1, "axe": 1, "ace": 1}, "c": {"cat": 1}}


def test_c8_state_that_expires_is_read_without_its_times(kept):
    savepoint = open_savepoint(kept)
    assert dict(savepoint.read("count", "latest"))["a"] == {"count": 1, "last": "ace"}
    assert dict(savepoint.read("count", "latest", Seen)) == {
        "a": Seen(1, "ace"),
        "b": Seen(1, "bee"),
        "c": Seen(1, "cat"),
    }
    assert dict(savepoint.read("count", "recent"))["b"] == [{"count": 1, "last": "bee"}]
    words = [Seen(1, word) for word in ("apple", "axe", "ace")]
    assert dict(savepoint.read("count", "recent", list[Seen]))["a"] == words
    assert dict(savepoint.read("count", "recent_words", int))["a"] == {"apple": 5, "axe": 3, "ace": 3}


def test_c8_timers_that_have_yet_to_fire_are_there(kept):
    found = sorted(open_savepoint(kept).timers("count"), key=lambda timer: timer.time_ms)
    assert found == [
        HeldTimer(key=key, time_ms=FAR_MS + ord(key), event_time=False) for key in ("a", "b", "c")
    ]


@pytest.mark.parametrize(
    ("look", "named"),
    [
        (
            lambda savepoint: savepoint.read("count", "sum"),
            STATES,
        ),
        (
            lambda savepoint: savepoint.read("by-letter", "seen"),
            STATES,
        ),
        (lambda savepoint: list(savepoint.timers("read")), "those that are there: count"),
    ],
)
def test_c8_what_is_not_there_is_an_error_that_names_what_is(kept, look, named):
    with pytest.raises(JobError, match=named):
        look(open_savepoint(kept))


def test_c8_values_of_another_type_are_an_error(kept):
    with pytest.raises(JobError, match="cannot be read as the type"):
        list(open_savepoint(kept).read("count", "seen", int))


def test_c8_a_path_that_is_no_savepoint_is_an_error(tmp_path):
    with pytest.raises(JobError, match="neither a savepoint nor"):
        open_savepoint(str(tmp_path))


def test_c8_two_are_compared_key_by_key(tmp_path):
    before = open_savepoint(str(stopped(tmp_path / "before", FIRST)))
    after = open_savepoint(str(stopped(tmp_path / "after", FIRST, THEN)))
    found: dict[Any, Changed] = {
        changed.key: changed for changed in difference(before, after, "count", "seen")
    }
    assert found == {
        "a": Changed(
            key="a",
            before={"count": 2, "last": "axe"},
            after={"count": 3, "last": "ace"},
            was_there=True,
            is_there=True,
        ),
        "b": Changed(key="b", before={"count": 1, "last": "bee"}, after=None, was_there=True, is_there=False),
        "c": Changed(key="c", before=None, after={"count": 1, "last": "cat"}, was_there=False, is_there=True),
    }
    assert list(difference(before, before, "count", "seen")) == []


def test_c8_every_damaged_file_is_found_and_the_others_are_still_looked_at(tmp_path):
    path = stopped(tmp_path, FIRST)
    savepoint = open_savepoint(str(path))
    refs = savepoint.entry.files()
    assert verify_files(savepoint).damage == ()
    (path / "files" / refs[0].name).write_bytes(b"else")
    (path / "files" / refs[1].name).unlink()
    looked_at: list[str] = []
    verified = verify_files(savepoint, lambda ref: looked_at.append(ref.name))
    assert looked_at == [ref.name for ref in refs]
    assert (verified.files, verified.bytes) == (len(refs), sum(ref.bytes for ref in refs))
    assert len(verified.damage) == 2
    assert refs[0].name in verified.damage[0]
    assert "is missing" in verified.damage[1]


class CountingFiles:
    """Counts how often each file is read."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.read_names: list[str] = []

    def read(self, ref: Any) -> Any:
        self.read_names.append(ref.name)
        return self._files.read(ref)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def test_c8_to_count_all_states_and_timers_each_file_is_read_once(kept):
    savepoint = open_savepoint(kept)
    files = CountingFiles(savepoint.directory.files)
    counted = replace(savepoint, directory=replace(savepoint.directory, files=files))
    counts = count_keys(counted)
    for state in savepoint.states:
        assert counts[state.step, state.name] == len(dict(savepoint.read(state.step, state.name))), state.name
    assert counts["count", "timers/processing"] == 3
    held = [file.file.name for subtask in savepoint.entry.subtasks for file in subtask.keyed]
    assert sorted(files.read_names) == sorted(held)
