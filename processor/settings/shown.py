"""Settings as text: one row a value, secrets masked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from processor.settings.loading import LoadedSettings
from processor.settings.origin import Origin, SettingPath, dotted
from processor.settings.secret import MASK
from processor.settings.shape import MappingShape, SectionShape, Shape, ValueShape, child, shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    """One value, as ``--set`` would take it; ``null`` where there is none."""

    path: str
    value: str
    origin: Origin


def shown_settings(loaded: LoadedSettings) -> Iterator[ShownSetting]:
    """Every value of every section, in the order of the models."""
    for name, model in loaded.models.items():
        content = loaded.section(name).model_dump(mode="json", by_alias=True)
        for path, value in _rows(content, shape_of(model), (name,)):
            yield ShownSetting(path=dotted(path), value=value, origin=loaded.origin_of(path))


def default_text(value: object) -> str:
    """A value of plain data as YAML takes it on one line."""
    if isinstance(value, str) and _is_plain(value):
        return value
    # JSON is YAML, but for characters that YAML wants escaped, and no terminal should be sent.
    return "".join(
        char if char.isprintable() else f"\\U{ord(char):08x}"
        for char in json.dumps(value, ensure_ascii=False)
    )


def _rows(content: Any, shape: Shape, path: SettingPath) -> Iterator[tuple[SettingPath, str]]:
    has_names = isinstance(shape, SectionShape | MappingShape)
    if has_names and isinstance(content, dict) and content:
        for name, value in content.items():
            below = child(shape, str(name)) or ValueShape(secret=False, many=False)
            yield from _rows(value, below, (*path, str(name)))
    elif isinstance(shape, ValueShape) and shape.secret and content is not None:
        yield path, MASK
    else:
        yield path, default_text(content)


_YAML_WORDS = frozenset({"", "null", "true", "false", "yes", "no", "on", "off", "~", "y", "n"})


def _is_plain(text: str) -> bool:
    """Whether YAML reads the bare text as that text. Stricter than YAML, which costs a pair of quotes."""
    return (
        text.lower() not in _YAML_WORDS
        and text.isascii()
        and text[0].isalnum()
        and all(char.isalnum() or char in "_-./" for char in text)
        and not _is_number(text)
        # 1:30 and 2030-01-02 are numbers and dates to YAML.
        and not all(char.isdigit() or char in "-_." for char in text)
    )


def _is_number(text: str) -> bool:
    try:
        float(text.replace("_", ""))
    except ValueError:
        return text[:2].lower() in ("0x", "0o", "0b")
    return True
