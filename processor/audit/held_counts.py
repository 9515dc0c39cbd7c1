"""Reads the counts that a checkpoint holds, straight from its files."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import msgspec

from processor.audit.expectation import CountedState
from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import REMOVED
from processor.errors import JobError
from processor.ids import KeyGroupRange, StepName
from processor.protocol.entries import CheckpointEntry
from processor.storage.snapshot_file import read_snapshot, read_snapshot_header


def held_counts(
    entry: CheckpointEntry, files: FileStore, state: CountedState
) -> Iterator[tuple[Hashable, int]]:
    """Every key with its count. Raises DamagedFile by name; JobError when the step has no such state."""
    everything = KeyGroupRange(0, entry.shape.max_parallelism)
    declared = entry.shape.stateful.get(StepName(state.step), {})
    if state.name not in declared:
        there = [f"{step}/{name}" for step, names in entry.shape.stateful.items() for name in names]
        raise JobError(
            f"the audit names state '{state.name}' of step '{state.step}'; checkpoint {entry.checkpoint} "
            f"holds {', '.join(there) or 'none'}.",
            remedy="Correct the audit's CountedState.",
        )
    for subtask in entry.subtasks:
        counts: dict[Hashable, int] = {}
        for held in subtask.keyed:  # each file holds what changed after the one before
            if held.step != state.step:
                continue
            tables = read_snapshot_header(files, held.file).tables
            codecs: dict[str, Any] = {table.name: msgspec.Raw for table in tables}
            codecs[state.name] = int
            for block in read_snapshot(files, held.file, everything, codecs):
                if block.table == state.name:
                    counts.update(zip(block.keys, block.values, strict=True))
                elif block.table == state.name + REMOVED:
                    for key in block.keys:
                        counts.pop(key, None)
        yield from counts.items()
