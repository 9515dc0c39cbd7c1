"""What the steps of streams with keys have in common: what reaches them, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from processor.errors import JobError, Where
from processor.ids import StepName
from processor.operators.process_function import declared_sides
from processor.operators.types import accepts, show
from processor.plan.graph import EdgeKind, Step
from processor.state.declarations import State, expiries_of
from processor.state.value_types import describe_type
from processor.stream.builder import JobBuilder, Port
from processor.stream.step_class import step_states
from processor.stream.stream import Processed


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
    builder: JobBuilder,
    inputs: Sequence[Port],
    step: Step,
    cls: type,
    result_type: Any,
    *,
    kinds: Sequence[EdgeKind] | None = None,
    states: Sequence[type[Any]] = (State,),
) -> Processed[Any]:
    """Add a step that runs a class, over edges of these ``kinds`` (by key, if not given), with the states the class
    declares, of these kinds of ``states``. Raises JobError like ``step_states``."""
    described = replace(step, states=step_states(cls, step.name, *states), expiries=dict(expiries_of(cls)))
    kinds = [EdgeKind.KEYED] * len(inputs) if kinds is None else kinds
    builder.add(described, inputs, kinds=kinds)
    keyed = [port for port, kind in zip(inputs, kinds, strict=True) if kind is EdgeKind.KEYED]
    key_type = next((port.key_type for port in keyed if port.key_type is not None), None)
    port = Port(step=step.name, value_type=result_type, keyed=True, key_type=key_type)
    return Processed(builder, port, dict(declared_sides(cls)))
