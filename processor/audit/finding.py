"""What the look at one invariant found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_LOOKED_AT = "not looked at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One invariant of one job. ``figures`` in the order in which they are shown."""

    invariant: str
    outcome: Outcome
    figures: Mapping[str, int | str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What is wrong, or why it was not looked at: sentences for people."""


def judged(invariant: str, holds: bool, figures: Mapping[str, int | str], notes: tuple[str, ...]) -> Finding:
    """A finding of an invariant that was looked at."""
    return Finding(
        invariant=invariant,
        outcome=Outcome.PASSED if holds else Outcome.FAILED,
        figures=figures,
        notes=notes,
    )


def not_looked_at(invariant: str, why: str) -> Finding:
    return Finding(invariant=invariant, outcome=Outcome.NOT_LOOKED_AT, notes=(why,))
