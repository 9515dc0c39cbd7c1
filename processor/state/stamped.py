"""What is kept of state that expires: the time of the last touch, and the value. A list has a time for each item.

A value that cannot be changed in place is kept as the pair of both, others as the bytes of that pair in msgpack, of
which the time can be read, and the value taken, without decoding it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

import msgspec

from processor.contracts.state_store import TableSpec

_PAIR: Final = b"\x92"
"""In msgpack an array of two, which begins with its time."""
_WIDTHS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
"""Of ints by their first byte; those below 0x80 and from 0xE0 on are ints themselves."""
_SIGNED_FROM: Final = 0xD0

_encode = msgspec.msgpack.encode
_decode_items = msgspec.msgpack.Decoder(list[tuple[int, msgspec.Raw]]).decode


def stamped(spec: TableSpec) -> TableSpec:
    """The table of values, or of entries of maps, that expire."""
    return replace(spec, kind=cast(Any, tuple)[int, spec.kind], left_of=left_of_value)


def stamped_items(name: str, item: Any) -> TableSpec:
    """The table of lists whose items expire."""
    pair = cast(Any, tuple)[int, item]
    return TableSpec(name=name, kind=cast(Any, list)[pair], left_of=left_of_items)


def joined(touched_ms: int, value: bytes) -> bytes:
    """The bytes of a pair."""
    return b"".join((_PAIR, _encode(touched_ms), value))


def apart(pair: bytes) -> tuple[int, int]:
    """The time in the bytes of a pair, and where its value begins."""
    first = pair[1]
    if first < 0x80:
        return first, 2
    if first not in _WIDTHS:
        return first - 0x100, 2
    value_at = 2 + _WIDTHS[first]
    return int.from_bytes(pair[2:value_at], "big", signed=first >= _SIGNED_FROM), value_at


def left_of_value(kept: Any, over_ms: int) -> Any:
    """See ``TableSpec.left_of``: all or nothing."""
    touched_ms = apart(kept)[0] if isinstance(kept, bytes) else kept[0]
    return kept if touched_ms > over_ms else None


def left_of_items(kept: Any, over_ms: int) -> Any:
    """See ``TableSpec.left_of``: a list without items is none."""
    items = _decode_items(kept)
    left = [item for item in items if item[0] > over_ms]
    if len(left) == len(items):
        return kept
    return _encode(left) if left else None
