"""A state as a file for other tools (C8)."""

from __future__ import annotations

import csv
import json
import sys
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from processor.cli.main import app
from processor.errors import SettingsError
from processor.savepoint import ExportFormat, NewSavepoint, Savepoint, export, open_savepoint
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState


class Seen(msgspec.Struct):
    count: int
    last: str | None
    tags: list[str] = []


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = NewSavepoint(str(tmp_path_factory.mktemp("made") / "savepoint"), "job")
    made.state("count", "seen", ValueState(Seen), [("a", Seen(1, "x,\n")), ("b", Seen(2, None, ["t"]))])
    made.state("count", "words", MapState(str, int), [("a", {"x": 1, "y": 0}), ("", {"": -1})])
    made.state("count", "lists", ListState(bytes), [(1, [b"\x00"]), (2, [])])
    made.state("count", "mixed", ValueState(int), [("1", 1), (1, 2), (("t", 2), 3)])
    return Path(made.finish().directory.where)


@pytest.fixture
def savepoint(path: Path) -> Savepoint:
    return open_savepoint(str(path))


def exported(savepoint: Savepoint, state: str, form: ExportFormat) -> bytes:
    to = BytesIO()
    export(savepoint, "count", state, form, to)
    return to.getvalue()


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (str(row["key"]), str(row.get("entry_key"))))


def test_c8_json_lines_have_every_entry(savepoint):
    lines = exported(savepoint, "seen", ExportFormat.JSON).decode().splitlines()
    assert by_key([json.loads(line) for line in lines]) == [
        {"key": "a", "value": {"count": 1, "last": "x,\n", "tags": []}},
        {"key": "b", "value": {"count": 2, "last": None, "tags": ["t"]}},
    ]
    lines = exported(savepoint, "words", ExportFormat.JSON).decode().splitlines()
    assert {"key": "a", "entry_key": "y", "value": 0} in [json.loads(line) for line in lines]
    assert len(lines) == 3


def test_c8_csv_has_a_column_for_every_field_and_tells_null_from_empty(savepoint):
    text = exported(savepoint, "seen", ExportFormat.CSV).decode()
    rows = by_key(list(csv.DictReader(StringIO(text, newline=""))))
    assert rows == [
        {"key": "a", "value.count": "1", "value.last": "x,\n", "value.tags": "[]"},
        {"key": "b", "value.count": "2", "value.last": "", "value.tags": '["t"]'},
    ]
    rows = list(csv.DictReader(StringIO(exported(savepoint, "words", ExportFormat.CSV).decode(), newline="")))
    assert {"key": '""', "entry_key": '""', "value": "-1"} in rows


def test_c8_parquet_has_types(savepoint):
    found = parquet.read_table(BytesIO(exported(savepoint, "seen", ExportFormat.PARQUET)))
    assert [str(field.type) for field in found.schema] == [
        "string",
        "int64",
        "string",
        "list<element: string>",
    ]
    assert by_key(found.to_pylist())[1] == {
        "key": "b",
        "value.count": 2,
        "value.last": None,
        "value.tags": ["t"],
    }
    found = parquet.read_table(BytesIO(exported(savepoint, "lists", ExportFormat.PARQUET)))
    assert by_key(found.to_pylist()) == [{"key": 1, "value": [b"\x00"]}, {"key": 2, "value": []}]
    found = parquet.read_table(BytesIO(exported(savepoint, "mixed", ExportFormat.PARQUET)))
    assert {row["key"] for row in found.to_pylist()} == {'"1"', "1", '["t",2]'}, (
        "keys of several types are JSON"
    )


def test_c8_without_pyarrow_parquet_is_refused_with_what_to_do(savepoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingsError, match="pip install pyarrow"):
        exported(savepoint, "seen", ExportFormat.PARQUET)


def ask(*words: object) -> Any:
    return CliRunner().invoke(app, ["savepoint", *map(str, words)])


def test_c8_a_file_is_written_from_a_shell_and_never_over_another(path, tmp_path):
    to = tmp_path / "seen.csv"
    result = ask("export", path, "count", "seen", "--to", to, "--format", "csv")
    assert (result.exit_code, result.stdout) == (0, "2 entries\n")
    assert to.read_text().startswith("key,value.count,value.last,value.tags\n")
    result = ask("export", path, "count", "seen", "--to", to)
    assert result.exit_code != 0
    assert "is there already" in result.stderr
    result = ask("export", path, "count", "gone", "--to", tmp_path / "gone.json")
    assert "count/lists, count/mixed, count/seen, count/words" in result.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["seen.csv"], "nothing half-written is left"


def test_c8_a_savepoint_is_rewritten_from_a_shell(path, tmp_path):
    result = ask("rewrite", path, "--to", tmp_path / "less", "--drop", "count/mixed", "--drop", "count/lists")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == str(tmp_path / "less")
    assert [state.name for state in open_savepoint(str(tmp_path / "less")).states] == ["seen", "words"]
    assert ask("verify", tmp_path / "less").exit_code == 0
    result = ask("rewrite", path, "--to", tmp_path / "more", "--drop", "other")
    assert "there is no 'other' in the savepoint" in result.stderr
