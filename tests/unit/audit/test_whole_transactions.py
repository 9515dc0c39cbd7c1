"""A transaction seen in part, left open or ended twice is found; Kafka's own limit is not held against us."""

from __future__ import annotations

from processor.audit.finding import Outcome
from processor.audit.whole_transactions import Sample, TransactionSpan, whole_transactions_finding
from processor.ids import SplitId

SPLIT = SplitId("out/0")


def span(epoch: int, first: int, last: int, *ends: tuple[int, bool]) -> TransactionSpan:
    return TransactionSpan(
        split=SPLIT, producer=1, epoch=epoch, first=first, last=last, records=last - first + 1, ends=ends
    )


def at(*offsets: int) -> list[Sample]:
    return [Sample(split=SPLIT, stable=offset) for offset in offsets]


def test_looks_between_transactions_pass() -> None:
    finding = whole_transactions_finding([span(1, 0, 4, (5, True)), span(2, 6, 9, (10, True))], at(0, 6, 11))
    assert finding.outcome is Outcome.PASSED
    assert finding.figures["looks"] == 3


def test_a_look_into_a_transaction_is_found() -> None:
    finding = whole_transactions_finding([span(1, 0, 4, (5, True))], at(3))
    assert finding.outcome is Outcome.FAILED
    assert finding.figures["seen in part"] == 1


def test_a_transaction_cut_by_an_older_open_one_is_as_far_as_kafka_goes() -> None:
    # Two sinks write into one partition: the reader stops where the older, still open transaction begins.
    spans = [span(1, 0, 7, (9, True)), span(2, 4, 8, (10, True))]
    assert whole_transactions_finding(spans, at(4)).outcome is Outcome.PASSED
    assert whole_transactions_finding(spans, at(5)).outcome is Outcome.FAILED


def test_an_aborted_transaction_is_seen_by_nobody() -> None:
    assert whole_transactions_finding([span(1, 0, 4, (5, False))], at(2)).outcome is Outcome.PASSED


def test_r12_a_transaction_without_an_end_or_with_two_is_found() -> None:
    assert whole_transactions_finding([span(1, 0, 4)], []).figures["open"] == 1
    torn = whole_transactions_finding([span(1, 0, 9, (5, True), (10, True))], [])
    assert torn.outcome is Outcome.FAILED
    assert whole_transactions_finding([span(1, 0, 9, (5, True))], []).figures["torn"] == 1
