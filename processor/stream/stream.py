"""A stream of values, and the steps an author can put behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from processor.contracts.policy import Policy
from processor.contracts.sink import Guarantee, Sink
from processor.errors import JobError, Where
from processor.ids import StepName
from processor.operators.key_by import KeyBy
from processor.operators.lift import Filter, FlatMap, Map, MapBatch, Union
from processor.operators.operator import AnyOperator
from processor.operators.outbox_sink import OutboxSink
from processor.operators.process_function import SideOutput
from processor.operators.transform import TransformOperator
from processor.operators.transform_function import Transform
from processor.operators.types import accepts, function_types, item_type, return_type, show
from processor.plan.compatibility import check_guarantee
from processor.plan.graph import MAIN_OUTPUT, EdgeKind, Step
from processor.records.batch import Key
from processor.state.operator_state import SplitListState, UnionListState
from processor.stream.builder import JobBuilder, Port, checked_function
from processor.stream.step_class import function_class, step_states

if TYPE_CHECKING:
    from processor.stream.keyed_stream import KeyedStream

V = TypeVar("V")
W = TypeVar("W")
T = TypeVar("T")
K = TypeVar("K", bound=Key)


_NO_KEY = (
    "what follows needs a key, and the stream has none here.",
    "Put key_by right before it; map and flat_map make values that may no longer belong to a key.",
)
_NOT_HERE = {
    "process": _NO_KEY,
    "aggregate": _NO_KEY,
    "connect": _NO_KEY,
    "connect_broadcast": _NO_KEY,
    "event_time": ("event_time stands behind another step.", "Put it right behind read."),
}
"""What only some streams have, with what to tell those who ask the others for it."""


class Stream(Generic[V]):
    """Values of type V on their way through a job. Describes; runs nothing.

    A step needs a name of its own: state, outboxes and errors hang on it. ``on_error`` says what becomes of a
    record for which the step's function raises, the job's policy unless given: ``Fail()`` stops at the
    record, ``Skip()`` leaves it out and counts it. ``parallelism`` is the number of its subtasks, the job's
    unless given. Streams may be used more than once: each use gets every record.
    """

    def __init__(self, builder: JobBuilder, port: Port) -> None:
        self._builder = builder
        self._port = port

    def map(
        self,
        step: str,
        function: Callable[[V], W],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Stream[W]:
        """One value for each; key, headers and timestamp stay."""
        name = self._builder.name_step(step)
        checked_function(function, name, "the function", self._port.value_type)
        port = self._then(name, "map", lambda: Map(function), on_error, parallelism)
        return Stream(self._builder, replace(port, value_type=return_type(function)))

    def filter(
        self,
        step: str,
        keep: Callable[[V], bool],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Stream[V]:
        """The values for which ``keep`` says true, with key, headers and timestamp."""
        name = self._builder.name_step(step)
        checked_function(keep, name, "the function", self._port.value_type)
        return Stream(self._builder, self._then(name, "filter", lambda: Filter(keep), on_error, parallelism))

    def flat_map(
        self,
        step: str,
        function: Callable[[V], Iterable[W]],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Stream[W]:
        """Any number of values for each; each gets a copy of key, headers and timestamp."""
        name = self._builder.name_step(step)
        checked_function(function, name, "the function", self._port.value_type, gives_one=False)
        port = self._then(name, "flat map", lambda: FlatMap(function), on_error, parallelism)
        return Stream(self._builder, replace(port, value_type=item_type(return_type(function))))

    def map_batch(
        self,
        step: str,
        function: Callable[[Sequence[V]], Sequence[W]],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Stream[W]:
        """A function of many values at once: one result a value, in order; key, headers and timestamp stay.

        How records are cut into batches is not promised, so a result must not depend on its neighbours. Under
        ``Skip()`` a batch for which the function raises is given to it again, one record at a time.
        """
        name = self._builder.name_step(step)
        checked_function(function, name, "the function", None)
        port = self._then(name, "map batch", lambda: MapBatch(function), on_error, parallelism)
        return Stream(self._builder, replace(port, value_type=item_type(return_type(function))))

    def transform(
        self,
        step: str,
        function: Callable[[], Transform[V, W]],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Stream[W]:
        """Run a class that keeps lists of its own, whatever the key: the class itself, ``functools.partial`` of it,
        or a function whose return annotation names it. Every subtask makes its own instance; nothing is made now.
        """
        name = self._builder.name_step(step)
        cls = function_class(function, name, Transform, "transform")
        value_type, result_type = function_types(cls, Transform)
        if not accepts(value_type, self._port.value_type):
            raise JobError(
                f"{cls.__name__} takes values of type {show(value_type)}, and the stream has "
                f"{show(self._port.value_type)}.",
                remedy="Give a class for the stream's values, or convert them with map before.",
                where=Where(step=name),
            )
        described = Step(
            name=name,
            kind="transform",
            make=lambda: TransformOperator(function),
            policy=self._builder.policy(on_error, name),
            parallelism=parallelism,
            states=step_states(cls, name, SplitListState, UnionListState),
        )
        self._builder.add(described, [self._port])
        return Stream(self._builder, Port(step=name, value_type=result_type))

    def returns(self, kind: type[V]) -> Self:
        """Say the type of the values, where a function (a lambda, for one) cannot say it itself."""
        if not accepts(kind, self._port.value_type) and not accepts(self._port.value_type, kind):
            raise JobError(
                f".returns({show(kind)}) contradicts the type its function names, "
                f"{show(self._port.value_type)}.",
                remedy="Correct one of them.",
                where=Where(step=self._port.step),
            )
        return self._at(replace(self._port, value_type=kind))

    def key_by(
        self, step: str, key: Callable[[V], K], *, on_error: Policy | None = None
    ) -> KeyedStream[K, V]:
        """Give every record a key: str, bytes, int, bool, UUID, aware datetime, or a tuple of them.

        0, "" and b"" are keys. None is none: it goes by ``on_error``, like a key function that raises.
        """
        from processor.stream.keyed_stream import KeyedStream, checked_key_type

        name = self._builder.name_step(step)
        checked_function(key, name, "the key function", self._port.value_type)
        key_type = checked_key_type(return_type(key), name)
        known = self._port.value_type is not None
        port = self._then(name, "key by", lambda: KeyBy(key, type_known=known), on_error, None)
        return KeyedStream(self._builder, replace(port, keyed=True, key_type=key_type))

    def broadcast(self, step: str) -> BroadcastStream[V]:
        """For ``connect_broadcast``: every value reaches every subtask of what follows. Few at a time, for each is
        worked on by all.

        The step has one subtask, through which all values go: so those that follow see them in one order, and keep
        the same of them.
        """
        name = self._builder.name_step(step)
        port = self._then(name, "broadcast", Union, None, 1)
        return BroadcastStream(self._builder, replace(port, keyed=False, key_type=None))

    def rebalance(self, step: str, *, parallelism: int | None = None) -> Stream[V]:
        """Spread the records evenly over ``parallelism`` subtasks of what follows, whatever subtask they are in: for
        slow functions behind a topic with few partitions. Whole batches go to the subtasks in turn, so records
        are no longer in the order of their partition."""
        return self._spread(self._builder.name_step(step), EdgeKind.REBALANCE, parallelism)

    def partition_by(
        self, step: str, number: Callable[[V], int], *, parallelism: int | None = None
    ) -> Stream[V]:
        """Send each record to the subtask with the index ``number(value) % parallelism``; the order of those with one
        number stays. For what only the author knows, such as a few records that are to be kept apart. State per
        key needs ``key_by``.

        An error of the function fails the job at the record: use ``filter`` for records without a number.
        """
        name = self._builder.name_step(step)
        checked_function(number, name, "the function", self._port.value_type)
        given = return_type(number)
        if given not in (None, int):
            raise JobError(
                f"the function gives {show(given)}, and a whole number is needed.",
                remedy="Give a function from a value to an int.",
                where=Where(step=name),
            )
        return self._spread(name, EdgeKind.PARTITIONED, parallelism, number)

    def _spread(
        self,
        name: StepName,
        kind: EdgeKind,
        parallelism: int | None,
        partition: Callable[[V], int] | None = None,
    ) -> Stream[V]:
        described = Step(
            name=name, kind=kind, make=Union, policy=self._builder.on_error, parallelism=parallelism
        )
        self._builder.add(described, [self._port], kinds=[kind], partition=partition)
        return Stream(self._builder, replace(self._port, step=name, output=MAIN_OUTPUT))

    def union(self, step: str, *others: Stream[V], parallelism: int | None = None) -> Stream[V]:
        """This stream and others as one; the order within each stays, between them there is none."""
        name = self._builder.name_step(step)
        streams: tuple[Stream[V], ...] = (self, *others)
        for other in streams:
            if not isinstance(other, Stream):
                raise JobError(
                    f"a union is given {other!r:.80}, which is no stream.",
                    remedy="Give streams of this job.",
                    where=Where(step=name),
                )
            self._builder.check_same(other._builder, "a union", Where(step=name))
            self._same_type(other, name)
        self._builder.add(
            Step(name=name, kind="union", make=Union, policy=self._builder.on_error, parallelism=parallelism),
            [other._port for other in streams],
        )
        known = all(other._port.value_type is not None for other in streams)
        return Stream(
            self._builder,
            Port(
                step=name,
                value_type=self._port.value_type if known else None,
                keyed=all(other._port.keyed for other in streams),
            ),
        )

    if not TYPE_CHECKING:  # checkers are to see that these are not there

        def __getattr__(self, name: str) -> object:
            if name in _NOT_HERE:
                problem, remedy = _NOT_HERE[name]
                raise JobError(problem, remedy=remedy, where=Where(step=self._port.step))
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _same_type(self, other: Stream[V], step: StepName) -> None:
        mine, theirs = self._port.value_type, other._port.value_type
        if not accepts(mine, theirs):
            raise JobError(
                f"a union of values of type {show(mine)} and {show(theirs)}.",
                remedy="Convert one of the streams with map, or say their common type with .returns(T).",
                where=Where(step=step),
            )

    def write(
        self,
        step: str,
        sink: Sink[V],
        *,
        guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> None:
        """Send the values out. A sink that gives less than exactly-once must be accepted by ``guarantee``."""
        name = self._builder.name_step(step)
        checked_sink(sink, name, self._port.value_type)
        policy = self._builder.policy(on_error, name)
        described = Step(
            name=name,
            kind="write",
            make=lambda: OutboxSink(sink),
            sink=sink,
            guarantee=guarantee,
            policy=policy,
            parallelism=parallelism,
        )
        check_guarantee(described)
        self._builder.add(described, [self._port])

    def _then(
        self,
        step: StepName,
        kind: str,
        make: Callable[[], AnyOperator],
        on_error: Policy | None,
        parallelism: int | None,
    ) -> Port:
        """Add a step of one input that keeps what is known of the stream."""
        self._builder.add(
            Step(
                name=step,
                kind=kind,
                make=make,
                policy=self._builder.policy(on_error, step),
                parallelism=parallelism,
            ),
            [self._port],
        )
        return replace(self._port, step=step, output="")

    def _at(self, port: Port) -> Self:
        """A stream of the same class at another place."""
        return type(self)(self._builder, port)


class BroadcastStream(Generic[V]):
    """What ``broadcast`` gives: values for every subtask of the steps it meets a stream with keys in."""

    def __init__(self, builder: JobBuilder, port: Port) -> None:
        self.builder = builder
        self.port = port


class Processed(Stream[V]):
    """What ``process`` gives: its main output, and by ``side`` its others."""

    def __init__(self, builder: JobBuilder, port: Port, sides: dict[str, SideOutput[Any]]) -> None:
        super().__init__(builder, port)
        self._sides = sides

    def _at(self, port: Port) -> Self:
        return type(self)(self._builder, port, self._sides)

    def side(self, output: SideOutput[T], /) -> Stream[T]:
        """The values of a side output, named as an attribute of its class: ``side(Watch.alerts)``."""
        for tag, declared in self._sides.items():
            if declared is output:
                return Stream(self._builder, replace(self._port, output=tag, value_type=output.kind))
        known = ", ".join(sorted(self._sides)) or "none"
        raise JobError(
            f"{output!r:.80} is no side output of this step; it has: {known}.",
            remedy="Name one as an attribute of the step's class.",
            where=Where(step=self._port.step),
        )


def checked_sink(sink: Any, step: StepName, value_type: Any) -> None:
    """Raises JobError for what is no sink, or one of other values than the stream has."""
    if isinstance(sink, type) or not hasattr(sink, "encoder") or not hasattr(sink, "publisher"):
        raise JobError(
            f"write is given {sink!r:.80}, which is no sink.",
            remedy="Give an instance, such as KafkaSink('topic', Json(T)).",
            where=Where(step=step),
        )
    known = getattr(sink, "value_type", None)
    wanted = known() if callable(known) else None
    if not accepts(wanted, value_type):
        raise JobError(
            f"the sink writes values of type {show(wanted)}, and the stream has {show(value_type)}.",
            remedy="Give the sink a format for the stream's values, or convert them with map before.",
            where=Where(step=step),
        )
