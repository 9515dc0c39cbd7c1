"""JSON, by msgspec: checked against a type when read, written without a space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from connectors.formats.decodable import check_decodable

T = TypeVar("T")


class Json(Generic[T]):
    """JSON objects, arrays and values as ``kind``: a dataclass, a msgspec Struct, a TypedDict, a plain type.

    Reading is strict: a missing field, a value of another type and trailing bytes are errors; fields that
    ``kind`` does not have are passed over. Numbers beyond 64 bits are refused for int.

    Raises: JobError for a type msgspec cannot read.
    """

    def __init__(self, kind: type[T]) -> None:
        check_decodable(kind, "Json")
        self._kind = kind
        # The codec's own functions, not methods around them: a source and a sink call them once a record.
        self.decode: Callable[[bytes], T] = msgspec.json.Decoder(kind).decode
        self.encode: Callable[[T], bytes] = msgspec.json.Encoder().encode

    def value_type(self) -> type[T]:
        """The type of what ``decode`` returns."""
        return self._kind

    def __repr__(self) -> str:
        return f"Json({getattr(self._kind, '__qualname__', self._kind)})"


class AnyJson:
    """Writes any value msgspec can write; what a sink needs when the type of its values does not matter."""

    def __init__(self) -> None:
        self.encode: Callable[[object], bytes] = msgspec.json.Encoder().encode

    def __repr__(self) -> str:
        return "AnyJson()"
