"""What a worker process has counted, as part of its heartbeat."""

from __future__ import annotations

from processor.protocol.worker_messages import Counted
from processor.telemetry.metrics import MetricsSnapshot, Series


def counted(snapshot: MetricsSnapshot) -> tuple[tuple[Counted, ...], tuple[Counted, ...]]:
    """Counters and gauges."""
    return (
        tuple(Counted(step=s.step, name=s.name, value=value) for s, value in snapshot.counters.items()),
        tuple(Counted(step=s.step, name=s.name, value=value) for s, value in snapshot.gauges.items()),
    )


def snapshot_of(counters: tuple[Counted, ...], gauges: tuple[Counted, ...]) -> MetricsSnapshot:
    """Inverse of ``counted``."""
    return MetricsSnapshot(
        counters={Series(told.step, told.name): int(told.value) for told in counters},
        gauges={Series(told.step, told.name): told.value for told in gauges},
    )
