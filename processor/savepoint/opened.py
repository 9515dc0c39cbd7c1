"""A savepoint, or the directory of a job, opened for looking: nothing is written, and nobody is disturbed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from processor.contracts.snapshot_format import TIMER_TABLES
from processor.errors import DamagedFile, JobError
from processor.ids import StepName
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry
from processor.records.batch import Key
from processor.savepoint.expiring import without_times
from processor.savepoint.tables import HeldTable, entries_of, values_as
from processor.settings.stores import StoreSettings
from processor.state.operator_state import Redistribution
from processor.state.schema_text import read_state_schema
from processor.state.stored_keys import StoredKey, author_key, normalise_key
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import JobStore
from processor.storage.disk import Disk
from processor.storage.identity import IDENTITY
from processor.storage.savepoint_places import look_into


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldState:
    """A declared state of a step."""

    step: str
    name: str
    kind: str
    """Description of the type of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTimer:
    """A timer that has yet to fire."""

    key: Key
    time_ms: int
    event_time: bool
    """By event time; else by processing time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """What a savepoint holds. The job's code is not needed: values come as msgpack has them (records as dicts),
    unless their type is given."""

    directory: JobStore = field(repr=False)
    """Where it is."""
    log: DecisionLog = field(repr=False)
    view: LogView = field(repr=False)
    entry: CheckpointEntry

    @property
    def states(self) -> tuple[HeldState, ...]:
        """Of all steps, by step and name."""
        return tuple(
            HeldState(step=step, name=name, kind=kind)
            for step, states in sorted(self.entry.shape.stateful.items())
            for name, kind in sorted(states.items())
        )

    def table(self, step: str, state: str) -> HeldTable:
        """Raises JobError for a state that is not there, naming those that are."""
        found = next((held for held in self.states if (held.step, held.name) == (step, state)), None)
        if found is None:
            there = ", ".join(f"{held.step}/{held.name}" for held in self.states) or "none"
            raise JobError(
                f"there is no state '{state}' of step '{step}' in '{self.directory.where}'.",
                remedy=f"Choose one of those that are there: {there}.",
            )
        return HeldTable(step=StepName(step), name=state, state=found.kind)

    def read(self, step: str, state: str, kind: Any = Any) -> Iterator[tuple[Key, Any]]:
        """Every key with its value, in no order to rely on; ``kind`` is the type to read values as. The value of
        a map is a dict, and ``kind`` the type of the values in it. Of state that expires, what is over may be there.
        An item of a list that belongs to a subtask comes under (subtask, place), and of type ``kind``.

        Of maps, those of one subtask are in memory at a time. Raises JobError for a state that is not there, naming
        those that are, and for values that cannot be read as ``kind``; DamagedFile by name.
        """
        table = self.table(step, state)
        if table.redistribution is not None:
            return _of_subtasks(self, table, kind, alike=table.redistribution is Redistribution.SAME)
        read = _maps if table.mapped else _values
        return read(self, table, kind)

    def timers(self, step: str) -> Iterator[HeldTimer]:
        """Every timer of a step, in no order to rely on. Raises like ``read``."""
        if step not in self.entry.shape.stateful:
            there = ", ".join(sorted(self.entry.shape.stateful)) or "none"
            raise JobError(
                f"there is no step '{step}' with state in '{self.directory.where}'.",
                remedy=f"Choose one of those that are there: {there}.",
            )
        event, _ = TIMER_TABLES
        for name in TIMER_TABLES:
            table = HeldTable(step=StepName(step), name=name, state="")
            for subtask in self.entry.subtasks:
                for some in entries_of(self.directory.files, subtask, table):
                    for key, time_ms in zip(some.keys, some.places, strict=True):
                        yield HeldTimer(key=key, time_ms=time_ms, event_time=name == event)


def _values(savepoint: Savepoint, table: HeldTable, kind: Any) -> Iterator[tuple[Key, Any]]:
    kept_as, untimed = without_times(read_state_schema(table.state), kind)
    for subtask in savepoint.entry.subtasks:
        for some in entries_of(savepoint.directory.files, subtask, table):
            values = values_as(some, table, kept_as)
            yield from zip(some.keys, values if untimed is None else map(untimed, values), strict=True)


def _maps(savepoint: Savepoint, table: HeldTable, kind: Any) -> Iterator[tuple[Key, dict[Key, Any]]]:
    kept_as, untimed = without_times(read_state_schema(table.state), kind)
    for subtask in savepoint.entry.subtasks:
        held: dict[StoredKey, dict[Key, Any]] = {}
        for some in entries_of(savepoint.directory.files, subtask, table):
            values = values_as(some, table, kept_as)
            entries = zip(map(normalise_key, some.keys), some.places, values, strict=True)
            for key, place, value in entries:
                held.setdefault(key, {})[place] = value if untimed is None else untimed(value)
        for stored, found in held.items():
            yield author_key(stored), found


def _of_subtasks(
    savepoint: Savepoint, table: HeldTable, kind: Any, *, alike: bool
) -> Iterator[tuple[Key, Any]]:
    """Of a list every item under (subtask, place); of what all have alike that of the first."""
    owners = [
        subtask
        for subtask in savepoint.entry.subtasks
        if any(held.step == table.step for held in subtask.operators)
    ]
    owners.sort(key=lambda subtask: subtask.subtask.index)
    for subtask in owners[:1] if alike else owners:
        for some in entries_of(savepoint.directory.files, subtask, table):
            for key, value in zip(some.keys, values_as(some, table, kind), strict=True):
                yield (key if alike else (subtask.subtask.index, cast(int, key))), value


def open_savepoint(
    path: str,
    *,
    token: Callable[[], str] = secrets.token_hex,
    disk: Disk | None = None,
    stores: StoreSettings | None = None,
) -> Savepoint:
    """Open the savepoint, or the newest checkpoint of what is kept for a job, at a path or URI; ``stores`` says how
    object stores are reached.

    Raises JobError when there is none; SettingsError, DamagedFile by name; Unavailable.
    """
    directory = look_into(path, token=token, disk=disk, stores=stores)
    if directory is None:
        raise JobError(
            f"'{path}' is neither a savepoint nor a job's checkpoint directory.",
            remedy="Give the directory that 'processor savepoint take' wrote, or one below a checkpoint.directory.",
        )
    log = DecisionLog(directory.log)
    view = log.read_all()
    entry = view.newest()
    if entry is None:
        raise JobError(
            f"'{path}' holds no whole checkpoint: a savepoint without its last file is not one.",
            remedy="Take the savepoint again.",
        )
    if directory.job != entry.job:
        raise DamagedFile(
            f"'{directory.where}/{IDENTITY}' says that this is of job '{directory.job}', and its checkpoints are of "
            f"job '{entry.job}'.",
            remedy="Restore that file from a copy.",
        )
    return Savepoint(directory=directory, log=log, view=view, entry=entry)
