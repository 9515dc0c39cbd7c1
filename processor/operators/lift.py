"""Operators made of an author's function of one record: map, filter, flat_map; and of a batch: map_batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from processor.errors import UserCodeError
from processor.invariant import invariant
from processor.operators.emitted import emit_for, one_each, origins
from processor.operators.operator import BaseOperator, Collector, OperatorContext
from processor.operators.per_record import FailurePolicy, PerRecord, reached, walk
from processor.records.batch import Batch

V = TypeVar("V")
W = TypeVar("W")

_FUNCTION = "the function"


class Map(BaseOperator[W], Generic[V, W]):
    """One value for one; key, headers and timestamp stay."""

    def __init__(self, function: Callable[[V], W]) -> None:
        self._function = function

    def open(self, context: OperatorContext) -> None:
        self._apply = PerRecord(self._function, FailurePolicy(context.step, context), _FUNCTION).apply

    def on_batch(self, input: int, batch: Batch[V], out: Collector[W]) -> None:
        done, results = self._apply(batch)
        if results:
            out.emit(done.with_values(results))


class Filter(BaseOperator[V]):
    """The records for which the function says true, whole."""

    def __init__(self, keep: Callable[[V], bool]) -> None:
        self._keep = keep

    def open(self, context: OperatorContext) -> None:
        self._apply = PerRecord(self._keep, FailurePolicy(context.step, context), _FUNCTION).apply

    def on_batch(self, input: int, batch: Batch[V], out: Collector[V]) -> None:
        done, flags = self._apply(batch)
        if all(flags):
            if flags:
                out.emit(done)
        elif any(flags):
            out.emit(done.select(flags))


class FlatMap(BaseOperator[W], Generic[V, W]):
    """Any number of values for one; each with a copy of its record's key, headers and timestamp.

    Under Skip a record whose iterable raises half-way gives nothing at all.
    """

    def __init__(self, function: Callable[[V], Iterable[W]]) -> None:
        self._function = function

    def open(self, context: OperatorContext) -> None:
        self._failures = FailurePolicy(context.step, context)

    def on_batch(self, input: int, batch: Batch[V], out: Collector[W]) -> None:
        function = self._function
        walker = walk(batch.values)
        results: list[W] = []
        marks: list[int] = []
        extend, mark = results.extend, marks.append
        failed = 0
        while True:
            try:
                for value in walker:
                    extend(function(value))
                    mark(len(results))
                break
            except Exception as error:
                if not self._failures.forgives(error):
                    at = reached(batch.values, walker)
                    raise self._failures.error(batch, at, error, _FUNCTION) from error
                del results[marks[-1] if marks else 0 :]
                mark(len(results))
                failed += 1
        self._failures.skipped(failed)
        invariant(len(marks) == len(batch), "flat_map accounts for every record")
        indexes = None if one_each(marks, len(batch)) else origins(marks)
        emit_for(batch, indexes, results, out, headers=True)


class MapBatch(BaseOperator[W], Generic[V, W]):
    """A function of a whole batch: one result a record, in order; key, headers and timestamp stay.

    How records are cut into batches is not promised, so the results must not depend on it. Under Skip a
    batch for which the function raises is given to it again, record by record: it must have no side effects.
    """

    def __init__(self, function: Callable[[Sequence[V]], Sequence[W]]) -> None:
        self._function = function

    def open(self, context: OperatorContext) -> None:
        self._failures = FailurePolicy(context.step, context)

    def on_batch(self, input: int, batch: Batch[V], out: Collector[W]) -> None:
        try:
            results = self._call(batch.values)
        except Exception as error:
            if not self._failures.forgives(error):
                raise self._error(batch, error) from error
            self._one_by_one(batch, out)
            return
        if len(results) != len(batch):
            raise UserCodeError(
                f"the function returned {len(results)} results for {len(batch)} records.",
                remedy="Return one result for each record, in order; flat_map may return fewer or more.",
                where=batch.where(0, self._failures.step),
            )
        out.emit(batch.with_values(results))

    def _call(self, values: Sequence[V]) -> Sequence[W]:
        results = self._function(values)
        return results if isinstance(results, (list, tuple)) else list(results)

    def _one_by_one(self, batch: Batch[V], out: Collector[W]) -> None:
        kept: list[int] = []
        results: list[W] = []
        for index, value in enumerate(batch.values):
            try:
                (result,) = self._call([value])
            except Exception as error:
                if not self._failures.forgives(error):
                    raise
                continue
            kept.append(index)
            results.append(result)
        self._failures.skipped(len(batch) - len(kept))
        if kept:
            out.emit(batch.take(kept).with_values(results))

    def _error(self, batch: Batch[V], error: Exception) -> UserCodeError:
        last = batch.where(len(batch) - 1).offset
        until = "" if last is None else f" of {len(batch)} records up to offset {last}"
        return self._failures.error(batch, 0, error, f"{_FUNCTION}, for a batch{until},")


class Union(BaseOperator[V]):
    """Several inputs as one; within each, order stays."""

    def on_batch(self, input: int, batch: Batch[V], out: Collector[V]) -> None:
        out.emit(batch)
