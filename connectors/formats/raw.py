"""Raw bytes: what is in the record, untouched."""

from __future__ import annotations


class Raw:
    """The bytes themselves."""

    def decode(self, data: bytes, /) -> bytes:
        return data

    def encode(self, value: bytes, /) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError(f"Raw writes bytes, not {type(value).__qualname__}")
        return value

    def value_type(self) -> type[bytes]:
        return bytes

    def __repr__(self) -> str:
        return "Raw()"
