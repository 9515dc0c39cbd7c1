"""Another savepoint out of one: with states changed, or without some of them (C8)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from processor.contracts.file_store import FileStore
from processor.errors import JobError
from processor.ids import Incarnation, StepName
from processor.protocol.entries import CheckpointEntry, SubtaskSnapshot
from processor.records.batch import Key
from processor.savepoint.canonical import to_canonical
from processor.savepoint.held import HeldEntries
from processor.savepoint.new_savepoint import encoded_value, finish_savepoint
from processor.savepoint.opened import Savepoint
from processor.savepoint.tables import HeldTable, entries_of, values_as
from processor.settings.stores import StoreSettings
from processor.state.declarations import State
from processor.state.schema_text import read_state_schema
from processor.state.value_types import value_type
from processor.storage.savepoint_places import make_savepoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of the values of a state."""

    to: Callable[[Key, Any], Any]
    """Called with a key and its value, of a list with all of its items, of a map with each entry's key and value. It
    gives the value to keep; None: none is kept."""
    declared: State[Any]
    """How the state is declared from now on: as before, or with another type of values."""
    kind: Any = None
    """The type to read what was kept as, of a list that of the whole list; None: as it is declared from now on."""


def rewrite_savepoint(
    savepoint: Savepoint,
    path: str,
    *,
    changes: Mapping[tuple[str, str], Change] | None = None,
    drop: Collection[str] = (),
    written: Callable[[int], None] = lambda _: None,
    stores: StoreSettings | None = None,
) -> Savepoint:
    """Write a canonical savepoint with what another one has, whatever its format. The other one stays.

    ``changes`` are by step and state; ``drop`` names steps or, as ``step/state``, states to be left out; ``written``
    is told of so many entries more. ``path`` may be a URI; then ``stores`` says how it is reached. Raises JobError
    for what is not there and for values that do not fit, naming their keys; SettingsError when there is something at
    ``path``; DamagedFile by name; Unavailable.
    """
    entry = savepoint.entry
    if entry.records_in_flight:
        raise JobError(
            f"checkpoint {entry.checkpoint} has {entry.records_in_flight} records in flight: no savepoint has any.",
            remedy="Stop the job with a savepoint, and rewrite that.",
        )
    changed = {_found(entry, f"{step}/{state}"): change for (step, state), change in (changes or {}).items()}
    shape = _without(entry, drop)
    stateful = {step: dict(states) for step, states in shape.items()}
    for (step, state), change in changed.items():
        if state not in stateful.get(step, {}):
            raise JobError(
                f"'{step}/{state}' is to be changed, and left out.", remedy="Decide on one of both."
            )
        stateful[step][state] = _declared(change.declared, step, state, entry.shape.stateful[step][state])
    wanted = replace(entry, shape=replace(entry.shape, stateful=stateful), subtasks=_kept(entry, stateful))
    directory = make_savepoint(path, entry.job, token=secrets.token_hex, stores=stores)

    def read(files: FileStore, subtask: SubtaskSnapshot, table: HeldTable) -> Iterator[HeldEntries]:
        if table.state and (table.step, table.name) in changed:
            was = replace(table, state=entry.shape.stateful[table.step][table.name])
            yield from _changed(entries_of(files, subtask, was), was, changed[table.step, table.name], table)
        else:
            yield from entries_of(files, subtask, table)

    subtasks = to_canonical(
        wanted, savepoint.directory.files, directory.files, secrets.token_hex, written, read=read
    )
    whole = replace(
        wanted.as_savepoint(subtasks, secrets.token_hex()),
        # Another one: who started from the first has not started from this one (R3).
        incarnation=Incarnation(secrets.token_hex(16)),
    )
    return finish_savepoint(directory, whole, stores)


def _changed(
    entries: Iterator[HeldEntries], was: HeldTable, change: Change, now: HeldTable
) -> Iterator[HeldEntries]:
    spec = change.declared.spec(now.name)
    of = value_type(spec.kind, step=now.step, state=now.name, declared=now.state, as_bytes=spec.as_bytes)
    kind = of.kind if change.kind is None else change.kind
    for some in entries:
        keys: list[Key] = []
        places: list[Any] = []
        values: list[Any] = []
        for at, value in enumerate(values_as(some, was, kind)):
            told = some.places[at] if was.mapped else some.keys[at]
            made = change.to(told, value)
            if made is None:
                continue
            values.append(encoded_value(of, made, some.keys[at], told if was.mapped else None))
            keys.append(some.keys[at])
            places += [some.places[at]] if was.mapped else []
        if keys:
            yield HeldEntries(keys=keys, places=places, values=values)


def _declared(declared: State[Any], step: StepName, state: str, was: str) -> str:
    now = declared.described()
    before, after = read_state_schema(was), read_state_schema(now)
    if (before.kind, before.keys, before.expires_by) != (after.kind, after.keys, after.expires_by):
        raise JobError(
            f"'{step}/{state}' is {was}, and cannot become {now}: only the type of its values can change.",
            remedy="Make a new savepoint for a state of another kind.",
        )
    if after.expires_by:
        raise JobError(
            f"'{step}/{state}' expires, and the type of such a state is not changed here.",
            remedy="Change values within their type, or drop the state.",
        )
    return now


def _found(entry: CheckpointEntry, name: str) -> tuple[StepName, str]:
    for step, states in entry.shape.stateful.items():
        state = name.removeprefix(f"{step}/")
        if state != name and state in states:
            return step, state
    raise _not_there(entry, name)


def _without(entry: CheckpointEntry, drop: Collection[str]) -> dict[StepName, dict[str, str]]:
    stateful = {step: dict(states) for step, states in entry.shape.stateful.items()}
    for name in drop:
        if name in stateful:
            del stateful[StepName(name)]
            continue
        step, state = _found(entry, name)
        del stateful[step][state]
    return stateful


def _kept(
    entry: CheckpointEntry, stateful: Mapping[StepName, Mapping[str, str]]
) -> tuple[SubtaskSnapshot, ...]:
    """Without what hangs on steps that are left out."""
    return tuple(
        replace(
            subtask,
            keyed=tuple(held for held in subtask.keyed if held.step in stateful),
            operators=tuple(held for held in subtask.operators if held.step in stateful),
            event_times=tuple(each for each in subtask.event_times if each.step in stateful),
        )
        for subtask in entry.subtasks
    )


def _not_there(entry: CheckpointEntry, name: str) -> JobError:
    there = {str(step) for step in entry.shape.stateful}
    there |= {f"{step}/{state}" for step, states in entry.shape.stateful.items() for state in states}
    return JobError(
        f"there is no '{name}' in the savepoint.",
        remedy=f"Choose one of those that are there: {', '.join(sorted(there)) or 'none'}.",
    )
