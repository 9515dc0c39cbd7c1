"""Values on their way out of a snapshot whose schema may be another than the one declared now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast, get_args

import msgspec

from processor.state.value_types import ValueType


class RestoredValues:
    """How the values of one table are read from one file, and what is handed to the table.

    A table that keeps bytes takes them as they are in the file. But not those of another schema: they would go into
    the next file as they are, under a schema that is not theirs, and what a comparison says of that would not hold.
    """

    def __init__(self, as_kept: Any, evolved: ValueType | None) -> None:
        """``as_kept``: the type in which the table wants them; ``evolved``: the type of the values now, where their
        schema in the file is another one."""
        self.kind = as_kept
        """The type to read the file with."""
        self._encode = evolved.encode if evolved is not None else None
        self._mapped = as_kept is not msgspec.Raw
        if evolved is None or msgspec.Raw not in (as_kept, *get_args(as_kept)):
            self._encode = None  # as they are, or as objects of the type of now
        else:
            self.kind = cast(Any, tuple)[bytes, evolved.kind] if self._mapped else evolved.kind

    def read(self, values: Iterable[Any]) -> Iterable[Any]:
        """In the form in which the table takes them."""
        encode = self._encode
        if encode is None:
            return values
        if self._mapped:
            return [(entry_key, msgspec.Raw(encode(value))) for entry_key, value in values]
        return [msgspec.Raw(encode(value)) for value in values]
