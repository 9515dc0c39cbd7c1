"""The entries of a state as rows of a file that other tools read: JSON lines, CSV, Parquet (C8).

A row has the key, of a map the entry's key too, and the value. In JSON and CSV what has no form of its own is text;
in CSV and Parquet the fields of a record are columns of their own.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from enum import StrEnum
from typing import IO, Any

import msgspec

from processor.savepoint.expiring import without_times
from processor.savepoint.opened import Savepoint
from processor.savepoint.parquet_file import write_parquet
from processor.savepoint.tables import HeldTable, entries_of, values_as
from processor.savepoint.value_text import as_json, json_text
from processor.state.schema_text import read_state_schema
from processor.state.type_schema import LIST, Record, Sequence, TypeSchema


class ExportFormat(StrEnum):
    """Of the file."""

    JSON = "json"
    """An object a line."""
    CSV = "csv"
    PARQUET = "parquet"


def rows_of(savepoint: Savepoint, step: str, state: str) -> Iterator[dict[str, Any]]:
    """Every entry of a state: ``key``, of a map ``entry_key``, and ``value``, plain as msgpack has it.

    Raises JobError for a state that is not there; DamagedFile by name.
    """
    table = savepoint.table(step, state)
    kind, untimed = without_times(read_state_schema(table.state), Any)
    for subtask in savepoint.entry.subtasks:
        for some in entries_of(savepoint.directory.files, subtask, table):
            values: list[Any] = list(some.plain()) if untimed is None else values_as(some, table, kind)
            for at, value in enumerate(values):
                row = {"key": some.keys[at]}
                if table.mapped:
                    row["entry_key"] = some.places[at]
                row["value"] = value if untimed is None else untimed(value)
                yield row


def export(savepoint: Savepoint, step: str, state: str, form: ExportFormat, to: IO[bytes]) -> int:
    """Write all entries of a state; returns how many.

    Raises like ``rows_of``; SettingsError when what Parquet needs is not installed.
    """
    table = savepoint.table(step, state)
    rows = rows_of(savepoint, step, state)
    if form is ExportFormat.JSON:
        return _json(rows, to)
    columns = _columns(table)
    flat = (_flat(row, columns) for row in rows)
    if form is ExportFormat.CSV:
        return _csv(flat, columns, to)
    types = _value_types(table)
    return write_parquet(flat, {name: types.get(name) for name in columns}, to)


def json_line(row: dict[str, Any]) -> bytes:
    """One row; bytes are in base64, and a dict whose keys are no names in JSON is a list of pairs."""
    return msgspec.json.encode({name: as_json(value) for name, value in row.items()}, enc_hook=str)


def _json(rows: Iterator[dict[str, Any]], to: IO[bytes]) -> int:
    count = 0
    for row in rows:
        to.write(json_line(row) + b"\n")
        count += 1
    return count


def _columns(table: HeldTable) -> list[str]:
    schema = read_state_schema(table.state)
    value: TypeSchema = schema.values
    keys = ["key", "entry_key"] if table.mapped else ["key"]
    if schema.kind != LIST and isinstance(value, Record):
        return [*keys, *(f"value.{field.name}" for field in value.fields)]
    return [*keys, "value"]


def _value_types(table: HeldTable) -> dict[str, TypeSchema]:
    """By column."""
    schema = read_state_schema(table.state)
    if schema.kind == LIST:
        return {"value": Sequence("list", schema.values)}
    fields = schema.values.fields if isinstance(schema.values, Record) else ()
    return {"value": schema.values} | {f"value.{field.name}": field.type for field in fields}


def _flat(row: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    if columns[-1] == "value":
        return row
    value = row.pop("value")
    names = [name.removeprefix("value.") for name in columns if name.startswith("value.")]
    fields = dict(zip(names, value, strict=False)) if isinstance(value, list) else value
    return row | {f"value.{name}": fields.get(name) for name in names}


def _csv(rows: Iterator[dict[str, Any]], columns: list[str], to: IO[bytes]) -> int:
    count = 0
    lines = csv.writer(_Encoding(to), lineterminator="\n")
    lines.writerow(columns)
    for row in rows:
        lines.writerow([_cell(row[name]) for name in columns])
        count += 1
    return count


def _cell(value: Any) -> str:
    """Null is an empty cell, text is as it is, and everything else as in JSON: an empty text has its quotes."""
    if value is None:
        return ""
    if isinstance(value, str) and value:
        return value
    return json_text(value)


class _Encoding:
    """Text into a file of bytes."""

    def __init__(self, to: IO[bytes]) -> None:
        self._to = to

    def write(self, text: str) -> int:
        return self._to.write(text.encode())
