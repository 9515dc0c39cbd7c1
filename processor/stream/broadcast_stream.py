"""A stream that reaches every subtask, and its meeting with one that has keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from processor.contracts.policy import Policy
from processor.operators.broadcast_process import BroadcastProcessOperator
from processor.operators.process_function import KeyedBroadcastProcess
from processor.operators.types import function_types, single_class
from processor.plan.graph import EdgeKind, Step
from processor.records.batch import Key
from processor.state.declarations import State
from processor.state.operator_state import BroadcastState
from processor.stream.builder import JobBuilder, Port
from processor.stream.keyed_step import add_process, check_input
from processor.stream.step_class import function_class
from processor.stream.stream import BroadcastStream, Processed

K = TypeVar("K", bound=Key)
V = TypeVar("V")
R = TypeVar("R")
W = TypeVar("W")


class BroadcastConnected(Generic[K, V, R]):
    """What ``connect_broadcast`` gives: a stream with keys K and values V, and one of values R that reaches every
    subtask.

    Event time is that of the slower of the two. A stream without event time has none to wait for.
    """

    def __init__(self, builder: JobBuilder, keyed: Port, broadcast: BroadcastStream[R]) -> None:
        self._builder = builder
        self._keyed = keyed
        self._broadcast = broadcast.port

    def process(
        self,
        step: str,
        function: Callable[[], KeyedBroadcastProcess[K, V, R, W]],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Processed[W]:
        """Run a class with state, timers and broadcast state: the class itself, ``functools.partial`` of it, or a
        function whose return annotation names it. Every subtask makes its own instance.
        """
        name = self._builder.name_step(step)
        cls = function_class(function, name, KeyedBroadcastProcess)
        key_type, value_type, broadcast_type, result_type = function_types(cls, KeyedBroadcastProcess)
        check_input(cls, self._keyed, name, "the stream", value_type=value_type, key_type=key_type)
        check_input(
            cls, self._broadcast, name, "the broadcast stream", value_type=broadcast_type, key_type=None
        )
        return add_process(
            self._builder,
            [self._keyed, self._broadcast],
            Step(
                name=name,
                kind="process",
                inputs=("keyed", "broadcast"),
                make=lambda: BroadcastProcessOperator(function, key_class=single_class(key_type)),
                policy=self._builder.policy(on_error, name),
                parallelism=parallelism,
            ),
            cls,
            result_type,
            kinds=(EdgeKind.KEYED, EdgeKind.BROADCAST),
            states=(State, BroadcastState),
        )
