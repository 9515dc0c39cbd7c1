"""One file of a canonical savepoint: an Avro object container with all entries of one table of one subtask.

Any Avro tool reads it. Its records, and what the header says beside the schema:

    value, list, reducing, aggregating   key, value
    map                                  key, entry_key, value
    timers                               key, time_ms

    processor.format, .step, .table, .state    version of this layout; which table; the state's schema as in manifests
    processor.keys, .entry_keys, .ints         the forms of ``avro_keys``, and "wide" ints of ``avro_types``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, islice
from typing import Any, Final, cast

import fastavro
import msgspec

from processor.contracts.file_store import FileStore, FileWriter
from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.errors import JobError, ProcessorError
from processor.ids import FileRef
from processor.savepoint.avro_keys import KeyForm, form_of, key_schema, reading, writing
from processor.savepoint.avro_type import AvroType
from processor.savepoint.avro_types import avro_type
from processor.savepoint.held import HeldEntries
from processor.state.schema_text import read_state_schema
from processor.state.type_schema import LIST, MAP, Atom, Field, Record, Sequence, StateSchema, TypeSchema
from processor.storage.block_file import damaged

AVRO_FORMAT: Final = "1"
SYNC_BYTES: Final = 256 * 1024
"""Of one block of a file: what a reader has in memory at once, beside its entries."""

_INT: Final = Atom("int")
_NO_RECORDS: Final = ("null", "boolean", "long", "double", "string", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroTable:
    """What a file holds, and how."""

    step: str
    table: str
    state: str
    """The schema of the state in text; "" for timers."""
    keys: KeyForm
    entry_keys: KeyForm | None
    """Of maps."""
    wide: bool = False
    """Ints have up to 64 bits without a sign."""

    def metadata(self) -> dict[str, str]:
        return {
            "processor.format": AVRO_FORMAT,
            "processor.step": self.step,
            "processor.table": self.table,
            "processor.state": self.state,
            "processor.keys": self.keys,
            "processor.entry_keys": self.entry_keys or "",
            "processor.ints": "wide" if self.wide else "",
        }


class _TooNarrow(Exception):
    """Entries do not fit into the table as it was begun."""

    def __init__(self, wider: AvroTable) -> None:
        super().__init__()
        self.wider = wider


def write_avro(
    create: Callable[[], FileWriter],
    entries: Callable[[], Iterator[HeldEntries]],
    *,
    step: str,
    table: str,
    state: str,
    even_if_empty: bool = False,
) -> FileRef | None:
    """All entries of a table; None when there are none, unless ``even_if_empty``. ``create`` begins a file,
    ``entries`` begins to read what goes in: both again, when it turns out half-way that a wider type is needed.

    Raises JobError for a value that is not of the schema, Unavailable, DamagedFile.
    """
    found = entries()
    first = next(found, None)
    if first is None:
        if not even_if_empty:
            return None
        first = HeldEntries(keys=[], places=[], values=[])
    mapped = bool(state) and read_state_schema(state).kind == MAP
    layout = AvroTable(
        step=step,
        table=table,
        state=state,
        keys=form_of(first.keys),
        entry_keys=form_of(first.places) if mapped else None,
    )
    found = chain((first,), found)
    while True:
        writer = create()
        try:
            _write(writer, found, layout)
            return writer.finish()
        except _TooNarrow as narrow:
            layout, found = narrow.wider, entries()
        finally:
            writer.discard()


def read_avro(files: FileStore, ref: FileRef, *, step: str, table: str, state: str) -> Iterator[HeldEntries]:
    """Inverse of ``write_avro``: values are plain. Raises DamagedFile by name for anything but what was written."""
    files.verify(ref)  # what Avro's reader makes of other bytes is anybody's guess
    try:
        header = _reader(files, ref, named=False)
        layout = _layout(header.metadata, step=step, table=table, state=state)
        if layout is None or _as_read(header.writer_schema) != _as_read(_file_schema(layout)):
            raise damaged(ref.name, f"is not that of '{table}' of step '{step}' of type {state or 'timers'}")
        yield from _read(_reader(files, ref, named=_several_records(header.writer_schema)), layout)
    except (ProcessorError, GeneratorExit):
        raise
    except Exception as error:  # of Avro's reader: of many classes
        raise damaged(ref.name, f"cannot be read as Avro ({type(error).__name__}: {error})") from error


def _reader(files: FileStore, ref: FileRef, *, named: bool) -> Any:
    """``named``: records of a union of several come with their name, which costs a tenth more."""
    stream = cast(Any, _Stream(files.read(ref)))
    return fastavro.reader(stream, return_record_name=named, return_record_name_override=named)


def _several_records(avro: Any) -> bool:
    """Whether there is a union, anywhere, with more than one record."""
    match avro:
        case list():
            named = sum(isinstance(each, dict) or each not in _NO_RECORDS for each in avro)
            return named > 1 or any(map(_several_records, avro))
        case dict():
            inner = [avro.get("items"), avro.get("values"), *(f["type"] for f in avro.get("fields", ()))]
            return any(map(_several_records, inner))
        case _:
            return False


def kept_schema(schema: StateSchema) -> TypeSchema:
    """What is kept for each key, or for each entry of a map: with the time of its last touch if it expires."""
    kept = schema.values
    if schema.expires_by:
        kept = Record("Touched", (Field("touched_ms", _INT), Field("value", kept)), by_place=True)
    return Sequence("list", kept) if schema.kind == LIST else kept


def _value_type(layout: AvroTable) -> AvroType:
    return avro_type(kept_schema(read_state_schema(layout.state)), wide=layout.wide)


def _file_schema(layout: AvroTable) -> dict[str, Any]:
    fields = [{"name": "key", "type": key_schema(layout.keys, defined=False)}]
    if layout.entry_keys is not None:
        defined = layout.keys is KeyForm.ANY
        fields.append({"name": "entry_key", "type": key_schema(layout.entry_keys, defined=defined)})
    if layout.state:
        fields.append({"name": "value", "type": _value_type(layout).schema})
    else:
        fields.append({"name": "time_ms", "type": "long"})
    return {"type": "record", "name": "processor.Entry", "fields": fields}


def _as_read(schema: Any) -> str:
    """What of an Avro schema decides how a file is read (parsing canonical form)."""
    return fastavro.schema.to_parsing_canonical_form(schema)


def _layout(metadata: Mapping[str, str], *, step: str, table: str, state: str) -> AvroTable | None:
    """What the header says; None when it is not that of the table that is asked for."""
    entry_keys = metadata.get("processor.entry_keys", "")
    layout = AvroTable(
        step=step,
        table=table,
        state=state,
        keys=KeyForm(metadata.get("processor.keys", "")),
        entry_keys=KeyForm(entry_keys) if entry_keys else None,
        wide=metadata.get("processor.ints") == "wide",
    )
    return layout if layout.metadata().items() <= metadata.items() else None


def _write(writer: FileWriter, entries: Iterable[HeldEntries], layout: AvroTable) -> None:
    rows = _Rows(layout)
    try:
        fastavro.writer(
            cast(Any, _Sink(writer)),
            fastavro.parse_schema(_file_schema(layout)),
            rows.of(entries),
            sync_interval=SYNC_BYTES,
            metadata=layout.metadata(),
            # A marker that a seeded run repeats; nothing hangs on it, for the whole file has its hash.
            sync_marker=sha256(msgspec.json.encode(layout.metadata())).digest()[:16],
        )
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise _wider_ints(layout, rows, error) from error


def _wider_ints(layout: AvroTable, rows: _Rows, error: Exception) -> Exception:
    if not layout.wide and layout.state:
        return _TooNarrow(replace(layout, wide=True))
    return JobError(
        f"state '{layout.table}' of step '{layout.step}' has a value for key {rows.key!r:.80} that is not of its "
        f"type {layout.state:.200}: {error}.",
        remedy="Take a native savepoint, and tell us.",
    )


class _Rows:
    """Entries as records of the file."""

    def __init__(self, layout: AvroTable) -> None:
        self._layout = layout
        self.key: Any = None
        """The one at hand."""

    def of(self, entries: Iterable[HeldEntries]) -> Iterator[dict[str, Any]]:
        layout = self._layout
        write_keys = writing(layout.keys)
        convert = _value_type(layout).write if layout.state else None
        for some in entries:
            self._check(some)
            keys = write_keys(some.keys)
            if not layout.state:
                for self.key, time_ms in zip(keys, some.places, strict=True):
                    yield {"key": self.key, "time_ms": time_ms}
                continue
            values = some.plain()
            if convert is not None:
                values = list(map(convert, values))
            if layout.entry_keys is None:
                for self.key, value in zip(keys, values, strict=True):
                    yield {"key": self.key, "value": value}
            else:
                entry_keys = writing(layout.entry_keys)(some.places)
                for self.key, entry_key, value in zip(keys, entry_keys, values, strict=True):
                    yield {"key": self.key, "entry_key": entry_key, "value": value}

    def _check(self, some: HeldEntries) -> None:
        layout = wider = self._layout
        if layout.keys is not KeyForm.ANY and form_of(some.keys) is not layout.keys:
            wider = replace(wider, keys=KeyForm.ANY)
        if layout.entry_keys not in (None, KeyForm.ANY) and form_of(some.places) is not layout.entry_keys:
            wider = replace(wider, entry_keys=KeyForm.ANY)
        if wider is not layout:
            raise _TooNarrow(wider)


def _read(found: Iterator[dict[str, Any]], layout: AvroTable) -> Iterator[HeldEntries]:
    read_keys = reading(layout.keys)
    read_entry_keys = reading(layout.entry_keys) if layout.entry_keys is not None else None
    convert = _value_type(layout).read if layout.state else None
    second = "entry_key" if layout.entry_keys is not None else "" if layout.state else "time_ms"
    while True:
        keys: list[Any] = []
        places: list[Any] = []
        values: list[Any] = []
        # One by one: records that are held for a moment only cost the collector nothing.
        for each in islice(found, BLOCK_ENTRIES_MAX):
            keys.append(each["key"])
            if second:
                places.append(each[second])
            if layout.state:
                values.append(each["value"])
        if not keys:
            return
        yield HeldEntries(
            keys=read_keys(keys),
            places=places if read_entry_keys is None else read_entry_keys(places),
            values=values if convert is None else list(map(convert, values)),
        )


class _Sink:
    """What Avro's writer writes to."""

    def __init__(self, writer: FileWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> int:
        self._writer.write(data)
        return len(data)

    def seekable(self) -> bool:
        """So it does not look for a file to go on with."""
        return False

    def flush(self) -> None:
        """The store's writer keeps nothing back that ``finish`` would miss."""


class _Stream:
    """What Avro's reader reads from: the chunks of a file, in whatever pieces are asked for."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._at = 0

    def read(self, size: int) -> bytes:
        while len(self._buffer) - self._at < size and (chunk := next(self._chunks, None)) is not None:
            self._buffer = self._buffer[self._at :] + chunk
            self._at = 0
        start = self._at
        self._at = min(len(self._buffer), start + max(size, 0))
        return self._buffer[start : self._at]
