"""What the steps of streams with keys have in common: which class they run, and what reaches it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, get_origin

from processor.errors import JobError, Where
from processor.ids import StepName
from processor.operators.process_function import KeyedFunction, declared_sides
from processor.operators.types import accepts, return_type, show
from processor.plan.graph import Step
from processor.state.declarations import described_states, expiries_of
from processor.state.value_types import describe_type
from processor.stream.builder import JobBuilder, Port
from processor.stream.stream import Processed

F = TypeVar("F", bound=KeyedFunction[Any, Any])


def process_class(function: Any, step: StepName, base: type[F]) -> type[F]:
    """The class whose instances a step will make, told without making one; it is derived from ``base``.

    Raises JobError.
    """
    where = Where(step=step)
    if isinstance(function, KeyedFunction):
        raise JobError(
            f"process is given an instance of {type(function).__name__}; every subtask needs its own.",
            remedy=f"Give the class, {type(function).__name__}, or functools.partial of it with arguments.",
            where=where,
        )
    made = get_origin(function) or function  # of Watch[int], the class Watch
    cls = return_type(made) if callable(made) else None
    if not inspect.isclass(cls):
        raise JobError(
            f"process is given {function!r:.80}, which does not say what class it makes.",
            remedy=f"Give a class derived from {base.__name__}, functools.partial of one, or a function whose "
            "return annotation names one.",
            where=where,
        )
    if issubclass(cls, base):
        return cls
    raise JobError(
        f"process is given {cls.__name__}, which is not derived from {base.__name__}.",
        remedy="A KeyedProcess takes the records of one stream, a KeyedCoProcess those of two that connect "
        "brings together.",
        where=where,
    )


def check_input(
    cls: type, port: Port, step: StepName, stream: str, *, value_type: Any, key_type: Any
) -> None:
    """Whether the class takes what comes from ``port``, and whether that can travel; ``stream`` says in errors
    which it is. Raises JobError."""
    for what, wanted, given, remedy in (
        ("values", value_type, port.value_type, "or convert them with map before key_by"),
        ("keys", key_type, port.key_type, "or key the stream by another function"),
    ):
        if not accepts(wanted, given):
            raise JobError(
                f"{cls.__name__} takes {what} of type {show(wanted)}, and {stream} has {show(given)}.",
                remedy=f"Give a class for the stream's {what}, {remedy}.",
                where=Where(step=step),
            )
    check_crossing(port)


def check_crossing(port: Port) -> None:
    """Values that reach another subtask must be of a type with an encoding, whatever the runtime. Raises
    JobError."""
    if port.value_type is None:
        return  # unknown: KeyBy looks at the values themselves
    try:
        describe_type(port.value_type)
    except JobError as error:
        raise JobError(
            f"values of type {show(port.value_type)} cross to another subtask here, and there is no encoding "
            "for them.",
            remedy="Use plain values, lists, dicts, tuples, dataclasses or msgspec Structs of them.",
            where=Where(step=port.step),
        ) from error


def add_process(
    builder: JobBuilder, inputs: Sequence[Port], step: Step, cls: type, result_type: Any
) -> Processed[Any]:
    """Add a step that runs a class, with the states the class declares. Raises JobError for one that cannot be
    kept."""
    try:
        states, expiries = described_states(cls), expiries_of(cls)
    except JobError as error:
        raise JobError(error.message, remedy=error.remedy, where=Where(step=step.name)) from error
    builder.add(replace(step, states=dict(states), expiries=dict(expiries)), inputs, keyed=True)
    key_type = next((port.key_type for port in inputs if port.key_type is not None), None)
    port = Port(step=step.name, value_type=result_type, keyed=True, key_type=key_type)
    return Processed(builder, port, dict(declared_sides(cls)))
