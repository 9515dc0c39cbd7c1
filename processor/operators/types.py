"""Types of values, as far as they can be known before anything runs.

None stands for "not known" everywhere here. What is not known is never refused: the checkers of types see
more than this module, and ``KeyBy`` looks at values whose type nobody named.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

_UNION_ORIGINS = (Union, types.UnionType)


def return_type(function: Callable[..., Any]) -> Any:
    """The type a function says it returns; a class returns itself."""
    if isinstance(function, partial):
        return return_type(function.func)
    if inspect.isclass(function):
        return function
    return _known(_hints(function).get("return"))


def parameter_type(function: Callable[..., Any], position: int = 0) -> Any:
    """The type of a positional parameter as the function declares it; bound arguments are not counted."""
    if isinstance(function, partial):
        if function.keywords:
            return None
        return parameter_type(function.func, position + len(function.args))
    if inspect.isclass(function):
        return None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if position >= len(parameters) or parameters[position].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        return None
    return _known(_hints(function).get(parameters[position].name))


def item_type(collection: Any) -> Any:
    """Of what a function returns for many values: the type of one."""
    if collection is str:
        return str
    origin, args = get_origin(collection), get_args(collection)
    if not args or not inspect.isclass(origin) or not issubclass(origin, Iterable):
        return None
    if origin is tuple:
        return _known(args[0]) if len(args) == 2 and args[1] is Ellipsis else None
    return _known(args[0])


def function_types(function: type, base: type) -> tuple[Any, ...]:
    """What a class derived from ``base[K, V, ...]`` gives for the parameters of ``base``, in their order: of a
    KeyedProcess key, input and output, of a KeyedCoProcess key, both inputs and output."""
    found = _arguments(function, base, {})
    if found is None:
        return (None,) * len(getattr(base, "__parameters__", ()))
    return tuple(map(_known, found))


def _arguments(cls: type, wanted: type, bound: dict[Any, Any]) -> tuple[Any, ...] | None:
    """Arguments with which ``wanted`` stands among the bases of ``cls``, through generic bases between."""
    for base in getattr(cls, "__orig_bases__", ()):
        origin = get_origin(base)
        args = tuple(bound.get(arg, arg) if isinstance(arg, TypeVar) else arg for arg in get_args(base))
        if origin is wanted:
            return args
        if inspect.isclass(origin) and issubclass(origin, wanted):
            parameters = getattr(origin, "__parameters__", ())
            return _arguments(origin, wanted, dict(zip(parameters, args, strict=False)))
    for base in cls.__bases__:
        if issubclass(base, wanted) and base is not wanted:
            return _arguments(base, wanted, {})
    return None


def accepts(wanted: Any, given: Any) -> bool:
    """False only when a value of type ``given`` certainly is none of type ``wanted``."""
    wanted, given = _plain(wanted), _plain(given)
    if wanted is None or given is None or wanted is object:
        return True
    if get_origin(given) in _UNION_ORIGINS:
        return all(accepts(wanted, part) for part in get_args(given))
    if get_origin(wanted) in _UNION_ORIGINS:
        return any(accepts(part, given) for part in get_args(wanted))
    wanted_class, given_class = get_origin(wanted) or wanted, get_origin(given) or given
    if not inspect.isclass(wanted_class) or not inspect.isclass(given_class):
        return True
    if getattr(wanted_class, "_is_protocol", False) or typing.is_typeddict(wanted_class):
        return True
    if wanted_class is float and given_class is int:
        return True
    if not issubclass(given_class, wanted_class):
        return False
    wanted_args, given_args = get_args(wanted), get_args(given)
    if wanted_class is not given_class or len(wanted_args) != len(given_args):
        return True
    return all(accepts(left, right) for left, right in zip(wanted_args, given_args, strict=True))


def same(one: Any, other: Any) -> bool:
    """False only when two types certainly are not the same."""
    return accepts(one, other) and accepts(other, one)


def single_class(kind: Any) -> type[Any] | None:
    """The class that every value of a type has, None when there may be several or it is not known."""
    plain = _plain(kind)
    found = get_origin(plain) or plain
    if found in _UNION_ORIGINS or found is object:
        return None
    return found if inspect.isclass(found) else None


def show(kind: Any) -> str:
    """A type in the words of its author."""
    if kind is None:
        return "unknown"
    if kind is type(None):
        return "None"
    if inspect.isclass(kind) and not get_args(kind):
        return kind.__qualname__.rpartition("<locals>.")[2]
    origin, args = get_origin(kind), get_args(kind)
    if origin in _UNION_ORIGINS:
        return " | ".join(show(arg) for arg in args)
    if inspect.isclass(origin) and args:
        return f"{show(origin)}[{', '.join('...' if arg is Ellipsis else show(arg) for arg in args)}]"
    return str(kind).removeprefix("typing.")


def _hints(function: Any) -> dict[str, Any]:
    target = function
    if not (inspect.isfunction(target) or inspect.ismethod(target) or inspect.isbuiltin(target)):
        target = getattr(type(target), "__call__", target)  # noqa: B004 - its annotations are wanted
    try:
        return get_type_hints(target)
    except Exception:  # a name that exists only for checkers, a local class: not known here
        return {}


def _known(kind: Any) -> Any:
    """None for what says nothing: Any, a type variable, a missing annotation."""
    return None if kind is None or kind is Any or isinstance(kind, TypeVar) else kind


def _plain(kind: Any) -> Any:
    """Without Annotated, NewType and Literal around it."""
    kind = _known(kind)
    if isinstance(kind, NewType):
        return _plain(kind.__supertype__)
    origin = get_origin(kind)
    if origin is typing.Annotated:
        return _plain(get_args(kind)[0])
    if origin is typing.Literal:
        kinds = {type(value) for value in get_args(kind)}
        return kinds.pop() if len(kinds) == 1 else None
    return kind
