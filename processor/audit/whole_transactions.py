"""Invariant 3: a reader that reads all the time sees all or none of a transaction's records in a partition.

Needs somebody who was there all the time and somebody who can tell transactions apart: tests do. What a
reader of committed records can see ends at the last stable offset, so that is what is looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from processor.audit.finding import Finding, judged
from processor.ids import SplitId

NAME = "3 whole transactions"
EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSpan:
    """The part of one transaction that lies in one partition; a producer id and epoch are one transaction
    only (R12)."""

    split: SplitId
    producer: int
    epoch: int
    first: int
    """Offset of its first record."""
    last: int
    records: int
    ends: tuple[tuple[int, bool], ...]
    """Offset of each end mark, and whether it commits; exactly one is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Where the last stable offset of a partition was at some moment."""

    split: SplitId
    stable: int


def whole_transactions_finding(spans: Sequence[TransactionSpan], samples: Iterable[Sample]) -> Finding:
    """Each span has one end; no sample lies inside of a span, but where another transaction, begun there and
    still open, holds the stable offset back: that is how far Kafka's own promise goes."""
    notes: list[str] = []
    unended = [span for span in spans if not span.ends]
    torn = [span for span in spans if len(span.ends) > 1]
    early = [span for span in spans if span.ends and span.ends[0][0] < span.last]
    for what, found in (
        ("has no end", unended),
        ("has several ends", torn),
        ("goes on after its end", early),
    ):
        notes += [f"{_name(span)} {what}" for span in found[:EXAMPLES_MAX]]
    by_split: defaultdict[SplitId, list[TransactionSpan]] = defaultdict(list)
    for span in spans:
        by_split[span.split].append(span)
    stable = {(sample.split, sample.stable) for sample in samples}
    cut = 0
    for split, at in sorted(stable):
        begun_here = any(span.first == at for span in by_split[split])
        for span in by_split[split]:
            committed = any(commits for _, commits in span.ends)
            if committed and span.first < at <= span.last and not begun_here:
                cut += 1
                notes.append(f"a reader saw {_name(span)} up to offset {at} only")
    wrong = len(unended) + len(torn) + len(early) + cut
    figures = {
        "transactions": len({(span.producer, span.epoch) for span in spans}),
        "spans": len(spans),
        "looks": len(stable),
        "open": len(unended),
        "torn": len(torn) + len(early),
        "seen in part": cut,
    }
    return judged(NAME, wrong == 0, figures, tuple(notes[:EXAMPLES_MAX]))


def _name(span: TransactionSpan) -> str:
    return (
        f"the transaction of producer {span.producer} epoch {span.epoch} in {span.split} "
        f"({span.records} records, offsets {span.first}-{span.last})"
    )
