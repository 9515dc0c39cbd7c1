"""Collects the steps of a job while its author writes it, and refuses what cannot work as early as it can."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from processor.contracts.checkpoint_hook import CheckpointHook
from processor.contracts.policy import Fail, Policy, Skip
from processor.errors import JobError, Where
from processor.ids import MAX_PARALLELISM_LIMIT, JobName, StepName, escape_name
from processor.operators.types import accepts, parameter_type, show
from processor.plan.graph import MAIN_OUTPUT, Edge, EdgeKind, EventTime, JobGraph, Step

NAME_LENGTH_MAX = 100
"""Of a name as file names and identities at brokers hold it (``ids.escape_name``), which have limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One output of a step, and what is known of the records that come out of it."""

    step: StepName
    output: str = MAIN_OUTPUT
    value_type: Any = None
    keyed: bool = False
    """Records carry a key: the stream comes from behind a key_by."""
    key_type: Any = None


class JobBuilder:
    """The steps and edges so far. Every edge goes from an earlier to a later step, so there are no loops."""

    def __init__(self, name: str, *, parallelism: int | None, max_parallelism: int, on_error: Policy) -> None:
        self.name = JobName(checked_name(name, "job"))
        self.on_error = checked_policy(on_error, f"job '{name}'", None)
        self.audit: Any = None
        self.hooks: dict[str, Callable[[], CheckpointHook]] = {}
        if type(max_parallelism) is not int or not 1 <= max_parallelism <= MAX_PARALLELISM_LIMIT:
            raise JobError(
                f"max_parallelism of job '{name}' is {max_parallelism!r}.",
                remedy=f"Give a whole number from 1 to {MAX_PARALLELISM_LIMIT}.",
            )
        self.max_parallelism = max_parallelism
        self.parallelism = self._checked_parallelism(parallelism, f"job '{name}'", None)
        self._steps: dict[StepName, Step] = {}
        self._edges: list[Edge] = []

    def name_step(self, name: str) -> StepName:
        """The name of a new step. Raises JobError for one that is taken or cannot be a name."""
        step = StepName(checked_name(name, "step"))
        if step in self._steps:
            raise JobError(
                f"two steps of job '{self.name}' have the name '{step}': the first is a "
                f"'{self._steps[step].kind}'.",
                remedy="Give one of them another name; state, outboxes and errors hang on it.",
            )
        return step

    def check_same(self, other: JobBuilder, doing: str, where: Where) -> None:
        """Raises JobError for a stream of another job; ``doing`` is what it was given to."""
        if other is not self:
            raise JobError(
                f"{doing} is given a stream of job '{other.name}'.",
                remedy=f"Give streams of this job, '{self.name}'.",
                where=where,
            )

    def add_hook(self, name: str, make: Callable[[], CheckpointHook]) -> None:
        """Raises JobError for a name that is taken or cannot be one, and for what makes no hook."""
        checked_name(name, "hook")
        if name in self.hooks:
            raise JobError(
                f"two hooks of job '{self.name}' have the name '{name}'.",
                remedy="Give one of them another name; what they keep hangs on it.",
            )
        if not callable(make):
            raise JobError(
                f"hook '{name}' of job '{self.name}' is given {make!r:.80}, which makes nothing.",
                remedy="Give a class derived from CheckpointHook, or a function that returns a new one.",
            )
        self.hooks[name] = make

    def add(
        self,
        step: Step,
        inputs: Sequence[Port] = (),
        *,
        kinds: Sequence[EdgeKind] = (),
        partition: Callable[[Any], int] | None = None,
    ) -> None:
        """Add a step behind these outputs, over edges of these ``kinds``, one for each; forward without them.
        ``partition`` is for an edge that is partitioned by it."""
        self._checked_parallelism(step.parallelism, "the step", step.name)
        self._steps[step.name] = step
        for index, port in enumerate(inputs):
            self._edges.append(
                Edge(
                    origin=port.step,
                    output=port.output,
                    target=step.name,
                    input=index,
                    kind=kinds[index] if kinds else EdgeKind.FORWARD,
                    value_type=port.value_type,
                    keyed=port.keyed,
                    partition=partition,
                )
            )

    def set_event_time(self, step: StepName, event_time: EventTime) -> None:
        if self._steps[step].event_time is not None:
            raise JobError(
                "event_time is given twice.", remedy="Give it once, behind read.", where=Where(step=step)
            )
        self._steps[step] = replace(self._steps[step], event_time=event_time)

    def policy(self, on_error: Policy | None, step: StepName) -> Policy:
        """The step's own policy, or the job's."""
        return self.on_error if on_error is None else checked_policy(on_error, "the step", step)

    def graph(self) -> JobGraph:
        """The finished graph. Raises JobError for a job that reads or writes nothing."""
        if not any(step.source is not None for step in self._steps.values()):
            raise JobError(f"job '{self.name}' reads nothing.", remedy="Begin with job.read(...).")
        if not any(step.sink is not None for step in self._steps.values()):
            raise JobError(f"job '{self.name}' writes nothing.", remedy="End a stream with .write(...).")
        return JobGraph(
            name=self.name,
            steps=dict(self._steps),
            edges=tuple(self._edges),
            parallelism=self.parallelism,
            max_parallelism=self.max_parallelism,
            hooks=dict(self.hooks),
            audit=self.audit,
        )

    def _checked_parallelism(self, value: int | None, whose: str, step: StepName | None) -> int | None:
        if value is None or (type(value) is int and 1 <= value <= self.max_parallelism):
            return value
        raise JobError(
            f"parallelism of {whose} is {value!r}.",
            remedy=f"Give a whole number from 1 to the job's max_parallelism, {self.max_parallelism}.",
            where=Where(step=step),
        )


def checked_name(name: object, of: str) -> str:
    """A name of a job or step. Raises JobError."""
    problem = None
    if not isinstance(name, str):
        problem = f"is {name!r:.80}, which is no str"
    elif not name:
        problem = "is empty"
    elif name != name.strip() or not name.isprintable():
        problem = f"{name!r} begins or ends with a blank, or holds a character that cannot be printed"
    elif len(escape_name(name)) > NAME_LENGTH_MAX:
        problem = (
            f"'{name[:20]}…' takes {len(escape_name(name))} characters in file names and identities, and "
            f"{NAME_LENGTH_MAX} are the limit"
        )
    else:
        return name
    raise JobError(f"the name of a {of} {problem}.", remedy=f"Give the {of} a short name of its own.")


def checked_policy(policy: object, whose: str, step: StepName | None) -> Policy:
    if isinstance(policy, (Fail, Skip)):
        return policy
    raise JobError(
        f"on_error of {whose} is {policy!r:.80}.",
        remedy="Give Fail() or Skip().",
        where=Where(step=step),
    )


def checked_function(
    function: Callable[..., Any], step: StepName, what: str, value_type: Any, *, gives_one: bool = True
) -> None:
    """A function of a step's values. Raises JobError for what cannot be called with them."""
    where = Where(step=step)
    if not callable(function):
        raise JobError(
            f"{what} is {function!r:.80}, which cannot be called.", remedy="Give a function.", where=where
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise JobError(
            f"{what} is an async function.",
            remedy="Give a plain function, which returns its result.",
            where=where,
        )
    if gives_one and inspect.isgeneratorfunction(function):
        raise JobError(
            f"{what} is a generator: its result would be the generator itself.",
            remedy="Use flat_map for a function that yields values.",
            where=where,
        )
    wanted = parameter_type(function)
    if not accepts(wanted, value_type):
        raise JobError(
            f"{what} takes {show(wanted)}, and the stream has values of type {show(value_type)}.",
            remedy="Give a function of the stream's values, or convert them with map before.",
            where=where,
        )
