"""Runs an author's function of a stream with keys, and of one that reaches every subtask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from processor.contracts.completion import Completion
from processor.ids import CheckpointId
from processor.operators.broadcast_context import BroadcastContext
from processor.operators.joined_completion import JoinedCompletion
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.operator import Collector, OperatorContext, OperatorSnapshot
from processor.operators.operator_state import OperatorCompletion, open_operator_states
from processor.operators.process_function import KeyedBroadcastProcess
from processor.records.batch import NO_HEADERS, NO_TIMESTAMP, Batch, Headers

W = TypeVar("W")

KEYED_INPUT: Final = 0
BROADCAST_INPUT: Final = 1


class _Broadcast:
    """The record that is broadcast, and is at hand."""

    __slots__ = ("batch", "index")

    batch: Batch[Any] | None
    index: int

    def timestamp_ms(self) -> int:
        return NO_TIMESTAMP if self.batch is None else self.batch.timestamps[self.index]

    def headers(self) -> Headers:
        return NO_HEADERS if self.batch is None else self.batch.headers_of(self.index)


class BroadcastProcessOperator(KeyedProcessOperator[W]):
    """One subtask. Records of the broadcast input change what belongs to the subtask, and emit nothing."""

    def __init__(
        self,
        make: Callable[[], KeyedBroadcastProcess[Any, Any, Any, W]],
        *,
        key_class: type[Any] | None = None,
    ) -> None:
        super().__init__(make, key_class=key_class)
        self._record = _Broadcast()

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._states = open_operator_states(context, type(self._function))
        self._states.bind(self._function)

    def on_batch(self, input: int, batch: Batch[Any], out: Collector[W]) -> None:
        if input == KEYED_INPUT:
            super().on_batch(input, batch, out)
        else:
            self._on_broadcast(batch)

    def _on_broadcast(self, batch: Batch[Any]) -> None:
        function: Any = self._function
        record, states, failures = self._record, self._states, self._failures
        context = BroadcastContext(record)
        record.batch = batch
        failed = 0
        for record.index, value in enumerate(batch.values):
            states.begin()
            try:
                function.on_broadcast(value, context)
            except Exception as error:
                if not failures.forgives(error):
                    raise failures.error(batch, record.index, error, "on_broadcast") from error
                states.undo()
                failed += 1
        record.batch = None
        failures.skipped(failed)

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        keyed = super().cut(checkpoint)
        return JoinedCompletion([keyed, OperatorCompletion(self._states.cut(checkpoint))])

    def start_anew(self) -> None:
        super().start_anew()
        self._states.start_anew()

    def decided(self, checkpoint: CheckpointId) -> None:
        super().decided(checkpoint)
        self._states.decided(checkpoint)
