"""Invariant 6: where a job was started from a savepoint, its input goes on without gap or overlap."""

from __future__ import annotations

from collections.abc import Mapping

from processor.audit.finding import Finding, judged
from processor.audit.monotone import positions_of
from processor.ids import NO_CHECKPOINT, CheckpointId, SplitId
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry, Rewind

NAME = "6 savepoint seam"
FRESH = "fresh"


def seam_finding(log: LogView) -> Finding:
    """Every rewind to a savepoint: the first checkpoint after it stands where the one before it stood.

    Rewinds to the start and behind published output are the operator's choice (R3); they are counted, and
    what they double is found by the prefix fold.
    """
    notes: list[str] = []
    decided: dict[CheckpointId, CheckpointEntry] = {}
    seams = exact = behind = fresh = forgotten = 0
    rewind: Rewind | None = None
    for entry in log.entries:
        if isinstance(entry, Rewind):
            rewind = entry
        elif isinstance(entry, CheckpointEntry):
            decided[entry.checkpoint] = entry
            if rewind is None:
                continue
            seams += 1
            left = decided.get(rewind.parent)
            if rewind.origin == FRESH:
                fresh += 1
            elif left is None or entry.parent != NO_CHECKPOINT:
                forgotten += 1  # retention has taken one of the two away
            else:
                before, after = positions_of(left), positions_of(entry)
                skipped = _ahead(before, after)
                if skipped:
                    notes.append(
                        f"checkpoint {entry.checkpoint}, started from {rewind.origin}, stands "
                        f"{skipped} records ahead of checkpoint {left.checkpoint}"
                    )
                elif before == after:
                    exact += 1
                else:
                    behind += 1
            rewind = None
    figures = {"seams": seams, "exact": exact, "rewound": behind, "fresh": fresh, "forgotten": forgotten}
    return judged(NAME, not notes, figures, tuple(notes))


def _ahead(before: Mapping[SplitId, int], after: Mapping[SplitId, int]) -> int:
    """Records that nobody read: after the seam they are behind the positions, before it they were not."""
    return sum(max(0, after.get(split, 0) - position) for split, position in before.items())
