"""Whether msgspec can make values of a type: asked when the format is named, not at the first record."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from processor.errors import JobError


def check_decodable(kind: Any, reader: str) -> None:
    """Raises JobError for a type of which no record could ever be read. ``reader`` names the format."""
    name = getattr(kind, "__qualname__", str(kind))
    try:
        msgspec.json.Decoder(kind)
        unknown = _unknown(inspect.type_info(kind), frozenset())
    except (TypeError, NameError) as error:
        raise _refused(reader, name, str(error)) from error
    if unknown is not None:
        raise _refused(reader, name, f"nobody says how a {unknown.__qualname__} is read")


def _refused(reader: str, name: str, why: str) -> JobError:
    return JobError(
        f"{reader} cannot read values of type {name}: {why}.",
        remedy="Use a dataclass, a msgspec.Struct, a TypedDict, or types made of str, int, float, bool, list, "
        "dict and the like.",
    )


def _unknown(info: Any, seen: frozenset[Any]) -> type | None:
    """A class inside the type that msgspec knows nothing of."""
    if isinstance(info, inspect.CustomType):
        return info.cls
    cls = getattr(info, "cls", None)
    if cls is not None and cls in seen:
        return None  # a record that contains itself
    within = seen if cls is None else seen | {cls}
    for part in msgspec.structs.astuple(info):
        for entry in part if isinstance(part, tuple) else (part,):
            inner = entry.type if isinstance(entry, inspect.Field) else entry
            if isinstance(inner, inspect.Type):
                found = _unknown(inner, within)
                if found is not None:
                    return found
    return None
