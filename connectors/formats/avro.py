"""Avro without a registry: every record is one datum of a schema the author gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any, Generic, TypeVar, cast, overload
from uuid import UUID

import fastavro
import msgspec
from fastavro.schema import SchemaParseException

from connectors.formats.decodable import check_decodable
from processor.errors import JobError

T = TypeVar("T")

Schema = str | Mapping[str, Any] | Sequence[Any]
"""A schema as JSON text or as the objects JSON gives."""

_AVRO_KNOWS = (bytes, bytearray, datetime, date, time, UUID, Decimal)
"""Types that go to Avro as they are: it has logical types for them."""


class Avro(Generic[T]):
    """Data of one schema, as dicts, or as ``kind``: a dataclass or msgspec Struct with the schema's fields.

    Bytes left over after the datum are an error, for they mean another schema wrote it. (The framing of a
    schema registry is such a case: five bytes in front.)

    Raises: JobError for a schema that is none, or a ``kind`` msgspec cannot make.
    """

    @overload
    def __init__(self: Avro[dict[str, Any]], schema: Schema) -> None: ...
    @overload
    def __init__(self: Avro[T], schema: Schema, kind: type[T]) -> None: ...
    def __init__(self, schema: Schema, kind: Any = dict) -> None:
        self._kind: type[T] = kind
        self._plain = kind is dict
        try:
            loaded = msgspec.json.decode(schema) if isinstance(schema, str) else schema
            self._schema = fastavro.parse_schema(cast(Any, loaded))
        except (SchemaParseException, msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise JobError(
                f"the Avro schema cannot be used: {type(error).__name__}: {error}.",
                remedy="Give one as JSON text or as dicts and lists, as the Avro specification has it.",
            ) from error
        if not self._plain:
            check_decodable(kind, "Avro")

    def decode(self, data: bytes, /) -> T:
        """The datum. Raises ValueError for bytes left over, what fastavro and msgspec raise for the rest."""
        stream = BytesIO(data)
        datum = fastavro.schemaless_reader(stream, self._schema, None)
        left = len(data) - stream.tell()
        if left:
            raise ValueError(f"{left} of {len(data)} bytes are left over: another schema wrote this record")
        if self._plain:
            return cast(T, datum)
        return msgspec.convert(datum, self._kind, builtin_types=_AVRO_KNOWS)

    def encode(self, value: T, /) -> bytes:
        """Raises ValueError when the value does not fit the schema."""
        stream = BytesIO()
        datum = value if self._plain else msgspec.to_builtins(value, builtin_types=_AVRO_KNOWS)
        fastavro.schemaless_writer(stream, self._schema, cast(Any, datum), strict_allow_default=True)
        return stream.getvalue()

    def value_type(self) -> type[T]:
        """The type of what ``decode`` returns."""
        return self._kind

    def __repr__(self) -> str:
        return f"Avro({self._kind.__qualname__})"
