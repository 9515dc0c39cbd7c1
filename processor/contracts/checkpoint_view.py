"""What a running job tells of its checkpoints: data for people and for programs (A18)."""

from __future__ import annotations

from dataclasses import dataclass

from processor.protocol.checkpoint_statistics import CheckpointRecord, Counts, RestoredFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Of one quantity over many checkpoints; percentiles are values that occurred (nearest rank)."""

    count: int
    minimum: int
    average: float
    p50: int
    p90: int
    p95: int
    p99: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSummary:
    """Over the published checkpoints in the history. What subtasks measure is that of the slowest one of each
    checkpoint; bytes and files are those of all subtasks together."""

    complete_ms: Distribution
    decided_ms: Distribution
    published_ms: Distribution
    start_delay_ms: Distribution
    alignment_ms: Distribution
    synchronous_ms: Distribution
    asynchronous_ms: Distribution
    overtaken: Distribution
    """Subtasks that did not wait until it was aligned (A10)."""
    channel_bytes: Distribution
    """What was in flight there."""
    state_bytes: Distribution
    new_state_bytes: Distribution
    outbox_bytes: Distribution
    files: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedCheckpoint:
    """A checkpoint with the wall time of its trigger, in milliseconds since 1970, as near as clocks agree."""

    triggered_at_ms: int
    record: CheckpointRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedRestore:
    at_ms: int
    """Wall time, in milliseconds since 1970."""
    restored: RestoredFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsView:
    """Of one process of a job, over all its attempts. Newest first; parts of subtasks are told only of the
    checkpoint that was asked for."""

    counts: Counts
    summary: CheckpointSummary | None
    """None before the first was published."""
    under_way: tuple[DatedCheckpoint, ...]
    history: tuple[DatedCheckpoint, ...]
    published: DatedCheckpoint | None
    savepoint: DatedCheckpoint | None
    failed: DatedCheckpoint | None
    restored: DatedRestore | None
    asked: DatedCheckpoint | None
    """With all its parts; None when none was asked for or it is not remembered."""
