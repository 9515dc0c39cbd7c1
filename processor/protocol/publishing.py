"""What to do with the marker just read: the whole of R11's table, R14's openings and R8's going back.

Pure functions, shared by every sink. The marker was read after taking over and proved fresh; only so is the
answer right. They construct the markers that are sent, for decided checkpoints only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from processor.ids import Attempt, CheckpointId, Incarnation, Marker
from processor.invariant import invariant


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send rows from ``from_row`` (counted from 0 over the decided outboxes)."""

    from_row: int


@dataclass(frozen=True, slots=True)
class Done:
    """Everything wanted is out already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopQuietly:
    """A newer attempt has taken over."""

    newer: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLoudly:
    """Log and outside system contradict each other; ``reason`` names both sides."""

    reason: str
    choose: bool = False
    """The operator may settle it: ``processor outbox publish`` or ``skip`` (R14)."""
    damaged: bool = False
    """A file that can't be read is the reason, and restoring it the remedy (R8)."""


Verdict = Send | Done | StopQuietly | StopLoudly
Sealed = Callable[[Attempt], bool]
"""Whether the decision log, read now, holds the seal of an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What should be out in the end: all ``rows`` of ``checkpoint``, published by ``attempt``."""

    incarnation: Incarnation
    attempt: Attempt
    checkpoint: CheckpointId
    rows: int

    def marker(self, rows_out: int) -> Marker:
        """The marker of the transaction after which ``rows_out`` rows are out."""
        invariant(0 <= rows_out <= self.rows, "a marker counts rows of its own checkpoint")
        return Marker(
            incarnation=self.incarnation, attempt=self.attempt, checkpoint=self.checkpoint, rows=rows_out
        )


def judge_publication(
    seen: Marker | None, *, wanted: Wanted, expected: Marker, sealed: Sealed, vouched: bool = False
) -> Verdict:
    """R11: compare the marker with the wanted and the expected one.

    ``vouched``: the operator says that nothing is out where no marker is found (R14).
    """
    if seen is None:
        if vouched:
            return Send(from_row=0)
        return StopLoudly(
            reason=f"no marker is there, but {expected} was published before checkpoint {wanted.checkpoint}: "
            "the marker topic or the consumer group that keeps it was deleted, or its retention has passed.",
            choose=True,
        )
    stop = _foreign(seen, wanted.incarnation, wanted.attempt, sealed)
    if stop is not None:
        return stop
    if seen.checkpoint == wanted.checkpoint and seen.rows <= wanted.rows:
        return Done() if seen.rows == wanted.rows else Send(from_row=seen.rows)
    if _is_expected(seen, expected):
        return Send(from_row=0)
    return StopLoudly(
        reason=f"the outside system holds {seen}; checkpoint {wanted.checkpoint} expects {expected} before it. "
        "The decision log has lost its end, or somebody else published under this identity."
    )


def judge_opening(
    seen: Marker | None,
    *,
    opening: Wanted,
    sealed: Sealed,
    unrecorded: bool,
    newest_id: CheckpointId,
    accepted: Incarnation | None = None,
    unreadable: CheckpointId | None = None,
) -> Verdict:
    """R14: an opening always writes, unless the marker is another's, or names the unreadable checkpoint (R8).

    ``unrecorded``: something decided for this identity is not recorded as published; then no marker is a
    contradiction. ``newest_id``: the highest checkpoint id in the log once it is sealed; no marker can name a
    later one, unless the log is an older copy. ``accepted``: a foreign incarnation the operator takes over from (R2).
    """
    if seen is None:
        if unrecorded:
            return StopLoudly(
                reason="no marker is there, but decided output of this identity may be unpublished: it can't be "
                "known whether it is out.",
                choose=True,
            )
        return Send(from_row=0)
    if accepted is not None and seen.incarnation == accepted:
        return Send(from_row=0)
    stop = _foreign(seen, opening.incarnation, opening.attempt, sealed)
    if stop is not None:
        return stop
    if seen.checkpoint > newest_id:
        return StopLoudly(
            reason=f"the outside system holds {seen}, but the newest checkpoint of the decision log is {newest_id}: "
            "the log has lost its end, or is an older copy."
        )
    if unreadable is not None and seen.checkpoint >= unreadable:
        return StopLoudly(
            reason=f"checkpoint {unreadable} can't be read, and some of it is published already: the outside "
            f"system holds {seen}. Going back from it would publish that twice.",
            damaged=True,
        )
    return Send(from_row=0)


def _foreign(seen: Marker, incarnation: Incarnation, attempt: Attempt, sealed: Sealed) -> Verdict | None:
    if seen.incarnation != incarnation:
        return StopLoudly(
            reason=f"the outside system holds {seen}; this decision log is incarnation {incarnation}. The log was "
            "lost, emptied or doubled, or the same job runs elsewhere."
        )
    if seen.attempt > attempt:
        if sealed(seen.attempt):
            return StopQuietly(newer=seen.attempt)
        return StopLoudly(
            reason=f"the outside system holds {seen}, but the decision log knows no attempt {seen.attempt}: "
            "the log has lost its end, or is an older copy."
        )
    return None


def _is_expected(seen: Marker, expected: Marker) -> bool:
    """The expected marker, or the same place written again by a later opening that went back to it (R8)."""
    return (
        seen.checkpoint == expected.checkpoint
        and seen.rows == expected.rows
        and seen.attempt >= expected.attempt
    )
