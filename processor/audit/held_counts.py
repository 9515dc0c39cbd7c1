"""Reads the counts that a checkpoint holds, straight from its files."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from processor.audit.expectation import CountedState
from processor.contracts.file_store import FileStore
from processor.errors import JobError
from processor.ids import StepName
from processor.protocol.entries import CheckpointEntry
from processor.savepoint.tables import HeldTable, entries_of, values_as


def held_counts(
    entry: CheckpointEntry, files: FileStore, state: CountedState
) -> Iterator[tuple[Hashable, int]]:
    """Every key with its count. Raises DamagedFile by name; JobError when the step has no such state."""
    declared = entry.shape.stateful.get(StepName(state.step), {})
    if state.name not in declared:
        there = [f"{step}/{name}" for step, names in entry.shape.stateful.items() for name in names]
        raise JobError(
            f"the audit names state '{state.name}' of step '{state.step}'; checkpoint {entry.checkpoint} "
            f"holds {', '.join(there) or 'none'}.",
            remedy="Correct the audit's CountedState.",
        )
    table = HeldTable(step=StepName(state.step), name=state.name, state=declared[state.name])
    for subtask in entry.subtasks:
        for some in entries_of(files, subtask, table):
            yield from zip(some.keys, values_as(some, table, int), strict=True)
