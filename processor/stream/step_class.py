"""The class of an author that a step runs: which it is, and what state it declares."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, get_origin

from processor.errors import JobError, Where
from processor.ids import StepName
from processor.operators.process_function import StepFunction
from processor.operators.types import return_type
from processor.state.declarations import Declared, declared, described_by

F = TypeVar("F", bound=StepFunction)

_BASES = (
    "A KeyedProcess takes the records of one stream, a KeyedCoProcess those of two that connect brings together, "
    "both by process; a Transform takes records whatever their keys, by transform."
)


def function_class(function: Any, step: StepName, base: type[F], method: str = "process") -> type[F]:
    """The class whose instances a step will make, told without making one; it is derived from ``base``.

    ``method`` is what was called with it, for errors. Raises JobError.
    """
    where = Where(step=step)
    if isinstance(function, StepFunction):
        raise JobError(
            f"{method} is given an instance of {type(function).__name__}; every subtask needs its own.",
            remedy=f"Give the class, {type(function).__name__}, or functools.partial of it with arguments.",
            where=where,
        )
    made = get_origin(function) or function  # of Watch[int], the class Watch
    cls = return_type(made) if callable(made) else None
    if not inspect.isclass(cls):
        raise JobError(
            f"{method} is given {function!r:.80}, which does not say what class it makes.",
            remedy=f"Give a class derived from {base.__name__}, functools.partial of one, or a function whose "
            "return annotation names one.",
            where=where,
        )
    if issubclass(cls, base):
        return cls
    raise JobError(
        f"{method} is given {cls.__name__}, which is not derived from {base.__name__}.",
        remedy=_BASES,
        where=where,
    )


def step_states(cls: type, step: StepName, *kinds: type[Any]) -> dict[str, str]:
    """What a class declares, with descriptions of kinds and types. Raises JobError for what cannot be kept, and for a
    state of none of these ``kinds``."""
    where = Where(step=step)
    for name, state in declared(cls, Declared).items():
        if not isinstance(state, kinds):
            raise JobError(
                f"{cls.__name__} declares '{name}' as a {type(state).__name__}, which it cannot have.",
                remedy="Lists of a subtask belong into a Transform, and state of a key into a KeyedProcess or its "
                "like.",
                where=where,
            )
    try:
        return dict(described_by(cls, Declared))
    except JobError as error:
        raise JobError(error.message, remedy=error.remedy, where=where) from error
