"""A running total for each key, sent out anew with every record."""

from __future__ import annotations

from typing import Any

from processor.contracts.completion import Completion
from processor.contracts.state_store import KeyedState, TableSpec
from processor.ids import CheckpointId
from processor.invariant import invariant
from processor.operators.aggregates import AnyAggregate, Keyed
from processor.operators.emitted import emit_for
from processor.operators.keyed_state import cut_keyed_state, open_keyed_state
from processor.operators.operator import BaseOperator, Collector, OperatorContext, OperatorSnapshot
from processor.operators.per_record import FailurePolicy, reached, walk
from processor.records.batch import Batch
from processor.state.stored_keys import normalise
from processor.state.value_types import describe_type

TOTAL = "total"
"""Name of the one state an aggregate has."""


class RunningAggregate(BaseOperator[Keyed[Any, Any]]):
    """One result for each record, with the record's key and timestamp and without headers."""

    def __init__(self, how: AnyAggregate, *, total_type: Any) -> None:
        self._how = how
        self._total_type = total_type

    def open(self, context: OperatorContext) -> None:
        self._failures = FailurePolicy(context.step, context)
        self._state = open_keyed_state(
            context,
            [TableSpec(name=TOTAL, kind=self._total_type)],
            {TOTAL: describe_type(self._total_type)},
        )
        self._table = self._state.table(TOTAL)

    def on_batch(self, input: int, batch: Batch[Any], out: Collector[Keyed[Any, Any]]) -> None:
        invariant(batch.keys is not None, "records reach a keyed step with their keys")
        assert batch.keys is not None
        get, put = self._table.get, self._table.put
        create, add, result = self._how.create, self._how.add, self._how.result
        results: list[Keyed[Any, Any]] = []
        append = results.append
        failed: set[int] = set()
        walker = walk(batch.values)
        rest = zip(walker, normalise(batch.keys), batch.keys, strict=True)
        while True:
            try:
                for value, stored, key in rest:
                    total = get(stored)
                    total = add(create() if total is None else total, value)
                    shown = Keyed(key, result(total))
                    if total is None:
                        raise TypeError("add returned None, and a total is never None")
                    # Last, and nothing after it can fail: a record that raises has changed no total.
                    put(stored, total)
                    append(shown)
                break
            except Exception as error:
                at = reached(batch.values, walker)
                if not self._failures.forgives(error):
                    raise self._failures.error(batch, at, error, "the aggregate") from error
                failed.add(at)
        self._failures.skipped(len(failed))
        kept = [index for index in range(len(batch)) if index not in failed] if failed else None
        emit_for(batch, kept, results, out, headers=False)

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        return cut_keyed_state(self._state, checkpoint)

    def start_anew(self) -> None:
        self._state.start_anew()

    def decided(self, checkpoint: CheckpointId) -> None:
        self._state.decided(checkpoint)

    def pressed(self) -> bool:
        return self._state.pressed()

    def close(self) -> None:
        state: KeyedState | None = getattr(self, "_state", None)
        if state is not None:
            state.close()
