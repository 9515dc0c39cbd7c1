"""Invariant 4: checkpoints and positions never go back; nothing of a fenced attempt is decided."""

from __future__ import annotations

from collections.abc import Mapping

from processor.audit.finding import Finding, judged
from processor.ids import CheckpointId, SplitId
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry, Published, Rewind, Seal

NAME = "4 monotone"
EXAMPLES_MAX = 5


def monotone_finding(log: LogView, published: Published | None) -> Finding:
    """Look at every entry that is kept."""
    notes: list[str] = []
    sealed = 0
    highest = 0
    last: dict[CheckpointId, Mapping[SplitId, int]] = {}
    backwards = 0
    for entry in log.entries:
        if entry.attempt < sealed:
            notes.append(f"place {entry.place} is by attempt {entry.attempt}, after attempt {sealed} sealed")
        if isinstance(entry, Seal):
            if entry.attempt <= sealed:
                notes.append(f"place {entry.place} seals attempt {entry.attempt}, after attempt {sealed}")
            sealed = max(sealed, entry.attempt)
        elif isinstance(entry, Rewind):
            last.clear()
        else:
            if entry.checkpoint <= highest:
                notes.append(f"place {entry.place} decides checkpoint {entry.checkpoint}, after {highest}")
            highest = max(highest, entry.checkpoint)
            positions = positions_of(entry)
            for split, before in last.get(entry.parent, {}).items():
                if positions.get(split, before) < before:
                    backwards += 1
                    notes.append(
                        f"checkpoint {entry.checkpoint} has {split} at {positions[split]}, "
                        f"its parent {entry.parent} at {before}"
                    )
                elif split not in positions:
                    backwards += 1
                    notes.append(f"checkpoint {entry.checkpoint} has lost the position of {split}")
            last[entry.checkpoint] = positions
    if published is not None and published.checkpoint > log.newest_id:
        notes.append(f"checkpoint {published.checkpoint} is recorded as published and was never decided")
    figures = {
        "entries": len(log.entries),
        "attempts": sum(isinstance(entry, Seal) for entry in log.entries),
        "newest checkpoint": int(log.newest_id),
        "positions that went back": backwards,
    }
    return judged(NAME, not notes, figures, tuple(notes[:EXAMPLES_MAX]))


def positions_of(entry: CheckpointEntry, step: str | None = None) -> dict[SplitId, int]:
    """Next offsets of all splits of a checkpoint, or of one source step."""
    return {
        split: position.next
        for subtask in entry.subtasks
        for source in subtask.sources
        if step is None or source.step == step
        for split, position in source.positions.items()
    }
