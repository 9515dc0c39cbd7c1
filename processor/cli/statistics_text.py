"""What a running job tells of its checkpoints as text for people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from processor.cli.table import aligned
from processor.contracts.checkpoint_view import (
    CheckpointSummary,
    CheckpointsView,
    DatedCheckpoint,
    Distribution,
)
from processor.protocol.checkpoint_statistics import CheckpointRecord
from processor.protocol.messages import AcknowledgementMetrics
from processor.settings.units import duration_text, size_text

HISTORY_ROWS = 20
"""Of the history, in the overview; all of it is there for programs."""

_SUMMARY_HEAD = ("", "MIN", "AVERAGE", "P50", "P90", "P95", "P99", "MAX")
_HISTORY_HEAD = (
    "CHECKPOINT",
    "ATTEMPT",
    "KIND",
    "TRIGGERED",
    "STATUS",
    "COMPLETE",
    "PUBLISHED",
    "STATE",
    "NEW",
    "OUTPUT",
)
_PARTS_HEAD = (
    "SUBTASK",
    "ACKNOWLEDGED",
    "START",
    "ALIGNMENT",
    "SYNC",
    "ASYNC",
    "STATE",
    "NEW",
    "FLIGHT",
    "OUTPUT",
    "FILES",
)


def overview_text(seen: CheckpointsView) -> str:
    """Counts, the newest of each end, a summary, the last few."""
    parts = [_titled("checkpoints of this process:", _counts(seen)), _titled("newest:", _newest(seen))]
    if seen.summary is not None:
        rows = [_SUMMARY_HEAD, *_summary(seen.summary)]
        count = seen.summary.complete_ms.count
        parts.append(_titled(f"of the last {count} that were published:", rows))
    shown = [*seen.under_way, *seen.history[:HISTORY_ROWS]]
    if shown:
        parts.append(_titled("history:", [_HISTORY_HEAD, *map(_row, shown)]))
    return "\n\n".join(part for part in parts if part)


def record_text(seen: DatedCheckpoint) -> str:
    """One checkpoint with the part of every subtask."""
    record = seen.record
    facts = [
        ("checkpoint", str(record.checkpoint)),
        ("attempt", str(record.attempt)),
        ("kind", record.kind.value),
        ("triggered", _time(seen.triggered_at_ms)),
        ("status", record.status.value),
        ("acknowledged", f"{len(record.parts)} of {record.subtasks}, {record.ended_subtasks} without input"),
        ("barriers out", _ms(record.barriers_ms)),
        ("complete", _ms(record.complete_ms)),
        ("decided", _ms(record.decided_ms)),
        ("published", _ms(record.published_ms)),
        ("state", f"{size_text(record.state_bytes)}, {size_text(record.new_state_bytes)} of it new"),
        ("in flight", _in_flight(record)),
        ("output", size_text(record.outbox_bytes)),
        ("files", str(record.files)),
    ]
    if record.savepoint:
        facts.append(("savepoint", record.savepoint))
    if record.reason:
        facts.append(("why", record.reason))
    parts = ["\n".join(aligned(facts))]
    if record.parts:
        parts.append(_titled("subtasks:", [_PARTS_HEAD, *_parts(record)]))
    return "\n\n".join(parts)


def _in_flight(record: CheckpointRecord) -> str:
    if not record.overtaken:
        return "nothing: all subtasks were aligned"
    what = f"{record.channel_records} records, {size_text(record.channel_bytes)}"
    return f"{what}, in {record.overtaken} subtasks whose barrier overtook"


def _counts(seen: CheckpointsView) -> list[tuple[str, ...]]:
    counts = seen.counts
    rows: list[tuple[str, ...]] = [
        ("triggered", str(counts.triggered)),
        ("under way", str(len(seen.under_way))),
        ("decided", str(counts.decided)),
        ("published", str(counts.published)),
        *((f"given up: {why}", str(number)) for why, number in sorted(counts.given_up.items())),
        ("left by an attempt that ended", str(counts.left)),
        ("requests refused", str(counts.refused)),
        *((f"messages ignored: {why}", str(number)) for why, number in sorted(counts.ignored.items())),
        ("attempts begun", str(counts.restored)),
    ]
    return rows


def _newest(seen: CheckpointsView) -> list[tuple[str, ...]]:
    named = (("published", seen.published), ("savepoint", seen.savepoint), ("failed", seen.failed))
    rows: list[tuple[str, ...]] = [
        (name, f"checkpoint {one.record.checkpoint}", _time(one.triggered_at_ms), one.record.reason)
        for name, one in named
        if one is not None
    ]
    if seen.restored is not None:
        restored = seen.restored.restored
        rows.append(
            (
                "restored from",
                f"checkpoint {restored.checkpoint}",
                _time(seen.restored.at_ms),
                f"by attempt {restored.attempt}",
            )
        )
    return rows


def _summary(found: CheckpointSummary) -> Iterator[tuple[str, ...]]:
    for name, quantity in (
        ("until complete", found.complete_ms),
        ("until decided", found.decided_ms),
        ("until published", found.published_ms),
        ("start delay", found.start_delay_ms),
        ("alignment", found.alignment_ms),
        ("synchronous part", found.synchronous_ms),
        ("asynchronous part", found.asynchronous_ms),
    ):
        yield (name, *(f"{value:,.0f} ms" for value in _values(quantity)))
    for name, quantity in (
        ("state", found.state_bytes),
        ("new state", found.new_state_bytes),
        ("in flight", found.channel_bytes),
        ("output", found.outbox_bytes),
    ):
        yield (name, *(f"{value:,.0f} B" for value in _values(quantity)))
    for name, quantity in (("subtasks overtaken", found.overtaken), ("files", found.files)):
        yield (name, *(f"{value:,.0f}" for value in _values(quantity)))


def _values(quantity: Distribution) -> tuple[float, ...]:
    return (
        quantity.minimum,
        quantity.average,
        quantity.p50,
        quantity.p90,
        quantity.p95,
        quantity.p99,
        quantity.maximum,
    )


def _row(seen: DatedCheckpoint) -> tuple[str, ...]:
    record = seen.record
    status = record.status.value if record.why is None else f"{record.status.value}: {record.why.value}"
    return (
        str(record.checkpoint),
        str(record.attempt),
        record.kind.value,
        _time(seen.triggered_at_ms),
        status,
        _ms(record.complete_ms),
        _ms(record.published_ms),
        size_text(record.state_bytes),
        size_text(record.new_state_bytes),
        size_text(record.outbox_bytes),
    )


def _parts(record: CheckpointRecord) -> Iterator[tuple[str, ...]]:
    for part in record.parts:
        name = f"{part.subtask}, ended" if part.finished else str(part.subtask)
        yield (name, _ms(part.acknowledged_ms), *_measured(part.metrics))


def _measured(metrics: AcknowledgementMetrics) -> tuple[str, ...]:
    return (
        _ms(metrics.start_delay_ms),
        _ms(metrics.alignment_ms),
        _ms(metrics.synchronous_ms),
        _ms(metrics.asynchronous_ms),
        size_text(metrics.state_bytes),
        size_text(metrics.new_state_bytes),
        size_text(metrics.channel_bytes) if metrics.overtaken else "aligned",
        size_text(metrics.outbox_bytes),
        str(metrics.files),
    )


def _titled(title: str, rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([title, *(f"  {line}" for line in aligned(rows))]) if rows else ""


def _ms(span_ms: int | None) -> str:
    return "-" if span_ms is None else duration_text(span_ms)


def _time(wall_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall_ms / 1_000))
