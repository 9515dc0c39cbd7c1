"""The limits of a job's checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from processor.protocol.pacing import PacingPolicy

START_TIMEOUT_MS = 600_000
"""From the first event until every subtask runs; restoring a large state belongs to it."""

COPY_TIMEOUT_MS = 3_600_000
"""For the copy of a savepoint, which may be large and go to a slow place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """Limits of the checkpoints of a job, in milliseconds; every state has a deadline (R25)."""

    pacing: PacingPolicy
    timeout_ms: int
    decision_timeout_ms: int
    publish_timeout_ms: int
    tolerated_failures: int
    max_concurrent: int = 1
    """Checkpoints that may be under way at once, from their trigger to their decision. One more may be on its
    way out."""
    start_timeout_ms: int = START_TIMEOUT_MS
    copy_timeout_ms: int = COPY_TIMEOUT_MS
