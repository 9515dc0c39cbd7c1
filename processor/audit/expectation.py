"""What a job's output must be, as its author says it: which fold, and how records are read for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum

Bytes = bytes | None
ItemFunction = Callable[[Bytes, Bytes], Hashable]
KeysFunction = Callable[[Bytes, Bytes], Iterable[Hashable]]
CountedFunction = Callable[[Bytes, Bytes], tuple[Hashable, int]]


class AuditKind(StrEnum):
    PASS_THROUGH = "pass-through"
    KEYED_COUNT = "keyed-count"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedState:
    """The state that holds the counts, for the invariant *State*: the step and its state's name."""

    step: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Made by ``pass_through`` or ``keyed_count`` and given to ``Job.audit``.

    Functions take key and value of a record as bytes, and decode them by themselves: nothing of the engine
    takes part. They must not fail on records that the job skips.
    """

    kind: AuditKind
    source: str | None = None
    """The step that reads the input; None: the input of all steps that read, together."""
    sink: str | None = None
    """The step that writes the output; None when the job writes in one step only."""
    group: ItemFunction | None = None
    item: ItemFunction | None = None
    keys: KeysFunction | None = None
    counted: CountedFunction | None = None
    state: CountedState | None = None


def pass_through(
    *,
    source: str | None = None,
    sink: str | None = None,
    group: ItemFunction | None = None,
    item: ItemFunction | None = None,
) -> Audit:
    """Every record comes out as it went in: key, value and headers, in the order of its key.

    Where records say themselves where they came from, ``group`` gives that (such as the input partition) and
    ``item`` their place in it; then the order of each group is looked at.
    """
    return Audit(kind=AuditKind.PASS_THROUGH, source=source, sink=sink, group=group, item=item)


def keyed_count(
    *,
    keys: KeysFunction,
    counted: CountedFunction,
    source: str | None = None,
    sink: str | None = None,
    state: CountedState | None = None,
) -> Audit:
    """Each input record counts the ``keys`` it gives (none, one, or several); every count is put out.

    ``counted`` reads the key and the count from a record of the output.
    """
    return Audit(
        kind=AuditKind.KEYED_COUNT, source=source, sink=sink, keys=keys, counted=counted, state=state
    )
