"""A savepoint that a program makes from nothing, to seed the state of a job (C8).

It is in the canonical format, and like any other savepoint: ``processor run --from`` starts from it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX, TIMER_TABLES
from processor.errors import JobError, SettingsError, UserCodeError
from processor.ids import (
    MAX_PARALLELISM_DEFAULT,
    NO_CHECKPOINT,
    Attempt,
    CheckpointId,
    Incarnation,
    JobName,
    KeyGroupRange,
    Place,
    Position,
    SplitId,
    StepName,
    SubtaskId,
)
from processor.protocol.entries import (
    CheckpointEntry,
    JobShape,
    ReachedEventTime,
    SourceState,
    StateFile,
    SubtaskSnapshot,
)
from processor.records.batch import Key
from processor.records.key_groups import encode_key
from processor.savepoint.avro_file import write_avro
from processor.savepoint.canonical import avro_name
from processor.savepoint.held import NIL
from processor.savepoint.latest import TOGETHER_BYTES_MAX, Latest
from processor.savepoint.opened import Savepoint, open_savepoint
from processor.savepoint.tables import HeldTable
from processor.settings.stores import StoreSettings
from processor.state.declarations import State
from processor.state.value_types import ValueType, value_type
from processor.storage.decision_log import DecisionLog, Taken
from processor.storage.directory import JobStore
from processor.storage.savepoint_places import make_savepoint

_PARTS = 16
"""Temporary files over which entries are spread, so that one that comes twice is found in bounded memory."""


class NewSavepoint:
    """A savepoint being made from nothing, to seed a job's state. Without ``finish`` it is none.

    The steps, states and types are those that the job declares; what does not fit is refused when it starts.
    """

    def __init__(
        self,
        path: str,
        job: str,
        *,
        max_parallelism: int = MAX_PARALLELISM_DEFAULT,
        stores: StoreSettings | None = None,
    ) -> None:
        """``path`` may be a URI; then ``stores`` says how it is reached. Raises SettingsError when there is something
        there; Unavailable."""
        self._directory = make_savepoint(path, JobName(job), token=secrets.token_hex, stores=stores)
        self._stores = stores
        self._job = JobName(job)
        self._max_parallelism = max_parallelism
        self._stateful: dict[StepName, dict[str, str]] = {}
        self._files: list[StateFile] = []
        self._sources: dict[StepName, SourceState] = {}
        self._event_times: list[ReachedEventTime] = []

    def state(self, step: str, name: str, declared: State[Any], entries: Iterable[tuple[Key, Any]]) -> None:
        """Give a state its values by key: of a list all of its items, of a map all of its entries as a dict. A key
        that comes again replaces what came before.

        ``declared`` is what the step declares: ``MapState(str, int)``; that of ``aggregate`` is the ``ValueState`` of
        its total, by the name ``total``. Raises JobError for what does not fit, naming the key; Unavailable.
        """
        if declared.expiry is not None:
            raise JobError(
                f"state '{name}' of step '{step}' expires, and when its values were touched last is not known.",
                remedy="Declare it here without expires_after; a job that declares it with that refuses it.",
            )
        table = HeldTable(step=StepName(step), name=name, state=declared.described())
        self._once(table)
        spec = declared.spec(name)
        of = value_type(spec.kind, step=step, state=name, declared=table.state, as_bytes=spec.as_bytes)
        rows = _map_rows(entries) if table.mapped else ((key, None, value) for key, value in entries)
        self._write(table, rows, of)

    def timers(self, step: str, timers: Iterable[tuple[Key, int]], *, event_time: bool) -> None:
        """Give a step timers, as (key, time in ms): by event time, or by processing time."""
        table = HeldTable(step=StepName(step), name=TIMER_TABLES[0 if event_time else 1], state="")
        self._once(table)
        self._write(table, ((key, time_ms, None) for key, time_ms in timers), None)

    def positions(
        self, step: str, splits: Mapping[str, int], *, watermarks: Mapping[str, int] | None = None
    ) -> None:
        """Where a source goes on: for each of its splits (``topic/3``) the offset of the next record, and the largest
        event time seen. Splits that are not named are read from their beginning."""
        self._sources[StepName(step)] = SourceState(
            step=StepName(step),
            positions={SplitId(split): Position(next=offset) for split, offset in splits.items()},
            watermarks={SplitId(split): time for split, time in (watermarks or {}).items()},
        )

    def event_time(self, step: str, reached_ms: int) -> None:
        """The event time that a step with keys has reached: what is older is late, and its timers have fired."""
        everywhere = KeyGroupRange(0, self._max_parallelism)
        self._event_times.append(
            ReachedEventTime(step=StepName(step), key_groups=everywhere, watermark_ms=reached_ms)
        )

    def finish(self) -> Savepoint:
        """Write the manifest: now it is a savepoint. Raises Unavailable."""
        subtask = SubtaskSnapshot(
            subtask=SubtaskId(StepName("made"), 0),
            keyed=tuple(self._files),
            sources=tuple(self._sources.values()),
            event_times=tuple(self._event_times),
        )
        entry = CheckpointEntry(
            place=Place(1),
            attempt=Attempt(1),
            nonce=secrets.token_hex(),
            incarnation=Incarnation(secrets.token_hex(16)),
            job=self._job,
            checkpoint=CheckpointId(1),
            parent=NO_CHECKPOINT,
            taken_ms=0,
            shape=JobShape(
                max_parallelism=self._max_parallelism,
                parallelism={},
                stateful=self._stateful,
                sources=tuple(sorted(self._sources)),
            ),
            subtasks=(subtask,),
            expected=(),
        )
        return finish_savepoint(self._directory, entry, self._stores)

    def _once(self, table: HeldTable) -> None:
        states = self._stateful.setdefault(table.step, {})
        if table.name in states or any(
            (file.step, file.table) == (table.step, table.name) for file in self._files
        ):
            raise JobError(
                f"'{table.name}' of step '{table.step}' was given its entries already.",
                remedy="Give all of them at once.",
            )
        if table.state:
            states[table.name] = table.state

    def _write(self, table: HeldTable, rows: Iterable[_Row], of: ValueType | None) -> None:
        with Latest((_PARTS - 1) * TOGETHER_BYTES_MAX) as latest:
            rest = iter(rows)
            while some := list(islice(rest, BLOCK_ENTRIES_MAX)):
                places = [encode_key(place) if table.mapped else place for _, place, _ in some]
                values = [
                    NIL if of is None else encoded_value(of, value, key, place) for key, place, value in some
                ]
                latest.add([encode_key(key) for key, _, _ in some], places, values)
            ref = write_avro(
                lambda: self._directory.files.create(
                    avro_name(table.step, table.name, secrets.token_hex(16))
                ),
                lambda: map(table.form.entries, latest.left()),
                step=table.step,
                table=table.name,
                state=table.state,
            )
        if ref is not None:
            states = {table.name: table.state} if table.state else {}
            everywhere = KeyGroupRange(0, self._max_parallelism)
            self._files.append(
                StateFile(step=table.step, file=ref, key_groups=everywhere, states=states, table=table.name)
            )


_Row = tuple[Key, Any, Any]
"""A key, the key of a map's entry or a timer's time, and a value."""


def _map_rows(entries: Iterable[tuple[Key, Any]]) -> Iterator[_Row]:
    for key, found in entries:
        for place, value in found.items():
            yield key, place, value


def encoded_value(of: ValueType, value: object, key: Key, place: Any) -> msgspec.Raw:
    """In msgpack. ``place``: the key of a map's entry, or None. Raises JobError when it is not of its type."""
    try:
        if value is None and not of.nullable:
            raise of.misfit(value)
        of.check(value)
        of.verify([value])
        return msgspec.Raw(of.encode(value))
    except UserCodeError as error:
        where = f"key {key!r:.80}" if place is None else f"entry {place!r:.80} of key {key!r:.80}"
        raise JobError(f"{where} cannot be kept: {error.message}", remedy=error.remedy) from error


def finish_savepoint(directory: JobStore, entry: CheckpointEntry, stores: StoreSettings | None) -> Savepoint:
    """Write the manifest, last (R23). Raises SettingsError when somebody else did; Unavailable."""
    if not isinstance(DecisionLog(directory.log).take(entry), Taken):
        raise SettingsError(f"somebody else wrote a savepoint into '{directory.where}' at the same time.")
    return open_savepoint(directory.where, stores=stores)
