"""How far a job has come, as one line for people: made from two pictures of it, without a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from processor.ids import StepName

PERCENT_SHOWN_MIN: Final = 10
"""Of the time: what holds a step up less than that is no news."""

STEPS_SHOWN_MAX: Final = 3


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
    back_pressured_ms: Mapping[StepName, float] = field(default_factory=dict)
    """By chain: how long it was kept from taking records by what is behind it, in the mean of its subtasks."""


def rate_per_s(before: ProgressPicture, now: ProgressPicture) -> float:
    """Records read per second between two pictures; 0 when no time has passed."""
    elapsed_ms = now.taken_ms - before.taken_ms
    if elapsed_ms <= 0:
        return 0.0
    return max(0, now.records_in - before.records_in) * 1_000 / elapsed_ms


def back_pressure(before: ProgressPicture, now: ProgressPicture) -> dict[StepName, float]:
    """By chain: percent of the time between two pictures in which it was kept from taking records. Slow is the one
    behind those that have much of it: it has none itself."""
    elapsed_ms = now.taken_ms - before.taken_ms
    if elapsed_ms <= 0:
        return {}
    return {
        # What workers have told of late may be of before.
        step: min(100.0, 100 * (held_ms - before.back_pressured_ms.get(step, 0)) / elapsed_ms)
        for step, held_ms in now.back_pressured_ms.items()
    }


def catching_up(before: ProgressPicture, now: ProgressPicture) -> bool:
    """More is waiting than a second's worth of records: a line of progress is worth its place in the log."""
    return now.lag_records is not None and now.lag_records > rate_per_s(before, now)


def worth_saying(before: ProgressPicture, now: ProgressPicture) -> bool:
    """False for an idle job without trouble: its log stays quiet."""
    moved = now.records_in != before.records_in
    return catching_up(before, now) or now.waiting_for != "" or moved or _held_up(before, now) != ""


def progress_line(before: ProgressPicture, now: ProgressPicture) -> str:
    """Records, rate, lag with the time it will take, last checkpoint, back-pressure, and what it waits for."""
    rate = rate_per_s(before, now)
    parts = [f"{now.records_in:,} records read", f"{rate:,.0f} records/s"]
    if now.lag_records is not None:
        parts.append(_lag(now.lag_records, rate))
    parts.append(_checkpoint(now))
    if held_up := _held_up(before, now):
        parts.append(f"back-pressure on {held_up}")
    if now.waiting_for:
        parts.append(f"waiting for {now.waiting_for}")
    return ", ".join(parts)


def _lag(records: int, rate: float) -> str:
    if records == 0:
        return "caught up"
    if rate <= 0:
        return f"{records:,} behind"
    return f"{records:,} behind (about {_rough(records / rate)})"


def _held_up(before: ProgressPicture, now: ProgressPicture) -> str:
    """The steps with most back-pressure; "" when there is hardly any."""
    found = sorted(back_pressure(before, now).items(), key=lambda one: one[1], reverse=True)
    shown = [
        f"'{step}' {percent:.0f} %"
        for step, percent in found[:STEPS_SHOWN_MAX]
        if percent >= PERCENT_SHOWN_MIN
    ]
    return ", ".join(shown)


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
