"""Runs an author's keyed function of one stream or two: state and timers of the key at hand, records in and out
in columns.

The loop over the records does four things for each: set the key's cell, call the function, note how much has
been emitted. Everything else happens once a batch, or only when the author asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from processor.contracts.clock import TimeDomain
from processor.contracts.completion import Completion
from processor.contracts.state_store import KeyedState
from processor.errors import JobError, UserCodeError, Where
from processor.ids import CheckpointId
from processor.invariant import invariant
from processor.operators.at_hand import AtHand
from processor.operators.context import Context, Timers
from processor.operators.emitted import EMIT_RECORDS_MAX, emit_for, one_each, origins
from processor.operators.keyed_state import cut_keyed_state, open_keyed_state
from processor.operators.operator import BaseOperator, Collector, OperatorContext, OperatorSnapshot
from processor.operators.per_record import FailurePolicy
from processor.operators.process_function import KeyedFunction, declared_sides, made, record_methods
from processor.operators.undo import UndoLog
from processor.records.batch import Batch, Key
from processor.state.declarations import bind, described_states, table_specs
from processor.state.expiry import Expiries
from processor.state.keyed_view import CurrentKey
from processor.state.stored_keys import author_key, normalise, normalise_key
from processor.state.sweep import Sweep

W = TypeVar("W")

TIMERS_SKIPPED = "timers_skipped"
"""Counter of timers whose ``on_timer`` raised, left out by policy."""


class _Side:
    """The running form of a side output: values, and the trigger each came from."""

    __slots__ = ("_marks", "at", "out", "values")

    def __init__(self, out: Collector[Any] | None, marks: list[int]) -> None:
        self.out = out
        self._marks = marks
        self.values: list[Any] = []
        self.at: list[int] = []

    def emit(self, value: Any) -> None:
        if self.out is not None:
            self.values.append(value)
            self.at.append(len(self._marks))

    def take_back(self) -> None:
        """Forget what the trigger at hand emitted."""
        while self.at and self.at[-1] == len(self._marks):
            self.at.pop()
            self.values.pop()


class KeyedProcessOperator(BaseOperator[W]):
    """One subtask of a keyed ``process``; each input's records go to a method of the function's own."""

    def __init__(
        self, make: Callable[[], KeyedFunction[Any, W]], *, key_class: type[Any] | None = None
    ) -> None:
        """``key_class``: the class that keys of all inputs must have. Two inputs whose keys only look alike, such
        as "1" and 1, would silently never meet."""
        function: KeyedFunction[Any, W] = made(make, KeyedFunction)
        self._function = function
        self._record_methods = record_methods(function)
        self._key_class = key_class
        self._sides: dict[str, _Side] = {}
        self._emitted: list[W] = []
        self._marks: list[int] = []
        """For each trigger done, how many values had been emitted by then."""
        self._cell = CurrentKey()

    def connect(self, sides: Mapping[str, Collector[Any]]) -> None:
        for tag in declared_sides(type(self._function)):
            side = _Side(sides.get(tag), self._marks)
            self._sides[tag] = side
            vars(self._function)[tag] = side

    def open(self, context: OperatorContext) -> None:
        kind = type(self._function)
        self._failures = FailurePolicy(context.step, context)
        self._count = context.count
        self._at_hand = AtHand(context, self._marks)
        specs = table_specs(kind)
        self._state = open_keyed_state(context, specs, described_states(kind))
        self._undo = UndoLog(self._state) if self._failures.skips else None
        self._waiting_timers: list[tuple[Callable[[Key, int], None], Key, int]] = []
        self._expiries = Expiries(self._at_hand)
        bind(self._function, self._undo or self._state, self._cell, context.step, self._expiries)
        self._sweep = Sweep(self._state, specs, self._expiries) if len(self._expiries) else None
        self._view: Context[Any, W] = Context(self._at_hand, self._timers(), self._emitted.append)

    def _timers(self) -> Timers:
        cell, timers = self._cell, self._state.timers
        if not self._failures.skips:
            return Timers(
                lambda time_ms: timers.add_event(cell.key, time_ms),
                lambda time_ms: timers.add_processing(cell.key, time_ms),
            )
        # Held back until the record is done. Nobody can ask for a timer, so nobody can tell.
        waiting = self._waiting_timers
        return Timers(
            lambda time_ms: waiting.append((timers.add_event, cell.key, time_ms)),
            lambda time_ms: waiting.append((timers.add_processing, cell.key, time_ms)),
        )

    def on_batch(self, input: int, batch: Batch[Any], out: Collector[W]) -> None:
        invariant(batch.keys is not None, "records reach a keyed step with their keys")
        assert batch.keys is not None
        if self._key_class is not None:
            self._check_keys(batch, batch.keys, self._key_class)
        self._at_hand.begin(batch, None)
        name, method = self._record_methods[input]
        records = zip(batch.values, normalise(batch.keys), strict=True)
        if self._failures.skips:
            self._failures.skipped(self._run_skipping(method, records, name))
        else:
            self._run(method, records, name)
        self._flush(batch, out)
        if self._sweep is not None:
            self._sweep.after_batch()

    def _check_keys(self, batch: Batch[Any], keys: Sequence[Key], wanted: type[Any]) -> None:
        if set(map(type, keys)) == {wanted}:
            return
        index = next(index for index, key in enumerate(keys) if type(key) is not wanted)
        raise JobError(
            f"the key {keys[index]!r:.80} is of type {type(keys[index]).__name__}, and "
            f"{type(self._function).__name__} has keys of type {wanted.__name__}.",
            remedy="Let both key_by functions in front of connect return keys of one type: others never meet.",
            where=batch.where(index, self._failures.step),
        )

    def _run(self, call: Callable[..., None], triggers: Iterable[tuple[Any, Any]], what: str) -> None:
        cell, view, emitted, mark = self._cell, self._view, self._emitted, self._marks.append
        try:
            for value, cell.key in triggers:
                call(value, view)
                mark(len(emitted))
        except Exception as error:
            raise self._error(error, what) from error
        cell.leave()

    def _run_skipping(self, call: Callable[..., None], triggers: Iterable[tuple[Any, Any]], what: str) -> int:
        """``_run`` that goes on behind a trigger that raises, as if it had not been; returns how many."""
        cell, view, emitted, marks = self._cell, self._view, self._emitted, self._marks
        failed = 0
        for value, cell.key in triggers:
            before = len(emitted)
            try:
                call(value, view)
            except Exception as error:
                if not self._failures.forgives(error):
                    raise self._error(error, what) from error
                self._take_back(before)
                failed += 1
            else:
                self._keep()
            marks.append(len(emitted))
        cell.leave()
        return failed

    def _error(self, error: Exception, what: str) -> UserCodeError:
        return self._failures.error_at(self._at_hand.where(), error, self._at_hand.describe(what))

    def _keep(self) -> None:
        if self._undo is not None:
            self._undo.keep()
        if self._waiting_timers:
            for add, key, time_ms in self._waiting_timers:
                add(key, time_ms)
            self._waiting_timers.clear()

    def _take_back(self, emitted_before: int) -> None:
        if self._undo is not None:
            self._undo.undo()
        self._waiting_timers.clear()
        del self._emitted[emitted_before:]
        for side in self._sides.values():
            side.take_back()

    def _flush(self, triggers: Batch[Any], out: Collector[W]) -> None:
        """Send on what was emitted for these triggers."""
        values, indexes = list(self._emitted), None
        if values and not one_each(self._marks, len(triggers)):
            indexes = origins(self._marks)
        sides = [(side.out, side.values, side.at) for side in self._sides.values() if side.values]
        for side in self._sides.values():
            side.values, side.at = [], []
        self._emitted.clear()
        self._marks.clear()
        self._at_hand.end()
        emit_for(triggers, indexes, values, out, headers=False)
        for side_out, side_values, at in sides:
            if side_out is not None:
                emit_for(triggers, at, side_values, side_out, headers=False)

    def on_watermark(self, time_ms: int, out: Collector[W]) -> None:
        self._at_hand.advance_event_time(time_ms)
        self._fire(TimeDomain.EVENT, self._state.timers.due_event(time_ms), out)
        self._at_hand.event_time_passed()

    def on_processing_time(self, now_ms: int, out: Collector[W]) -> None:
        now_ms = self._at_hand.advance_processing_time(now_ms)
        self._fire(TimeDomain.PROCESSING, self._state.timers.due_processing(now_ms), out)

    def _fire(self, domain: TimeDomain, due: Iterable[tuple[int, Key]], out: Collector[W]) -> None:
        due = iter(due)
        while self._fire_some(domain, due, out):
            pass

    def _fire_some(self, domain: TimeDomain, due: Iterator[tuple[int, Key]], out: Collector[W]) -> bool:
        """Call ``on_timer`` for the next due timers, up to a batch; False when none was left.

        They are taken one by one, for a timer set by one may be due before the next.
        """
        times: list[int] = []
        keys: list[Key] = []
        fired: Batch[int] = Batch(values=times, timestamps=times, keys=keys)
        self._at_hand.begin(fired, domain)
        call = self._function.on_timer
        for time_ms, key in due:
            stored = normalise_key(key)
            if self._sweep is not None:
                self._at_hand.fires(time_ms)
            times.append(time_ms)
            keys.append(author_key(stored))
            if not self._failures.skips:
                self._run(call, ((time_ms, stored),), "on_timer")
            elif self._run_skipping(call, ((time_ms, stored),), "on_timer"):
                self._count(TIMERS_SKIPPED, 1)
            if len(times) >= EMIT_RECORDS_MAX or len(self._emitted) >= EMIT_RECORDS_MAX:
                break
        if times:
            self._flush(fired, out)
        return bool(times)

    def next_processing_time_ms(self) -> int | None:
        return self._state.timers.next_processing_ms()

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        event_times, over_ms = self._at_hand.event_times(), self._expiries.over_ms()
        return cut_keyed_state(self._state, checkpoint, event_times, over_ms)

    def start_anew(self) -> None:
        self._state.start_anew()

    def decided(self, checkpoint: CheckpointId) -> None:
        self._state.decided(checkpoint)

    def completed(self, checkpoint: CheckpointId) -> None:
        self._tell(self._function.on_completed, checkpoint, "on_completed")

    def aborted(self, checkpoint: CheckpointId) -> None:
        self._tell(self._function.on_aborted, checkpoint, "on_aborted")

    def _tell(self, call: Callable[[int], None], checkpoint: CheckpointId, what: str) -> None:
        try:
            call(checkpoint)
        except Exception as error:
            where = Where(step=self._failures.step)
            raise self._failures.error_at(where, error, f"{what} of checkpoint {checkpoint}") from error

    def pressed(self) -> bool:
        return self._state.pressed()

    def close(self) -> None:
        state: KeyedState | None = getattr(self, "_state", None)
        if state is not None:
            state.close()
