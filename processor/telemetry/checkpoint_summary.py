"""Makes a view of a job's checkpoints out of what its coordinators wrote down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from processor.contracts.checkpoint_view import (
    CheckpointSummary,
    CheckpointsView,
    DatedCheckpoint,
    DatedRestore,
    Distribution,
)
from processor.contracts.clock import Clock
from processor.ids import CheckpointId
from processor.invariant import invariant
from processor.protocol.checkpoint_statistics import CheckpointRecord, StatisticsPicture
from processor.protocol.checkpoint_status import CheckpointStatus
from processor.protocol.messages import AcknowledgementMetrics


def view(picture: StatisticsPicture, clock: Clock, asked: CheckpointId | None) -> CheckpointsView:
    """``asked``: the checkpoint that is to be told with the parts of its subtasks."""
    to_wall_ms = clock.wall_ms() - clock.monotonic_ms()

    def dated(record: CheckpointRecord, *, whole: bool = False) -> DatedCheckpoint:
        return DatedCheckpoint(
            triggered_at_ms=record.triggered_ms + to_wall_ms,
            record=record if whole else replace(record, parts=()),
        )

    def maybe(record: CheckpointRecord | None) -> DatedCheckpoint | None:
        return None if record is None else dated(record)

    found = None if asked is None else picture.of(asked)
    restored = picture.restored
    return CheckpointsView(
        counts=picture.counts,
        summary=summary([r for r in picture.history if r.status is CheckpointStatus.COMPLETED]),
        under_way=tuple(map(dated, picture.under_way)),
        history=tuple(map(dated, picture.history)),
        published=maybe(picture.published),
        savepoint=maybe(picture.savepoint),
        failed=maybe(picture.failed),
        restored=None
        if restored is None
        else DatedRestore(at_ms=restored.at_ms + to_wall_ms, restored=restored),
        asked=None if found is None else dated(found, whole=True),
    )


def summary(published: Sequence[CheckpointRecord]) -> CheckpointSummary | None:
    """None for no checkpoints."""
    if not published:
        return None

    def over(value: Callable[[CheckpointRecord], int | None]) -> Distribution:
        return distribution([found for record in published if (found := value(record)) is not None])

    def slowest(value: Callable[[AcknowledgementMetrics], int]) -> Distribution:
        return over(lambda record: max((value(part.metrics) for part in record.parts), default=0))

    return CheckpointSummary(
        complete_ms=over(lambda record: record.complete_ms),
        decided_ms=over(lambda record: record.decided_ms),
        published_ms=over(lambda record: record.published_ms),
        start_delay_ms=slowest(lambda metrics: metrics.start_delay_ms),
        alignment_ms=slowest(lambda metrics: metrics.alignment_ms),
        synchronous_ms=slowest(lambda metrics: metrics.synchronous_ms),
        asynchronous_ms=slowest(lambda metrics: metrics.asynchronous_ms),
        overtaken=over(lambda record: record.overtaken),
        channel_bytes=over(lambda record: record.channel_bytes),
        state_bytes=over(lambda record: record.state_bytes),
        new_state_bytes=over(lambda record: record.new_state_bytes),
        outbox_bytes=over(lambda record: record.outbox_bytes),
        files=over(lambda record: record.files),
    )


def distribution(values: Sequence[int]) -> Distribution:
    """Of at least one value."""
    invariant(len(values) > 0, "a distribution is of something")
    ordered = sorted(values)

    def percentile(percent: int) -> int:
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

    return Distribution(
        count=len(ordered),
        minimum=ordered[0],
        average=round(sum(ordered) / len(ordered), 1),
        p50=percentile(50),
        p90=percentile(90),
        p95=percentile(95),
        p99=percentile(99),
        maximum=ordered[-1],
    )
