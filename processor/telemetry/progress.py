"""How far a job has come, as one line for people: made from two pictures of it, without a clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressPicture:
    """A job at one moment."""

    taken_ms: int
    """On a monotonic clock, the same for all pictures of an attempt."""
    records_in: int
    """Read since the attempt began."""
    records_out: int
    """Published since the attempt began."""
    lag_records: int | None
    """Records that are there and not yet read; None when no source knows."""
    checkpoint: int | None
    """The newest decided checkpoint."""
    published: int | None
    """The newest published checkpoint."""
    waiting_for: str = ""
    """What holds up checkpoints (R13); "" when nothing does."""


def rate_per_s(before: ProgressPicture, now: ProgressPicture) -> float:
    """Records read per second between two pictures; 0 when no time has passed."""
    elapsed_ms = now.taken_ms - before.taken_ms
    if elapsed_ms <= 0:
        return 0.0
    return max(0, now.records_in - before.records_in) * 1_000 / elapsed_ms


def catching_up(before: ProgressPicture, now: ProgressPicture) -> bool:
    """More is waiting than a second's worth of records: a line of progress is worth its place in the log."""
    return now.lag_records is not None and now.lag_records > rate_per_s(before, now)


def worth_saying(before: ProgressPicture, now: ProgressPicture) -> bool:
    """False for an idle job without trouble: its log stays quiet."""
    return catching_up(before, now) or now.waiting_for != "" or now.records_in != before.records_in


def progress_line(before: ProgressPicture, now: ProgressPicture) -> str:
    """Records, rate, lag with the time it will take, last checkpoint, and what it waits for."""
    rate = rate_per_s(before, now)
    parts = [f"{now.records_in:,} records read", f"{rate:,.0f} records/s"]
    if now.lag_records is not None:
        parts.append(_lag(now.lag_records, rate))
    parts.append(_checkpoint(now))
    if now.waiting_for:
        parts.append(f"waiting for {now.waiting_for}")
    return ", ".join(parts)


def _lag(records: int, rate: float) -> str:
    if records == 0:
        return "caught up"
    if rate <= 0:
        return f"{records:,} behind"
    return f"{records:,} behind (about {_rough(records / rate)})"


def _checkpoint(now: ProgressPicture) -> str:
    if now.checkpoint is None:
        return "no checkpoint yet"
    if now.published == now.checkpoint:
        return f"checkpoint {now.checkpoint} published"
    return f"checkpoint {now.checkpoint} decided, {now.published or 'none'} published"


def _rough(seconds: float) -> str:
    """A duration with one unit, as precise as an estimate deserves."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3_600)} h"
