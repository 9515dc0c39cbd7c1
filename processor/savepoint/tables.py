"""The tables of a step as a checkpoint or savepoint holds them, in whatever form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import TIMER_TABLES
from processor.errors import JobError
from processor.ids import StepName
from processor.protocol.entries import CheckpointEntry, SubtaskSnapshot
from processor.savepoint.avro_file import read_avro
from processor.savepoint.held import HeldEntries, TableForm, held_tables
from processor.state.operator_state import REDISTRIBUTIONS, Redistribution
from processor.state.schema_text import read_state_schema
from processor.state.type_schema import MAP


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTable:
    """One state of a step, or its timers of one kind."""

    step: StepName
    name: str
    state: str
    """The schema of the state in text; "" for timers."""

    @property
    def mapped(self) -> bool:
        """Whether each entry has a key of its own."""
        return bool(self.state) and read_state_schema(self.state).kind == MAP

    @property
    def form(self) -> TableForm:
        return TableForm(timers=not self.state, mapped=self.mapped)

    @property
    def redistribution(self) -> Redistribution | None:
        """Of state that belongs to subtasks and to no key: its keys are places in a list, or those of a map."""
        return REDISTRIBUTIONS.get(read_state_schema(self.state).kind) if self.state else None


def tables_of(entry: CheckpointEntry, step: StepName, *, keyed: bool) -> tuple[HeldTable, ...]:
    """The states of a step by name, then its timers; or those that belong to its subtasks."""
    states = sorted(entry.shape.stateful.get(step, {}).items())
    named = (HeldTable(step=step, name=name, state=schema) for name, schema in states)
    found = tuple(table for table in named if (table.redistribution is None) is keyed)
    timers = (HeldTable(step=step, name=name, state="") for name in TIMER_TABLES)
    return (*found, *timers) if keyed else found


def entries_of(
    files: FileStore, subtask: SubtaskSnapshot, table: HeldTable, *, plain: bool = False
) -> Iterator[HeldEntries]:
    """What a table holds in one subtask, each entry once; ``plain``: values are wanted as msgpack has them. Nothing
    may be trusted before the iterator has ended.

    Raises DamagedFile by name; Unavailable.
    """
    for _, some in all_entries_of(files, subtask, (table,), plain=plain):
        yield some


def all_entries_of(
    files: FileStore, subtask: SubtaskSnapshot, tables: Sequence[HeldTable], *, plain: bool = False
) -> Iterator[tuple[HeldTable, HeldEntries]]:
    """``entries_of`` of tables of one step that are kept together: each file is read once."""
    first = tables[0]
    owned = subtask.keyed if first.redistribution is None else subtask.operators
    chain = [held for held in owned if held.step == first.step]
    named = {table.name: table for table in tables}
    if chain and not any(held.table for held in chain):
        forms = {table.name: table.form for table in tables}
        for name, some in held_tables(files, chain, forms, plain=plain):
            yield named[name], some
        return
    for held in chain:
        table = named.get(held.table)
        if table is not None:
            for some in read_avro(files, held.file, step=table.step, table=table.name, state=table.state):
                yield table, some


def values_as(some: HeldEntries, table: HeldTable, kind: Any) -> list[Any]:
    """The values of some entries as of ``kind``. Raises JobError when they cannot be."""
    try:
        return some.read_as(kind)
    except msgspec.ValidationError as error:
        raise JobError(
            f"state '{table.name}' of step '{table.step}' was written as {table.state} and cannot be read as the "
            f"type {kind!r:.80}: {error}.",
            remedy="Give the type it was written as, one that reads it, or none.",
        ) from error
