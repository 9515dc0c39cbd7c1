"""What to do with a record that cannot be handled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fail:
    """Stop at the record, naming it: nothing is lost and nothing goes past it. The default."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave the record out, count it (metric ``records_skipped``), and go on."""


Policy = Fail | Skip
