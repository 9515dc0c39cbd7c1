"""Invariant 5: no transaction is left open: what can be read reaches the end of every output partition."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from processor.audit.finding import Finding, judged
from processor.contracts.topic_reader import TopicReader
from processor.ids import SplitId

NAME = "5 nothing hangs"
POLL_INTERVAL_S = 0.1


def nothing_hangs_finding(
    reader: TopicReader,
    splits: Sequence[SplitId],
    *,
    within_s: float,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Finding:
    """Wait up to ``within_s`` for the last stable offsets to reach the ends."""
    began = monotonic()
    while True:
        # Ends first: what is committed in between must not look open.
        ends = reader.ends(splits)
        stable = reader.committed_ends(splits)
        behind = {split: ends[split] - stable[split] for split in splits if stable[split] < ends[split]}
        waited = monotonic() - began
        if not behind or waited > within_s:
            break
        sleep(POLL_INTERVAL_S)
    notes = tuple(
        f"{split} cannot be read past offset {stable[split]} of {ends[split]}: a transaction is open there"
        for split in sorted(behind)
    )
    figures: dict[str, int | str] = {
        "partitions": len(splits),
        "held back": len(behind),
        "waited": f"{waited:.1f} s",
    }
    return judged(NAME, not behind, figures, notes)
