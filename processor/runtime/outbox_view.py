"""What ``processor outbox list`` shows: one row for each identity with decided output that may not be out."""

from __future__ import annotations

from dataclasses import dataclass

from processor.ids import CheckpointId, PublisherId


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxView:
    """The decided outboxes of one identity in one checkpoint, compared with its marker."""

    publisher: PublisherId
    checkpoint: CheckpointId
    rows: int
    """In all its files, in the order in which they are numbered from 1."""
    rows_published: int | None
    """By the marker, looked at without shutting anybody out; None when there is none, or none that fits."""
    bytes: int
    """Of its files."""
    problem: str = ""
    """Why it cannot be published without a decision of the operator (R14, R30); "" when it can."""
