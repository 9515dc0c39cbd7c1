"""Reads values from files, the environment and the command line; says nothing yet about their sense.

Whatever has names below it is taken apart here, so that an assignment is always of a single value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from processor.errors import SettingsError
from processor.settings.origin import Assignment, Origin, OriginKind, SettingPath, split_assignment
from processor.settings.shape import MappingShape, SectionShape, Shape, ValueShape, child, shape_at

ENVIRONMENT_PREFIX: Final = "PROCESSOR__"
FILE_BYTES_MAX: Final = 2**20
DEPTH_MAX: Final = 16
"""Of nested names; more than any model has."""


def from_file(path: Path, root: SectionShape) -> Iterator[Assignment]:
    """Every value of a YAML file, in its order. Raises SettingsError, never quoting the file's content."""
    origin = Origin(kind=OriginKind.FILE, name=str(path))
    content = _parsed(_read(path), str(origin))
    if content is None:
        return
    if not isinstance(content, dict):
        raise SettingsError(
            f"{origin} does not consist of sections.",
            remedy="Write sections such as 'checkpoint:' at the left.",
        )
    yield from _leaves(content, root, (), origin)


def from_environment(environ: Mapping[str, str], root: SectionShape) -> Iterator[Assignment]:
    """Every variable that begins with PROCESSOR__, in the order of their names."""
    taken: dict[SettingPath, str] = {}
    for variable in sorted(environ):
        if not variable.upper().startswith(ENVIRONMENT_PREFIX):
            continue
        names = variable[len(ENVIRONMENT_PREFIX) :].split("__")
        if not all(names):
            raise SettingsError(
                f"environment variable {variable} has an empty part in its name.",
                remedy=f"Write {ENVIRONMENT_PREFIX}SECTION__FIELD, with two underscores between the parts.",
            )
        # Fields are lower-case; names that people choose (clusters, topics) may not be: those keep their
        # spelling unless the whole variable shouts.
        path = tuple(name.lower() if name == name.upper() else name for name in names)
        path = _fields_lowered(path, root)
        if path in taken:
            raise SettingsError(
                f"environment variables {taken[path]} and {variable} set the same setting.",
                remedy="Unset one of them.",
            )
        taken[path] = variable
        origin = Origin(kind=OriginKind.ENVIRONMENT, name=variable)
        yield from _from_text(environ[variable], root, path, origin)


def from_command_line(assignments: Sequence[str], root: SectionShape) -> Iterator[Assignment]:
    """Every ``--set section.field=value``, in the order given."""
    for number, text in enumerate(assignments, start=1):
        names, value = split_assignment(text, number=number)
        path = _dots_joined(names, root)
        yield from _from_text(value, root, path, Origin(kind=OriginKind.COMMAND_LINE, name="--set"))


def _fields_lowered(path: SettingPath, root: SectionShape) -> SettingPath:
    """Names of fields in lower case whatever their spelling; names below a mapping as they are."""
    lowered: list[str] = []
    shape: Shape | None = root
    for name in path:
        is_field = isinstance(shape, SectionShape) and (name.lower() in shape.fields or not shape.open_value)
        known = name.lower() if is_field else name
        lowered.append(known)
        shape = None if shape is None else child(shape, known)
    return tuple(lowered)


def _dots_joined(path: SettingPath, root: SectionShape) -> SettingPath:
    """Below a mapping to plain values there are no further parts: dots belong to a topic's name there."""
    shape: Shape | None = root
    for depth, name in enumerate(path):
        if isinstance(shape, MappingShape) and isinstance(child(shape, name), ValueShape):
            return (*path[:depth], ".".join(path[depth:]))
        shape = None if shape is None else child(shape, name)
    return path


def _from_text(text: str, root: SectionShape, path: SettingPath, origin: Origin) -> Iterator[Assignment]:
    """The text as it is, unless the setting has parts: then it is YAML (``{a: b}``, ``[a, b]``)."""
    shape = shape_at(root, path)
    if shape is None or (isinstance(shape, ValueShape) and not shape.many):
        yield Assignment(path=path, value=text, origin=origin)
        return
    content = _parsed(text, str(origin))
    yield from _leaves(content, shape, path, origin)


def _leaves(content: Any, shape: Shape | None, path: SettingPath, origin: Origin) -> Iterator[Assignment]:
    if len(path) > DEPTH_MAX:
        raise SettingsError(
            f"{origin} nests names more than {DEPTH_MAX} deep.", remedy="Check its indentation."
        )
    has_names = isinstance(shape, SectionShape | MappingShape)
    if content is None and has_names:
        return  # "checkpoint:" with nothing below it
    if not isinstance(content, dict) or isinstance(shape, ValueShape):
        yield Assignment(path=path, value=content, origin=origin)
        return
    for name, value in content.items():
        text = str(name)
        below = None if shape is None else child(shape, text)
        yield from _leaves(value, below, (*path, text), origin)


def _read(path: Path) -> str:
    try:
        size = os.stat(path).st_size
        if size > FILE_BYTES_MAX:
            raise SettingsError(
                f"file {path} has {size} bytes, more than settings may have ({FILE_BYTES_MAX}).",
                remedy="Give a file of settings with --config.",
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as broken:
        raise SettingsError(f"file {path} is not UTF-8 text.", remedy="Save it as UTF-8.") from broken
    except OSError as failed:
        raise SettingsError(
            f"file {path} cannot be read: {failed.strerror}.", remedy="Check the path given with --config."
        ) from failed


class _Loader(yaml.SafeLoader):
    """Plain data only, and no name twice: of two values the first would silently be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise _TwiceError(str(key.value), key.start_mark.line + 1)
            if isinstance(key.value, str):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _TwiceError(yaml.YAMLError):
    def __init__(self, name: str, line: int) -> None:
        super().__init__(name)
        self.name = name
        self.line = line


def _parsed(text: str, origin: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    except _TwiceError as twice:
        raise SettingsError(
            f"{origin}, line {twice.line}: '{twice.name}' is there twice.", remedy="Keep one of them."
        ) from None
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        # The parser quotes what it stumbled over, and shows the line: either may be a secret.
        problem = re.sub(r"['\"].*['\"]", "…", broken.problem or "")
        raise SettingsError(f"{origin}{place} is not YAML: {problem}.", remedy="Correct that line.") from None
    except yaml.YAMLError:
        raise SettingsError(f"{origin} is not YAML.", remedy="Check it for stray characters.") from None
    finally:
        loader.dispose()
