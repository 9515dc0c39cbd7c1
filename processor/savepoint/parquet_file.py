"""Rows as a Parquet file, by pyarrow, which only who wants that needs to install."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import IO, Any, Final

from processor.errors import JobError, SettingsError
from processor.savepoint.value_text import json_text
from processor.state.type_schema import Atom, Constants, Mapped, Record, Sequence, TypeSchema, branches

GROUP_ROWS: Final = 50_000
"""Of one group of the file: what is in memory at once."""

_TEXTS: Final = ("str", "datetime", "date", "time", "timedelta", "UUID", "Decimal")


def write_parquet(
    rows: Iterator[dict[str, Any]], columns: Mapping[str, TypeSchema | None], to: IO[bytes]
) -> int:
    """Write all rows; returns how many. ``columns``: the types, None for keys, of which those of the first group
    decide. A column whose values have no type that Parquet shares with others is JSON in text.

    Raises SettingsError without pyarrow; JobError for values that do not fit the column, naming it.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as missing:
        raise SettingsError(
            "Parquet is written by pyarrow, which is not installed.",
            remedy="Install it ('pip install pyarrow', or the extra 'parquet'), or export to JSON or CSV.",
        ) from missing
    first = list(islice(rows, GROUP_ROWS))
    types = {
        name: _type(pyarrow, schema)
        if schema is not None
        else _key_type(pyarrow, [row[name] for row in first])
        for name, schema in columns.items()
    }
    schema = pyarrow.schema(
        [(name, pyarrow.string() if kind is None else kind) for name, kind in types.items()]
    )
    count, group = 0, first
    with parquet.ParquetWriter(to, schema) as writer:
        while group:
            made = [_array(pyarrow, name, [row[name] for row in group], kind) for name, kind in types.items()]
            writer.write_table(pyarrow.Table.from_arrays(made, schema=schema))
            count += len(group)
            group = list(islice(rows, GROUP_ROWS))
    return count


def _array(pyarrow: Any, name: str, values: list[Any], kind: Any) -> Any:
    """``kind`` None: JSON in text."""
    if kind is None:
        return pyarrow.array(
            [None if value is None else json_text(value) for value in values], pyarrow.string()
        )
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    try:
        return pyarrow.array(plain, kind)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise JobError(
            f"column '{name}' has values that are not all {kind}: {error}.",
            remedy="Export to JSON or CSV, where every value may be of its own type.",
        ) from error


def _key_type(pyarrow: Any, keys: list[Any]) -> Any:
    kinds = set(map(type, keys))
    known = {str: pyarrow.string(), int: pyarrow.int64(), bytes: pyarrow.binary(), bool: pyarrow.bool_()}
    return known.get(kinds.pop()) if len(kinds) == 1 else None


def _type(pyarrow: Any, schema: TypeSchema) -> Any:
    """None: there is none that all readers share."""
    some = [each for each in branches(schema) if each != Atom("None")]  # every column may have null
    if len(some) != 1:
        return None
    match some[0]:
        case Atom(name=name):
            known = {"bool": pyarrow.bool_(), "int": pyarrow.int64(), "float": pyarrow.float64()}
            known |= dict.fromkeys(_TEXTS, pyarrow.string()) | dict.fromkeys(
                ("bytes", "bytearray"), pyarrow.binary()
            )
            return known.get(name)
        case Constants(values=values):
            return _key_type(pyarrow, [value for value in values if value is not None])
        case Sequence(item=item):
            inner = _type(pyarrow, item)
            return None if inner is None else pyarrow.list_(inner)
        case Mapped(key=Atom(name="str"), value=value):
            inner = _type(pyarrow, value)
            return None if inner is None else pyarrow.map_(pyarrow.string(), inner)
        case Record(fields=fields, by_place=False):
            parts = [(field.name, _type(pyarrow, field.type)) for field in fields]
            return None if any(kind is None for _, kind in parts) else pyarrow.struct(parts)
        case _:
            return None
