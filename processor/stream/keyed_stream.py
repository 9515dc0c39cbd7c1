"""A stream whose records have keys: what needs state begins here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from processor.contracts.policy import Policy
from processor.errors import JobError, Where
from processor.ids import StepName
from processor.operators.aggregates import Aggregate, Keyed, total_type
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.lift import Filter
from processor.operators.process_function import KeyedProcess
from processor.operators.running_aggregate import TOTAL, RunningAggregate
from processor.operators.types import accepts, function_types, parameter_type, return_type, same, show
from processor.plan.graph import EdgeKind, Step
from processor.records.batch import Key
from processor.state.value_types import describe_type
from processor.stream.broadcast_stream import BroadcastConnected
from processor.stream.builder import Port, checked_function
from processor.stream.connected_streams import ConnectedStreams
from processor.stream.keyed_step import add_process, check_crossing, check_input
from processor.stream.step_class import function_class
from processor.stream.stream import BroadcastStream, Processed, Stream

K = TypeVar("K", bound=Key)
V = TypeVar("V")
R = TypeVar("R")
W = TypeVar("W")
A = TypeVar("A")

_KEY_CLASSES = (str, bytes, int, UUID, datetime, tuple, NoneType)


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
        cls = function_class(function, name, KeyedProcess)
        key_type, value_type, result_type = function_types(cls, KeyedProcess)
        check_input(cls, self._port, name, "the stream", value_type=value_type, key_type=key_type)
        return add_process(
            self._builder,
            [self._port],
            Step(
                name=name,
                kind="process",
                make=lambda: KeyedProcessOperator(function),
                policy=self._builder.policy(on_error, name),
                parallelism=parallelism,
            ),
            cls,
            result_type,
        )

    def connect(self, other: KeyedStream[K, R]) -> ConnectedStreams[K, V, R]:
        """This stream and another with keys of the same type, for one function that sees both: ``process``."""
        where = Where(step=self._port.step)
        if not isinstance(other, KeyedStream):
            raise JobError(
                f"connect is given {other!r:.80}, which is no stream with a key.",
                remedy="Give a stream of this job behind a key_by of its own.",
                where=where,
            )
        self._builder.check_same(other._builder, "connect", where)
        mine, theirs = self._port.key_type, other._port.key_type
        if not same(mine, theirs):
            raise JobError(
                f"the keys are of type {show(mine)}, and those of the other stream, of step "
                f"'{other._port.step}', of type {show(theirs)}: they would never meet.",
                remedy="Let both key_by functions return keys of one type.",
                where=where,
            )
        return ConnectedStreams(self._builder, self._port, other._port)

    def connect_broadcast(self, other: BroadcastStream[R]) -> BroadcastConnected[K, V, R]:
        """This stream and one that reaches every subtask, for one function that sees both: ``process``."""
        where = Where(step=self._port.step)
        if not isinstance(other, BroadcastStream):
            raise JobError(
                f"connect_broadcast is given {other!r:.80}, which is no broadcast stream.",
                remedy="Give a stream of this job behind a broadcast of its own.",
                where=where,
            )
        self._builder.check_same(other.builder, "connect_broadcast", where)
        return BroadcastConnected(self._builder, self._port, other)

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
        kept_as, description = self._checked_aggregate(how, name)
        check_crossing(self._port)
        self._builder.add(
            Step(
                name=name,
                kind="aggregate",
                make=lambda: RunningAggregate(how, total_type=kept_as),
                policy=self._builder.policy(on_error, name),
                parallelism=parallelism,
                states={TOTAL: description},
            ),
            [self._port],
            kinds=[EdgeKind.KEYED],
        )
        key_type, result_type = self._port.key_type, return_type(how.result)
        value_type: Any = Keyed
        if key_type is not None and result_type is not None:
            value_type = cast(Any, Keyed)[key_type, result_type]
        return Stream(self._builder, Port(step=name, value_type=value_type, keyed=True, key_type=key_type))

    def _checked_aggregate(self, how: Any, step: StepName) -> tuple[Any, str]:
        """Type of the totals, and its description."""
        where = Where(step=step)
        try:
            kind = total_type(how)
            description = describe_type(kind)
        except JobError as error:
            raise JobError(error.message, remedy=error.remedy, where=where) from error
        wanted = parameter_type(how.add, 1)
        if not accepts(wanted, self._port.value_type):
            raise JobError(
                f"the aggregate adds values of type {show(wanted)}, and the stream has "
                f"{show(self._port.value_type)}.",
                remedy="Give an aggregate of the stream's values, or convert them with map before key_by.",
                where=where,
            )
        return kind, description


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
