"""Runs an author's ``Transform``: records without keys, and lists that belong to the subtask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from processor.contracts.completion import Completion
from processor.errors import Where
from processor.ids import CheckpointId
from processor.operators.emitted import emit_for, emit_in_pieces, one_each, origins
from processor.operators.operator import BaseOperator, Collector, OperatorContext, OperatorSnapshot
from processor.operators.operator_state import OperatorCompletion, open_operator_states
from processor.operators.per_record import FailurePolicy
from processor.operators.process_function import made
from processor.operators.transform_function import RecordContext, Transform
from processor.records.batch import NO_HEADERS, NO_TIMESTAMP, Batch, Headers

W = TypeVar("W")


class TransformOperator(BaseOperator[W]):
    """One subtask of a ``transform``."""

    def __init__(self, make: Callable[[], Transform[Any, W]]) -> None:
        self._function: Transform[Any, W] = made(make, Transform)
        self._batch: Batch[Any] | None = None
        self._emitted: list[W] = []
        self._marks: list[int] = []
        """For each record done, how many values had been emitted by then."""
        self._view: RecordContext[W] = RecordContext(self, self._emitted.append)

    def open(self, context: OperatorContext) -> None:
        self._failures = FailurePolicy(context.step, context)
        self._states = open_operator_states(context, type(self._function))
        self._states.bind(self._function)
        try:
            self._function.on_start(context.subtask_index, context.parallelism)
        except Exception as error:
            raise self._failures.error_at(Where(step=context.step), error, "on_start") from error

    def timestamp_ms(self) -> int:
        return NO_TIMESTAMP if self._batch is None else self._batch.timestamps[len(self._marks)]

    def headers(self) -> Headers:
        return NO_HEADERS if self._batch is None else self._batch.headers_of(len(self._marks))

    def on_batch(self, input: int, batch: Batch[Any], out: Collector[W]) -> None:
        self._batch = batch
        call, view, emitted, marks = self._function.on_record, self._view, self._emitted, self._marks
        skips, states, failed = self._failures.skips, self._states, 0
        for value in batch.values:
            before = len(emitted)
            if skips:
                states.begin()
            try:
                call(value, view)
            except Exception as error:
                if not self._failures.forgives(error):
                    raise self._failures.error(batch, len(marks), error, "on_record") from error
                states.undo()
                del emitted[before:]
                failed += 1
            marks.append(len(emitted))
        self._failures.skipped(failed)
        self._flush(batch, out)

    def _flush(self, batch: Batch[Any], out: Collector[W]) -> None:
        values = list(self._emitted)
        indexes = None if one_each(self._marks, len(batch)) else origins(self._marks)
        self._emitted.clear()
        self._marks.clear()
        self._batch = None
        emit_for(replace(batch, keys=None), indexes, values, out, headers=False)

    def on_end(self, out: Collector[W]) -> None:
        try:
            self._function.on_end(self._view)
        except Exception as error:
            raise self._failures.error_at(Where(step=self._failures.step), error, "on_end") from error
        values = list(self._emitted)
        self._emitted.clear()
        if values:
            emit_in_pieces(Batch(values=values, timestamps=[NO_TIMESTAMP] * len(values)), out)

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        return OperatorCompletion(self._states.cut(checkpoint))

    def start_anew(self) -> None:
        self._states.start_anew()

    def decided(self, checkpoint: CheckpointId) -> None:
        self._states.decided(checkpoint)
