"""The names a set of settings models knows, as a tree that can be walked without having any value."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, RootModel, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from processor.settings.origin import SettingPath


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionShape:
    """A fixed set of names; ``open_value`` is the type of further ones where the model allows any."""

    model: type[BaseModel] | None
    fields: Mapping[str, Any]
    """Annotations by the name under which the setting is written."""
    open_value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingShape:
    """Names chosen by the person who writes the settings, such as those of clusters and topics."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueShape:
    secret: bool
    many: bool
    """A list, set or tuple: written as ``[a, b]`` where only text can be given."""


Shape = SectionShape | MappingShape | ValueShape


def root_shape(models: Mapping[str, type[BaseModel]]) -> SectionShape:
    """All sections side by side."""
    return SectionShape(model=None, fields=models)


def shape_of(annotation: Any) -> Shape:
    """The shape of a field's type; ``X | None`` counts as X."""
    bare = _bare(annotation)
    origin = get_origin(bare) or bare
    if isinstance(origin, type):
        if issubclass(origin, RootModel):
            return shape_of(origin.model_fields["root"].annotation)
        if issubclass(origin, BaseModel):
            return _section(origin)
        if issubclass(origin, Mapping):
            arguments = get_args(bare)
            return MappingShape(value=arguments[1] if len(arguments) == 2 else Any)
        if issubclass(origin, list | tuple | set | frozenset):
            return ValueShape(secret=any(map(_is_secret, get_args(bare))), many=True)
    return ValueShape(secret=_is_secret(bare), many=False)


def child(shape: Shape, name: str) -> Shape | None:
    """What a name below ``shape`` is, None when there is no such name."""
    if isinstance(shape, MappingShape):
        return shape_of(shape.value)
    if isinstance(shape, SectionShape):
        if name in shape.fields:
            return shape_of(shape.fields[name])
        if shape.open_value is not None:
            return shape_of(shape.open_value)
    return None


def shape_at(root: SectionShape, path: SettingPath) -> Shape | None:
    """The shape at a path, None when some name on the way is unknown."""
    shape: Shape | None = root
    for name in path:
        if shape is None:
            return None
        shape = child(shape, name)
    return shape


def written_name(name: str, field: FieldInfo) -> str:
    """The name of a field as it is written in settings: its alias, where it has one."""
    return field.alias or name


def suggestion(root: SectionShape, path: SettingPath) -> SettingPath:
    """The likeliest path meant by one whose last name is unknown; empty when nothing comes near."""
    parent = shape_at(root, path[:-1])
    if isinstance(parent, SectionShape):
        near = difflib.get_close_matches(path[-1], parent.fields, n=1)
        if near:
            return (*path[:-1], near[0])
    for known in _paths(root, ()):
        if known[-1] == path[-1]:
            return known
    return ()


def _paths(shape: Shape, at: SettingPath) -> Iterator[SettingPath]:
    """Every fixed path; what is below a mapping has no fixed name."""
    if isinstance(shape, SectionShape):
        for name, annotation in shape.fields.items():
            yield (*at, name)
            yield from _paths(shape_of(annotation), (*at, name))


def _section(model: type[BaseModel]) -> SectionShape:
    fields = {written_name(name, field): field.annotation for name, field in model.model_fields.items()}
    open_value = None
    if model.model_config.get("extra") == "allow":
        arguments = get_args(_bare(get_type_hints(model).get("__pydantic_extra__", Any)))
        open_value = arguments[1] if len(arguments) == 2 else Any
    return SectionShape(model=model, fields=fields, open_value=open_value)


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        present = [part for part in get_args(annotation) if part is not NoneType]
        if len(present) == 1:
            return _bare(present[0])
    return annotation


def _is_secret(annotation: Any) -> bool:
    bare = _bare(annotation)
    if get_origin(bare) in (Union, UnionType):
        return any(map(_is_secret, get_args(bare)))
    return isinstance(bare, type) and issubclass(bare, SecretStr | SecretBytes)
