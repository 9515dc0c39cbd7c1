"""State that expires, read without the times that stand beside what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, get_args, get_origin

from processor.state.type_schema import LIST, StateSchema

Untimed = Callable[[Any], Any]


def without_times(schema: StateSchema, kind: Any) -> tuple[Any, Untimed | None]:
    """The type to read a value as that is wanted as ``kind``, and how to take what is wanted out of it (None: it is
    all of it). Of a map, both are of its entries."""
    if not schema.expires_by:
        return kind, None
    if schema.kind == LIST:
        item = get_args(kind)[0] if get_origin(kind) is list else Any
        pairs = cast(Any, list)[cast(Any, tuple)[int, item]]
        return pairs, lambda found: [value for _, value in found]
    return cast(Any, tuple)[int, kind], lambda pair: pair[1]
