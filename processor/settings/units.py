"""Durations and sizes with their unit in the text: ``10s``, ``64MiB``. A bare number is refused.

Inside the product a duration is an int of milliseconds and a size an int of bytes; ``duration_text`` and
``size_text`` print them back as a person would write them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

DURATION_UNITS_MS: Final[Mapping[str, int]] = {
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
"""Largest first: the order in which a value is tried when it is printed."""

SIZE_UNITS_BYTES: Final[Mapping[str, int]] = {
    "TiB": 2**40,
    "GiB": 2**30,
    "MiB": 2**20,
    "KiB": 2**10,
    "B": 1,
}

DURATION_MAX_MS: Final = 366 * DURATION_UNITS_MS["d"]
"""Longer than anything the product waits for: a larger value is a slip, not a wish."""

SIZE_MAX_BYTES: Final = 2**50

_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,18})\s*([A-Za-z]+)")
_BARE_NUMBER = re.compile(r"[+-]?[0-9][0-9_.eE+-]*")


def parse_duration_ms(text: object) -> int:
    """Milliseconds of a text such as ``10s``, ``250ms``, ``5m``, ``1h``, ``7d``.

    Raises: ValueError, in words fit for the person who wrote the text.
    """
    return _parsed(text, DURATION_UNITS_MS, largest=DURATION_MAX_MS, noun="duration", example="10s")


def parse_size_bytes(text: object) -> int:
    """Bytes of a text such as ``64MiB``, ``1GiB``, ``512KiB``, ``100B``; units are powers of 1,024.

    Raises: ValueError, in words fit for the person who wrote the text.
    """
    return _parsed(text, SIZE_UNITS_BYTES, largest=SIZE_MAX_BYTES, noun="size", example="64MiB")


def duration_text(ms: int) -> str:
    """The shortest exact way to write a number of milliseconds: ``90s``, ``1h``, ``0ms``."""
    return _text(ms, DURATION_UNITS_MS, smallest="ms")


def size_text(size: int) -> str:
    """The shortest exact way to write a number of bytes: ``64MiB``, ``1000B``."""
    return _text(size, SIZE_UNITS_BYTES, smallest="B")


def at_least_ms(smallest: int) -> AfterValidator:
    """For ``Annotated[Duration, at_least_ms(10)]``: refuses shorter ones, in the unit a person would use."""

    def check(value: int) -> int:
        if value < smallest:
            raise ValueError(f"{duration_text(value)} is too short: at least {duration_text(smallest)}")
        return value

    return AfterValidator(check)


def at_least_bytes(smallest: int) -> AfterValidator:
    """For ``Annotated[Size, at_least_bytes(2**20)]``: refuses smaller ones."""

    def check(value: int) -> int:
        if value < smallest:
            raise ValueError(f"{size_text(value)} is too small: at least {size_text(smallest)}")
        return value

    return AfterValidator(check)


def _parsed(text: object, units: Mapping[str, int], *, largest: int, noun: str, example: str) -> int:
    names = list(reversed(list(units)))
    known = ", ".join(names)
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise ValueError(f"a {noun} is a text such as {example}, not {type(text).__name__}")
    if isinstance(text, int | float) or _BARE_NUMBER.fullmatch(text.strip()):
        written = str(text).strip()
        raise ValueError(f"{written} has no unit: write a whole number and one of {known}, such as {example}")
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{text!r} is not a {noun}: write a whole number and one of {known}, such as {example}"
        )
    number, unit = match.groups()
    factor = units.get(unit)
    if factor is None:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}: write one of {known}, such as {example}")
    value = int(number) * factor
    if value > largest:
        raise ValueError(
            f"{text!r} is more than the largest {noun}, {_text(largest, units, smallest=names[0])}"
        )
    return value


def _text(value: int, units: Mapping[str, int], *, smallest: str) -> str:
    if value != 0:
        for unit, factor in units.items():
            if value % factor == 0:
                return f"{value // factor}{unit}"
    return f"{value}{smallest}"


Duration = Annotated[
    int,
    BeforeValidator(parse_duration_ms, json_schema_input_type=str),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+\s*(ms|s|m|h|d)$", "examples": ["10s", "250ms"]}),
]
"""A field of milliseconds, written with a unit; its default is an int, which pydantic takes as it is."""

Size = Annotated[
    int,
    BeforeValidator(parse_size_bytes, json_schema_input_type=str),
    PlainSerializer(size_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+\s*(B|KiB|MiB|GiB|TiB)$", "examples": ["64MiB"]}),
]
"""A field of bytes, written with a unit of 1,024s; its default is an int, which pydantic takes as it is."""
