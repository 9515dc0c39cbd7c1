"""The text of ``config/defaults.yaml``: every setting with its default and what it is for.

Made from the models and never read: a file that repeats the defaults would freeze them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from processor.settings.shape import MappingShape, SectionShape, Shape, shape_of, written_name
from processor.settings.shown import default_text

_WIDTH: Final = 100
_INDENT: Final = "  "

_HEAD: Final = """\
# Every setting with its default. Made from the models by 'processor settings defaults', compared by a test,
# never read: copy what you change into a file of your own and give it with --config.
#
# Order, later ones win: these defaults, --config files as given, PROCESSOR__SECTION__FIELD in the
# environment, --set section.field=value. Durations: ms, s, m, h, d. Sizes: B, KiB, MiB, GiB, TiB. A bare
# number is refused. A secret is written as env:NAME or file:PATH.
"""


def defaults_yaml(models: Mapping[str, type[BaseModel]]) -> str:
    """Sections in the order of ``models``; below mappings one entry is shown as a comment."""
    lines = [_HEAD]
    for name, model in models.items():
        lines.extend(_comment(_first_sentence(model), ""))
        lines.extend(_named(name, shape_of(model), ""))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _named(name: str, shape: Shape, indent: str) -> Iterator[str]:
    if isinstance(shape, SectionShape) and shape.model is not None and shape.model.model_fields:
        yield f"{indent}{name}:"
        yield from _fields(shape.model, indent + _INDENT)
        return
    yield f"{indent}{name}: {{}}"
    yield from _example(shape, indent + _INDENT)


def _fields(model: type[BaseModel], indent: str) -> Iterator[str]:
    content = _default_content(model)
    for field_name, field in model.model_fields.items():
        name = written_name(field_name, field)
        yield from _comment(field.description or "", indent)
        shape = shape_of(field.annotation)
        default = field.get_default(call_default_factory=True, validated_data={})
        unfolds = isinstance(default, BaseModel) if isinstance(shape, SectionShape) else not default
        if isinstance(shape, SectionShape | MappingShape) and unfolds:
            yield from _named(name, shape, indent)
        elif default is PydanticUndefined:
            yield f"{indent}# {name}: (required)"
        else:
            yield f"{indent}{name}: {default_text(content.get(name))}"


def _example(shape: Shape, indent: str) -> Iterator[str]:
    """What one entry of a mapping of sections may hold, commented out."""
    value = shape.value if isinstance(shape, MappingShape) else getattr(shape, "open_value", None)
    if value is None:
        return
    inner = shape_of(value)
    if isinstance(inner, SectionShape) and inner.model is not None:
        yield f"{indent}# NAME:"
        for line in _fields(inner.model, indent + _INDENT):
            bare = line.removeprefix(indent + _INDENT)
            yield f"{indent}# {_INDENT}{bare}"


def _default_content(model: type[BaseModel]) -> Mapping[str, Any]:
    """Defaults as plain data, also of a model with required fields."""
    blank = model.model_construct()
    content: Mapping[str, Any] = blank.model_dump(mode="json", by_alias=True)
    return content


def _first_sentence(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().split("\n\n")[0]


def _comment(text: str, indent: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), _WIDTH - len(indent)):
        yield f"{indent}# {line}"
