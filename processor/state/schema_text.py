"""The schema of a state as a line of text, the same in every process and version, and read back from it.

The line is what manifests and errors show: ``ListState[Click(user: str, at_ms: int, note: str =)]``. A field that
need not be there ends in ``=``, with its default in JSON if that is known, and ``-`` if a writer may leave it out.
``array`` before a record: it is encoded as an array of its fields; ``strict``: fields that a reader does not know are
refused; ``^Name``: the record around this place. Limits are in braces: ``int{ge=0}``.
"""

from __future__ import annotations

import re
from typing import Final, cast

import msgspec

from processor.errors import DamagedFile
from processor.state.type_schema import (
    ATOMS,
    EXPIRES_BY,
    KINDS,
    SEQUENCES,
    VALUE,
    WITH_KEYS,
    Atom,
    Constant,
    Constants,
    Field,
    FixedTuple,
    Inside,
    Limits,
    Mapped,
    OneOf,
    Record,
    Sequence,
    StateSchema,
    TypeSchema,
)

SCHEMA_CHARACTERS_MAX = 1_000_000
SCHEMA_DEPTH_MAX = 64
"""Of types in each other: a manifest from elsewhere may not exhaust the reader."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_STRING = r'"(?:[^"\\\x00-\x1f]|\\.)*"'
_TOKEN = re.compile(
    rf"\s*({_STRING}|-?[0-9][0-9.eE+\-]*|[A-Za-z_][A-Za-z0-9_]*|\.\.\.|[\[\](){{}}|:,=^\-])", re.ASCII
)
_CONSTANTS: Final[dict[str, Constant]] = {"None": None, "True": True, "False": False}


def type_text(schema: TypeSchema) -> str:
    """The line of a type."""
    match schema:
        case Atom(name=name, limits=limits):
            return name + _limits(limits)
        case Constants(values=values, name=name):
            shown = ", ".join(map(_constant, values))
            return f"enum {_named(name)}[{shown}]" if name else f"Literal[{shown}]"
        case Sequence(form="tuple", item=item, limits=limits):
            return f"tuple[{type_text(item)}, ...]{_limits(limits)}"
        case Sequence(form=form, item=item, limits=limits):
            return f"{form}[{type_text(item)}]{_limits(limits)}"
        case FixedTuple(items=items):
            return f"tuple[{', '.join(map(type_text, items))}]"
        case Mapped(key=key, value=value, limits=limits):
            return f"dict[{type_text(key)}, {type_text(value)}]{_limits(limits)}"
        case Record(name=name, fields=fields, by_place=by_place, strict=strict):
            how = f"{'strict ' if strict else ''}{'array ' if by_place else ''}"
            return f"{how}{_named(name)}({', '.join(map(_field, fields))})"
        case Inside(name=name):
            return f"^{_named(name)}"
        case OneOf(types=types):
            return " | ".join(map(type_text, types))


def state_text(schema: StateSchema) -> str:
    """The line of a state."""
    text = type_text(schema.values)
    if schema.kind != VALUE:
        keys = "" if schema.keys is None else f"{type_text(schema.keys)}, "
        text = f"{schema.kind}[{keys}{text}]"
    return f"{text}, expires by {schema.expires_by}" if schema.expires_by else text


def read_state_schema(text: str) -> StateSchema:
    """Inverse of ``state_text``. Raises DamagedFile for what no release has written."""
    reader = _Reader(text)
    kind = next((kind for kind in KINDS if text.startswith(kind + "[")), VALUE)
    keys: TypeSchema | None = None
    if kind != VALUE:
        reader.take(kind)
        reader.take("[")
        if kind in WITH_KEYS:
            keys = reader.type()
            reader.take(",")
    values = reader.type()
    if kind != VALUE:
        reader.take("]")
    expires_by = reader.expires_by()
    reader.end()
    return StateSchema(kind, values, keys, expires_by)


def _field(field: Field) -> str:
    default = "" if field.required else " ="
    if field.default:
        default += f" {_string(field.default)}"
    if field.left_out:
        default += " -"
    return f"{_named(field.name)}: {type_text(field.type)}{default}"


def _limits(limits: Limits) -> str:
    return f"{{{', '.join(f'{name}={_constant(value)}' for name, value in limits.of)}}}" if limits.of else ""


def _named(name: str) -> str:
    return name if _NAME.fullmatch(name) else _string(name)


def _constant(value: Constant) -> str:
    return _string(value) if isinstance(value, str) else repr(value)


def _string(text: str) -> str:
    return msgspec.json.encode(text).decode()


class _Reader:
    """Takes a line apart, token by token."""

    def __init__(self, text: str) -> None:
        if len(text) > SCHEMA_CHARACTERS_MAX:
            raise _unknown(text, "it is too long")
        self._text = text
        self._at = 0
        self._depth = 0
        self._ahead = self._next()

    def type(self) -> TypeSchema:
        self._depth += 1
        if self._depth > SCHEMA_DEPTH_MAX:
            raise _unknown(self._text, "types are too deep in each other")
        found = [self._one()]
        while self._ahead == "|":
            self.take("|")
            found.append(self._one())
        self._depth -= 1
        return found[0] if len(found) == 1 else OneOf(tuple(found))

    def take(self, *wanted: str) -> str:
        """The next token, which has to be one of these, if any are given."""
        token = self._ahead
        if not token or (wanted and token not in wanted):
            raise _unknown(
                self._text, f"'{token or 'its end'}' is where {' or '.join(wanted) or 'more'} should be"
            )
        self._ahead = self._next()
        return token

    def expires_by(self) -> str:
        if self._ahead != ",":
            return ""
        for word in (",", "expires", "by"):
            self.take(word)
        domain = f"{self.take()} {self.take('time')}"
        if domain not in EXPIRES_BY:
            raise _unknown(self._text, f"'{domain}' is no time")
        return domain

    def end(self) -> None:
        if self._ahead:
            raise _unknown(self._text, f"'{self._ahead}' follows its end")

    def _next(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            if self._text[self._at :].strip():
                raise _unknown(self._text, f"{self._text[self._at : self._at + 20]!r} is nothing known")
            return ""
        self._at = found.end()
        return found[1]

    def _one(self) -> TypeSchema:
        token = self.take()
        if token == "^":
            return Inside(self._name())
        if token in ("strict", "array") and self._ahead not in ("(", ""):
            name = self.take()
            by_place = token == "array"
            if name == "array" and not by_place and self._ahead != "(":
                by_place, name = True, self.take()
            return self._record(self._as_name(name), by_place=by_place, strict=token == "strict")
        if token == "enum" and self._ahead != "(":
            name = self._name()
            return Constants(self._constants(), name)
        if self._ahead == "(":
            return self._record(self._as_name(token))
        if token == "Literal":
            return Constants(self._constants())
        if token in (*SEQUENCES, "tuple", "dict"):
            return self._container(token)
        if token in ATOMS:
            return Atom(token, self._limits())
        raise _unknown(self._text, f"'{token}' is no type")

    def _container(self, form: str) -> TypeSchema:
        self.take("[")
        if form == "tuple" and self._ahead == "]":
            self.take("]")
            return FixedTuple(())
        first = self.type()
        if form == "dict":
            self.take(",")
            value = self.type()
            self.take("]")
            return Mapped(first, value, self._limits())
        if form != "tuple":
            self.take("]")
            return Sequence(form, first, self._limits())
        items = [first]
        while self.take(",", "]") == ",":
            if self._ahead == "...":
                self.take("...")
                self.take("]")
                return Sequence("tuple", first, self._limits())
            items.append(self.type())
        return FixedTuple(tuple(items))

    def _record(self, name: str, *, by_place: bool = False, strict: bool = False) -> Record:
        self.take("(")
        fields: list[Field] = []
        while self._ahead != ")":
            if fields:
                self.take(",")
            field = self._name()
            self.take(":")
            kind = self.type()
            required, default, left_out = True, "", False
            if self._ahead == "=":
                self.take("=")
                required = False
                if self._ahead.startswith('"'):
                    default = self._string()
                if self._ahead == "-":
                    self.take("-")
                    left_out = True
            fields.append(Field(field, kind, required, default, left_out))
        self.take(")")
        return Record(name, tuple(fields), by_place, strict)

    def _constants(self) -> tuple[str | int | None, ...]:
        self.take("[")
        values: list[str | int | None] = []
        while self._ahead != "]":
            if values:
                self.take(",")
            values.append(cast(str | int | None, self._value()))
        self.take("]")
        return tuple(values)

    def _limits(self) -> Limits:
        found: list[tuple[str, Constant]] = []
        if self._ahead == "{":
            self.take("{")
            while self._ahead != "}":
                if found:
                    self.take(",")
                name = self._name()
                self.take("=")
                found.append((name, self._value()))
            self.take("}")
        return Limits(tuple(found))

    def _value(self) -> Constant:
        token = self.take()
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        try:
            return cast(Constant, msgspec.json.decode(token, type=str | int | float))
        except msgspec.MsgspecError as error:
            raise _unknown(self._text, f"'{token}' is no value") from error

    def _name(self) -> str:
        return self._as_name(self.take())

    def _as_name(self, token: str) -> str:
        if token.startswith('"'):
            return self._decoded(token)
        if not _NAME.fullmatch(token):
            raise _unknown(self._text, f"'{token}' is no name")
        return token

    def _string(self) -> str:
        return self._decoded(self.take())

    def _decoded(self, token: str) -> str:
        try:
            return msgspec.json.decode(token, type=str)
        except msgspec.MsgspecError as error:
            raise _unknown(self._text, f"{token} is no text") from error


def _unknown(text: str, why: str) -> DamagedFile:
    return DamagedFile(
        f"the schema of a state '{text:.200}' cannot be read: {why}.",
        remedy="Use the release that wrote it, or a newer one.",
    )
