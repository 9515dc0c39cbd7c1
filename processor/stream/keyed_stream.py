"""A stream whose records have keys: what needs state begins here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from processor.contracts.policy import Policy
from processor.errors import JobError, Where
from processor.ids import StepName
from processor.operators.aggregates import Aggregate, Keyed
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.lift import Filter
from processor.operators.process_function import KeyedProcess, declared_sides
from processor.operators.running_aggregate import TOTAL, RunningAggregate
from processor.plan.graph import Step
from processor.plan.types import accepts, parameter_type, process_types, return_type, show
from processor.records.batch import Key
from processor.state.declarations import described_states
from processor.state.value_types import describe_type
from processor.stream.builder import Port, checked_function
from processor.stream.stream import Processed, Stream

K = TypeVar("K", bound=Key)
V = TypeVar("V")
W = TypeVar("W")
A = TypeVar("A")

_KEY_CLASSES = (str, bytes, int, UUID, datetime, tuple, NoneType)
_THREE_WAYS = (
    "Say it in one of three ways: .returns(T) behind the step that makes them, a return annotation on its "
    "function, or a source whose format names the type."
)


class KeyedStream(Stream[V], Generic[K, V]):
    """Values of type V, each with a key of type K. Records of one key meet in one subtask, in order.

    ``map`` and ``flat_map`` keep the keys of the records for a sink behind them, but not for a keyed step:
    its values may no longer belong to the key.
    """

    def filter(
        self,
        step: str,
        keep: Callable[[V], bool],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> KeyedStream[K, V]:
        """The values for which ``keep`` says true; still keyed."""
        name = self._builder.name_step(step)
        checked_function(keep, name, "the function", self._port.value_type)
        port = self._then(name, "filter", lambda: Filter(keep), on_error, parallelism)
        return KeyedStream(self._builder, port)

    def process(
        self,
        step: str,
        function: Callable[[], KeyedProcess[K, V, W]],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Processed[W]:
        """Run a class with state and timers: the class itself, ``functools.partial`` of it, or a function
        whose return annotation names it. Every subtask makes its own instance; nothing is made now.
        """
        name = self._builder.name_step(step)
        cls = process_class(function, name)
        key_type, value_type, result_type = process_types(cls)
        self._check_process(cls, name, key_type, value_type)
        self._check_crossing()
        try:
            states = described_states(cls)
        except JobError as error:
            raise JobError(error.message, remedy=error.remedy, where=Where(step=name)) from error
        self._add_keyed(
            name, "process", lambda: KeyedProcessOperator(function), states, on_error, parallelism
        )
        port = Port(step=name, value_type=result_type, keyed=True, key_type=self._port.key_type)
        return Processed(self._builder, port, dict(declared_sides(cls)))

    def aggregate(
        self,
        step: str,
        how: Aggregate[V, A, W],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Stream[Keyed[K, W]]:
        """A running total for each key; every record sends out the new result, with its key and timestamp."""
        name = self._builder.name_step(step)
        total_type, description = self._checked_aggregate(how, name)
        self._check_crossing()
        self._add_keyed(
            name,
            "aggregate",
            lambda: RunningAggregate(how, total_type=total_type),
            {TOTAL: description},
            on_error,
            parallelism,
        )
        key_type, result_type = self._port.key_type, return_type(how.result)
        value_type: Any = Keyed
        if key_type is not None and result_type is not None:
            value_type = cast(Any, Keyed)[key_type, result_type]
        return Stream(self._builder, Port(step=name, value_type=value_type, keyed=True, key_type=key_type))

    def _add_keyed(
        self,
        name: StepName,
        kind: str,
        make: Callable[[], Any],
        states: Mapping[str, str],
        on_error: Policy | None,
        parallelism: int | None,
    ) -> None:
        self._builder.add(
            Step(
                name=name,
                kind=kind,
                make=make,
                policy=self._builder.policy(on_error, name),
                parallelism=parallelism,
                states=dict(states),
            ),
            [self._port],
            keyed=True,
        )

    def _check_process(self, cls: type, step: StepName, key_type: Any, value_type: Any) -> None:
        where = Where(step=step)
        if not accepts(value_type, self._port.value_type):
            raise JobError(
                f"{cls.__name__} takes values of type {show(value_type)}, and the stream has "
                f"{show(self._port.value_type)}.",
                remedy="Give a class for the stream's values, or convert them with map before key_by.",
                where=where,
            )
        if not accepts(key_type, self._port.key_type):
            raise JobError(
                f"{cls.__name__} takes keys of type {show(key_type)}, and the stream has "
                f"{show(self._port.key_type)}.",
                remedy="Give a class for the stream's keys, or key the stream by another function.",
                where=where,
            )

    def _check_crossing(self) -> None:
        """Values that reach another subtask must be of a type with an encoding, whatever the runtime."""
        if self._port.value_type is None:
            return  # unknown: KeyBy looks at the values themselves
        try:
            describe_type(self._port.value_type)
        except JobError as error:
            raise JobError(
                f"values of type {show(self._port.value_type)} cross to another subtask here, and there "
                "is no encoding for them.",
                remedy="Use plain values, lists, dicts, tuples, dataclasses or msgspec Structs of them.",
                where=Where(step=self._port.step),
            ) from error

    def _checked_aggregate(self, how: Any, step: StepName) -> tuple[Any, str]:
        """Type of the totals, and its description."""
        where = Where(step=step)
        missing = [n for n in ("create", "add", "merge", "result") if not callable(getattr(how, n, None))]
        if isinstance(how, type) or missing:
            raise JobError(
                f"aggregate is given {how!r:.80}, which is no aggregate"
                + (f": it has no {missing[0]}." if missing else " but a class."),
                remedy="Give an instance, such as Count() or Sum(lambda order: order.cents).",
                where=where,
            )
        wanted = parameter_type(how.add, 1)
        if not accepts(wanted, self._port.value_type):
            raise JobError(
                f"the aggregate adds values of type {show(wanted)}, and the stream has "
                f"{show(self._port.value_type)}.",
                remedy="Give an aggregate of the stream's values, or convert them with map before key_by.",
                where=where,
            )
        total_type = return_type(how.create)
        if total_type is None:
            raise JobError(
                f"{type(how).__name__} does not say the type of its totals, which are kept as state.",
                remedy="Annotate the return type of its create, such as def create(self) -> int.",
                where=where,
            )
        try:
            return total_type, describe_type(total_type)
        except JobError as error:
            raise JobError(error.message, remedy=error.remedy, where=where) from error


def process_class(function: Any, step: StepName) -> type[KeyedProcess[Any, Any, Any]]:
    """The class whose instances a step will make, told without making one. Raises JobError."""
    where = Where(step=step)
    if isinstance(function, KeyedProcess):
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
            remedy="Give a class derived from KeyedProcess, functools.partial of one, or a function whose "
            "return annotation names one.",
            where=where,
        )
    if not issubclass(cls, KeyedProcess):
        raise JobError(
            f"process is given {cls.__name__}, which is not derived from KeyedProcess.",
            remedy="Derive it: class Watch(KeyedProcess[str, Click, int]).",
            where=where,
        )
    return cls


def checked_key_type(key_type: Any, step: StepName) -> Any:
    """The type of keys without None. Raises JobError for one that cannot be a key."""
    parts = get_args(key_type) if get_origin(key_type) in (Union, UnionType) else (key_type,)
    for part in parts:
        cls = get_origin(part) or part
        if inspect.isclass(cls) and not issubclass(cls, _KEY_CLASSES):
            raise JobError(
                f"the key function returns {show(part)}, which cannot be a key.",
                remedy="Keys are str, bytes, int, bool, UUID, datetime with a time zone, or tuples of them.",
                where=Where(step=step),
            )
    kept = [part for part in parts if part is not NoneType]
    return kept[0] if len(kept) == 1 else None
