"""Looking into savepoints from a shell."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from processor.cli.main import app
from tests.unit.savepoint.kept import stopped


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two directories of a job: before and after it has read more."""
    root = tmp_path_factory.mktemp("savepoints")
    stopped(root / "a", ["apple", "bee"]).rename(root / "before")
    stopped(root / "b", ["apple", "bee"], ["b-", "cat"]).rename(root / "after")
    return root


EXPIRES = ["expires", "by", "processing", "time"]


def ask(*words: object):
    return CliRunner().invoke(app, ["savepoint", *map(str, words)])


def lines(text: str) -> list[object]:
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda line: line["key"])


def test_c8_show_counts_keys_and_timers_of_each_state(folder):
    said = ask("show", folder / "after").stdout
    assert "job   words" in said
    assert [line.split() for line in said.splitlines() if line.startswith("count ")] == [
        ["count", "latest", "Seen(count:", "int,", "last:", "str),", *EXPIRES, "3"],
        ["count", "length", "int", "3"],
        ["count", "lengths", "ListState[int]", "3"],
        ["count", "recent", "ListState[Seen(count:", "int,", "last:", "str)],", *EXPIRES, "3"],
        ["count", "recent_words", "MapState[str,", "int],", *EXPIRES, "3"],
        ["count", "seen", "Seen(count:", "int,", "last:", "str)", "2"],
        ["count", "words", "MapState[str,", "int]", "2"],
        ["count", "timers", "-", "3"],
    ]
    assert "lines/0" in said, "positions"


def test_c8_read_gives_a_line_of_json_for_each_key(folder):
    assert lines(ask("read", folder / "after", "count", "seen").stdout) == [
        {"key": "a", "value": {"count": 1, "last": "apple"}},
        {"key": "c", "value": {"count": 1, "last": "cat"}},
    ]
    assert len(ask("read", folder / "after", "count", "length", "--limit", 2).stdout.splitlines()) == 2


def test_c8_diff_says_what_each_key_was_and_is(folder):
    result = ask("diff", folder / "before", folder / "after", "count", "seen")
    assert result.exit_code == 1
    assert lines(result.stdout) == [
        {"key": "b", "before": {"count": 1, "last": "bee"}},
        {"key": "c", "after": {"count": 1, "last": "cat"}},
    ]
    same = ask("diff", folder / "before", folder / "before", "count", "seen")
    assert (same.exit_code, same.stdout) == (0, "")


def test_c8_verify_names_what_is_damaged(folder, tmp_path):
    whole = ask("verify", folder / "before")
    assert whole.exit_code == 0
    assert "is whole" in whole.stdout
    path = stopped(tmp_path, ["apple"])
    (file, *_) = sorted((path / "files").rglob("*.state"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    damaged = ask("verify", path)
    assert damaged.exit_code == 1
    assert file.name in damaged.stdout


def test_c8_list_shows_what_is_a_savepoint_and_nothing_else(folder):
    said = ask("list", folder).stdout.splitlines()
    assert said[0].split() == ["NAME", "JOB", "OF", "SIZE"]
    assert [line.split()[0] for line in said[1:]] == ["before", "after"]


def test_c8_list_says_which_of_them_is_damaged_and_passes_over_what_is_none(tmp_path):
    stopped(tmp_path / "jobs", ["apple"]).rename(tmp_path / "good")
    stopped(tmp_path / "jobs2", ["apple"]).rename(tmp_path / "broken")
    (tmp_path / "broken" / "job.json").write_text("{}")
    (tmp_path / "a file").write_text("of somebody")
    (tmp_path / "a folder").mkdir()
    said = ask("list", tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in said] == ["NAME", "good", "'broken'"]
    assert "cannot be opened" in said[2]
    assert "job.json" in said[2]


def test_c8_a_directory_that_is_not_there_is_an_error(tmp_path):
    result = ask("list", tmp_path / "none")
    assert result.exit_code != 0
    assert "is no directory" in result.stderr
