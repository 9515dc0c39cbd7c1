"""Settings from all their origins: defaults, then files as given, then the environment, then ``--set``.

Later ones win, value by value; mappings are laid over each other, name by name. An unknown name is refused
wherever it stands, with the origin named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from processor.errors import EngineBug, SettingsError
from processor.settings.model import (
    CORE_SECTIONS,
    CheckpointSettings,
    LogSettings,
    RuntimeSettings,
    Settings,
    StateSettings,
)
from processor.settings.origin import DEFAULT, Assignment, Origin, OriginKind, SettingPath, dotted
from processor.settings.secret import MASK, resolve_secret
from processor.settings.shape import (
    MappingShape,
    SectionShape,
    Shape,
    ValueShape,
    child,
    root_shape,
    shape_at,
    suggestion,
)
from processor.settings.sources import ENVIRONMENT_PREFIX, from_command_line, from_environment, from_file
from processor.settings.stores import StoreSettings

S = TypeVar("S", bound=BaseModel)

PROBLEMS_MAX: Final = 10
"""Told in one error; one slip of indentation can make hundreds."""

VALUE_CHARS_MAX: Final = 100

_USER_INFO: Final = re.compile(r"//.*@", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Valid settings, and where each value that is not a default came from."""

    settings: Settings
    origins: Mapping[SettingPath, Origin]
    models: Mapping[str, type[BaseModel]]
    """All sections by name, the engine's first."""

    def origin_of(self, path: SettingPath) -> Origin:
        """Origin of the value at ``path``, or of the nearest whole it was given with."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return DEFAULT

    def section(self, name: str) -> BaseModel:
        if name in CORE_SECTIONS:
            core: BaseModel = getattr(self.settings, name)
            return core
        return self.settings.plugins[name]


def load_settings(
    *,
    plugins: Mapping[str, type[BaseModel]],
    files: Sequence[Path] = (),
    environ: Mapping[str, str] = MappingProxyType({}),
    assignments: Sequence[str] = (),
) -> LoadedSettings:
    """Settings of the engine and of ``plugins`` (models by section name).

    Raises: SettingsError for every problem found, naming setting, origin, value (unless it is or may be a
    secret) and remedy.
    """
    models = _all_sections(plugins)
    root = root_shape(models)
    given = chain(
        chain.from_iterable(from_file(path, root) for path in files),
        from_environment(environ, root),
        from_command_line(assignments, root),
    )
    merged = _merged(given, root)
    secrets = _resolved(merged, root, environ)
    valid = _validated(_nested(merged.values(), secrets), models, merged, root, tuple(secrets.values()))
    settings = Settings(
        checkpoint=_of_type(valid["checkpoint"], CheckpointSettings),
        stores=_of_type(valid["stores"], StoreSettings),
        state=_of_type(valid["state"], StateSettings),
        runtime=_of_type(valid["runtime"], RuntimeSettings),
        log=_of_type(valid["log"], LogSettings),
        plugins=MappingProxyType({name: valid[name] for name in plugins}),
    )
    origins = MappingProxyType({path: assignment.origin for path, assignment in merged.items()})
    return LoadedSettings(settings=settings, origins=origins, models=models)


def _all_sections(plugins: Mapping[str, type[BaseModel]]) -> Mapping[str, type[BaseModel]]:
    for name in plugins:
        if name in CORE_SECTIONS:
            raise SettingsError(
                f"a plugin is named '{name}', like a section of the engine.",
                remedy="Uninstall the plugin, or have its author rename it.",
            )
    return MappingProxyType({**CORE_SECTIONS, **plugins})


def _merged(given: Iterable[Assignment], root: SectionShape) -> dict[SettingPath, Assignment]:
    """The last assignment of every path; all names checked."""
    merged: dict[SettingPath, Assignment] = {}
    problems: list[str] = []
    for assignment in given:
        if problem := _unknown_name(assignment, root):
            problems.append(problem)
            continue
        merged[assignment.path] = assignment
    if problems:
        raise _refusal(problems, "Correct the name; 'processor settings show' lists all there are.")
    return merged


def _unknown_name(assignment: Assignment, root: SectionShape) -> str:
    """What is wrong with the names on the path; "" when all are known. Never quotes the value."""
    shape: Shape = root
    for depth, name in enumerate(assignment.path):
        below = child(shape, name)
        if below is not None:
            shape = below
            continue
        wrong = assignment.path[: depth + 1]
        noun = "section" if depth == 0 else "setting"
        near = suggestion(root, wrong)
        meant = (
            f" (did you mean {_as_written(near, assignment.path[depth + 1 :], assignment)}?)" if near else ""
        )
        return f"{_place(assignment)}: there is no {noun} '{dotted(wrong)}'{meant}"
    if isinstance(shape, SectionShape | MappingShape):
        return (
            f"{_place(assignment)}: '{dotted(assignment.path)}' has settings below it and no value of its own"
        )
    return ""


def _place(assignment: Assignment) -> str:
    match assignment.origin.kind:
        case OriginKind.ENVIRONMENT:
            return f"environment variable {assignment.origin.name}"
        case OriginKind.COMMAND_LINE:
            return f"--set {dotted(assignment.path)}"
        case OriginKind.FILE | OriginKind.DEFAULT:
            return str(assignment.origin)


def _as_written(near: SettingPath, rest: SettingPath, assignment: Assignment) -> str:
    """A better path in the spelling of the origin, with what followed the unknown name."""
    if assignment.origin.kind is OriginKind.ENVIRONMENT:
        return ENVIRONMENT_PREFIX + "__".join((*near, *rest)).upper()
    return f"'{dotted((*near, *rest))}'"


def _resolved(
    merged: Mapping[SettingPath, Assignment], root: SectionShape, environ: Mapping[str, str]
) -> dict[SettingPath, str]:
    """Every secret given, by path."""
    secrets: dict[SettingPath, str] = {}
    for path, assignment in merged.items():
        shape = shape_at(root, path)
        if isinstance(shape, ValueShape) and shape.secret and not shape.many and assignment.value is not None:
            secrets[path] = resolve_secret(assignment, environ)
    return secrets


def _nested(
    assignments: Iterable[Assignment], secrets: Mapping[SettingPath, str]
) -> dict[str, dict[str, Any]]:
    nested: dict[str, Any] = {}
    for assignment in assignments:
        inner = nested
        for name in assignment.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[assignment.path[-1]] = secrets.get(assignment.path, assignment.value)
    return nested


def _validated(
    nested: Mapping[str, Mapping[str, Any]],
    models: Mapping[str, type[BaseModel]],
    merged: Mapping[SettingPath, Assignment],
    root: SectionShape,
    secrets: tuple[str, ...],
) -> dict[str, BaseModel]:
    valid: dict[str, BaseModel] = {}
    problems: list[str] = []
    for name, model in models.items():
        try:
            valid[name] = model.model_validate(nested.get(name, {}))
        except ValidationError as refused:
            for error in refused.errors(include_url=False, include_context=True, include_input=False):
                path = _path_of(error["loc"], name, root)
                problems.append(_problem(path, error["type"], error["msg"], merged, root))
    if problems:
        # Not chained: pydantic's error holds the input, and with it what must stay secret.
        raise _refusal([_scrubbed(text, secrets) for text in problems], "Correct or set the value.") from None
    return valid


def _path_of(loc: tuple[int | str, ...], section: str, root: SectionShape) -> SettingPath:
    """The setting an error speaks of: pydantic adds names of validators and union members to its place."""
    path: SettingPath = (section,)
    for part in loc:
        longer = (*path, str(part))
        if shape_at(root, longer) is None:
            break
        path = longer
    return path


def _problem(
    path: SettingPath,
    kind: str,
    message: str,
    merged: Mapping[SettingPath, Assignment],
    root: SectionShape,
) -> str:
    name = dotted(path)
    if kind == "missing":
        return f"{name} has no default and is not set"
    said = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    assignment = merged.get(path)
    if assignment is None:
        return f"{name}: {said}"
    return f"{name}{_value_text(assignment, shape_at(root, path))} ({assignment.origin}): {said}"


def _value_text(assignment: Assignment, shape: Shape | None) -> str:
    if not isinstance(shape, ValueShape) or shape.secret:
        return ""
    # Where a location is expected, some write a URI with user and password.
    text = _USER_INFO.sub(f"//{MASK}@", str(assignment.value))
    return f" = {text}" if len(text) <= VALUE_CHARS_MAX else f" = {text[:VALUE_CHARS_MAX]}…"


def _scrubbed(text: str, secrets: tuple[str, ...]) -> str:
    """A last net under connectors' own validators, whose messages are not ours."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _refusal(problems: Sequence[str], remedy: str) -> SettingsError:
    told = [problem.rstrip(".") for problem in problems[:PROBLEMS_MAX]]
    if len(problems) > PROBLEMS_MAX:
        told.append(f"and {len(problems) - PROBLEMS_MAX} more")
    return SettingsError("; ".join(told) + ".", remedy=remedy)


def _of_type(section: BaseModel, kind: type[S]) -> S:
    if not isinstance(section, kind):
        raise EngineBug(f"a section validated as {type(section).__name__} instead of {kind.__name__}")
    return section
