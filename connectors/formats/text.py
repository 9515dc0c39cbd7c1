"""Text: one str a record."""

from __future__ import annotations

from processor.errors import JobError


class Text:
    """Strings in an encoding, UTF-8 unless another is named. Undecodable bytes are an error, never replaced.

    Raises: JobError for an encoding Python does not know.
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        try:
            "".encode(encoding)
        except LookupError as error:
            raise JobError(
                f"'{encoding}' is no text encoding.", remedy="Name one such as utf-8 or latin-1."
            ) from error
        self._encoding = encoding

    def decode(self, data: bytes, /) -> str:
        return data.decode(self._encoding)

    def encode(self, value: str, /) -> bytes:
        return value.encode(self._encoding)

    def value_type(self) -> type[str]:
        return str

    def __repr__(self) -> str:
        return f"Text({self._encoding!r})"
