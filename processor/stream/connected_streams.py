"""Two streams with keys of one type, on their way into one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from processor.contracts.policy import Policy
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.process_function import KeyedCoProcess
from processor.operators.types import function_types, single_class
from processor.plan.graph import Step
from processor.records.batch import Key
from processor.stream.builder import JobBuilder, Port
from processor.stream.keyed_step import add_process, check_input
from processor.stream.step_class import function_class
from processor.stream.stream import Processed

K = TypeVar("K", bound=Key)
V = TypeVar("V")
R = TypeVar("R")
W = TypeVar("W")


class ConnectedStreams(Generic[K, V, R]):
    """What ``connect`` gives: the left stream has values V, the right one values R, both keys K.

    Event time is that of the slower of the two. A stream without event time has none to wait for.
    """

    def __init__(self, builder: JobBuilder, left: Port, right: Port) -> None:
        self._builder = builder
        self._left = left
        self._right = right

    def process(
        self,
        step: str,
        function: Callable[[], KeyedCoProcess[K, V, R, W]],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> Processed[W]:
        """Run a class with state and timers that both streams share: the class itself, ``functools.partial`` of
        it, or a function whose return annotation names it. Every subtask makes its own instance.
        """
        name = self._builder.name_step(step)
        cls = function_class(function, name, KeyedCoProcess)
        key_type, left_type, right_type, result_type = function_types(cls, KeyedCoProcess)
        for port, value_type, stream in (
            (self._left, left_type, "the left stream"),
            (self._right, right_type, "the right stream"),
        ):
            check_input(cls, port, name, stream, value_type=value_type, key_type=key_type)
        return add_process(
            self._builder,
            [self._left, self._right],
            Step(
                name=name,
                kind="connect",
                inputs=("left", "right"),
                make=lambda: KeyedProcessOperator(function, key_class=single_class(key_type)),
                policy=self._builder.policy(on_error, name),
                parallelism=parallelism,
            ),
            cls,
            result_type,
        )
