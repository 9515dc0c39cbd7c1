"""Where a value of a setting came from, and the spelling of a setting's path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from processor.errors import SettingsError

SettingPath = tuple[str, ...]
"""From the section down: ``("checkpoint", "interval")``."""


class OriginKind(StrEnum):
    """In rising order of precedence."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Which default, file, variable or option gave a value; ``name`` is never a value."""

    kind: OriginKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else str(self.kind)


DEFAULT: Final = Origin(kind=OriginKind.DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Assignment:
    """One value from one origin. It has no ``repr``: the value may be a secret."""

    path: SettingPath
    value: object
    origin: Origin

    def __repr__(self) -> str:
        return f"<{dotted(self.path)} from {self.origin}>"


_PLAIN_SEGMENT = re.compile(r"[^.\"=\s]+")
_SEGMENT = re.compile(r'(?:"(?P<quoted>[^"]+)"|(?P<plain>[^."=\s]+))(?P<end>\.|=|$)')


def dotted(path: SettingPath) -> str:
    """The path as ``--set`` takes it: ``kafka.main.topic_map."eu.counts"``."""
    return ".".join(name if _PLAIN_SEGMENT.fullmatch(name) else f'"{name}"' for name in path)


def split_assignment(text: str, *, number: int) -> tuple[SettingPath, str]:
    """Path and value of ``section.field=value``; a name with a dot in it is put in double quotes.

    Raises: SettingsError, naming the option by its number only: what follows may be a secret.
    """
    names: list[str] = []
    at = 0
    while match := _SEGMENT.match(text, at):
        names.append(match["quoted"] or match["plain"])
        at = match.end()
        if match["end"] == "=":
            return tuple(names), text[at:]
        if match["end"] == "":
            break
    raise SettingsError(
        f"--set number {number} is not of the form section.field=value.",
        remedy="Write for example --set checkpoint.interval=5s.",
    )
