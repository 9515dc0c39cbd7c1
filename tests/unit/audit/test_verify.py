"""The whole audit on topics that are lists: right ones pass, each planted fault is told by its invariant."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import cast

from processor.audit import keyed_count, pass_through
from processor.audit.finding import Outcome
from processor.audit.nothing_hangs import nothing_hangs_finding
from processor.audit.state import state_finding
from processor.audit.verify import Evidence, verify
from processor.contracts.file_store import FileStore
from processor.ids import CheckpointId, EdgeName, FileRef, JobName, KeyGroupRange, SplitId, StepName
from processor.protocol.entries import ChannelFile, CheckpointEntry
from tests.unit.audit.test_log_invariants import checkpoint, log, published, seal
from tests.unit.audit.topics import ListedTopics

INPUT = [[(b"a", b"a"), (b"b", b"b"), (b"a", b"a")], [(b"b", b"b")]]
COUNTS = [[(b"a", b"a1"), (b"a", b"a2")], [(b"b", b"b1"), (b"b", b"b2")]]
COUNT = keyed_count(
    keys=lambda key, value: [value], counted=lambda key, value: ((value or b"")[:1], int((value or b"")[1:]))
)


def evidence(output: list[list[tuple[bytes, bytes]]], **changes: object) -> Evidence:
    topics = ListedTopics(topics={"in": INPUT, "out": output})
    plain = Evidence(
        job=JobName("job"),
        audit=COUNT,
        log=log(seal(1, 1), checkpoint(2, 1, 1, 0, {"in/0": 3, "in/1": 1})),
        published=published(1),
        files=cast(FileStore, None),  # no state is named, so no file is read
        inputs=topics,
        outputs=topics,
        targets=("out",),
        hang_limit_s=0.0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_the_right_counts_pass() -> None:
    report = verify(evidence(COUNTS))
    assert report.passed, report.text()
    assert report.figure("1", "records in") == 4
    assert report.figure("1", "found") == 4
    assert "audit of job 'job': passed" in report.text()


def test_a_lost_and_a_doubled_record_fail_by_name() -> None:
    lost = verify(evidence([COUNTS[0][:1], COUNTS[1]]))
    assert not lost.passed
    assert lost.figure("1", "losses") == 1
    assert "FAILED" in lost.text()
    doubled = verify(evidence([COUNTS[0], [*COUNTS[1], (b"b", b"b2")]]))
    assert doubled.figure("1", "duplicates") == 1
    assert "out/1 offset 2 is duplicate" in doubled.text()


def test_a_record_the_audit_cannot_read_is_invented() -> None:
    report = verify(evidence([COUNTS[0], [*COUNTS[1], (b"x", b"xx")]]))
    assert report.figure("1", "invented") == 1


def test_output_beyond_the_checkpoint_is_right_only_while_the_job_runs() -> None:
    earlier = log(seal(1, 1), checkpoint(2, 1, 1, 0, {"in/0": 2, "in/1": 1}))
    assert not verify(evidence(COUNTS, log=earlier)).passed
    running = verify(evidence(COUNTS, log=earlier, running=True))
    assert running.passed
    assert running.figure("1", "ahead") == 1


def test_output_that_began_at_a_later_position() -> None:
    later = [[(b"a", b"a2")], [(b"b", b"b2")]]
    report = verify(evidence(later, starts={SplitId("in/0"): 2, SplitId("in/1"): 0}))
    assert report.passed, report.text()
    assert report.figure("1", "expected out") == 2


def test_a_copy_keeps_the_order_of_each_key() -> None:
    right = [[(b"a", b"1"), (b"a", b"2")], [(b"b", b"1")]]
    topics = ListedTopics(topics={"in": right, "out": right})
    positions = log(seal(1, 1), checkpoint(2, 1, 1, 0, {"in/0": 2, "in/1": 1}))
    whole = evidence(COUNTS, audit=pass_through(), inputs=topics, outputs=topics, log=positions)
    assert verify(whole).passed
    turned = ListedTopics(topics={"out": [right[0][::-1], right[1]]})
    assert verify(replace(whole, outputs=turned)).figure("1", "out of order") == 1


def test_a_key_of_two_input_partitions_has_no_order_to_keep() -> None:
    mixed = [[(b"a", b"1")], [(b"a", b"2")]]
    topics = ListedTopics(topics={"in": mixed, "out": [[(b"a", b"2"), (b"a", b"1")]]})
    positions = log(seal(1, 1), checkpoint(2, 1, 1, 0, {"in/0": 1, "in/1": 1}))
    report = verify(evidence(COUNTS, audit=pass_through(), inputs=topics, outputs=topics, log=positions))
    assert report.passed, report.text()


def test_input_that_is_no_longer_kept_is_said_and_not_guessed() -> None:
    topics = ListedTopics(topics={"in": INPUT, "out": COUNTS}, first={"in/0": 1})
    report = verify(evidence(COUNTS, inputs=topics))
    assert report.findings[0].outcome is Outcome.NOT_LOOKED_AT
    assert "no longer kept" in report.text()


def test_a_job_that_decided_nothing_has_nothing_to_look_at() -> None:
    report = verify(evidence(COUNTS, log=log(seal(1, 1))))
    assert report.findings[0].outcome is Outcome.NOT_LOOKED_AT


def test_an_open_transaction_hangs_when_its_time_is_over() -> None:
    topics = ListedTopics(topics={"out": COUNTS}, open={"out/1": 1})
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now > 2.0:
            topics.open.clear()  # it ends after two seconds

    def outcome(within_s: float) -> Outcome:
        splits = topics.splits("out")
        return nothing_hangs_finding(
            topics, splits, within_s=within_s, monotonic=lambda: now, sleep=sleep
        ).outcome

    assert outcome(1.0) is Outcome.FAILED
    now = 0.0
    topics.open["out/1"] = 1
    assert outcome(3.0) is Outcome.PASSED


def test_a_wrong_a_missing_and_an_extra_count_in_a_checkpoint_are_found() -> None:
    topics = ListedTopics(topics={"in": INPUT})
    positions = {CheckpointId(1): {SplitId("in/0"): 3, SplitId("in/1"): 1}}
    assert COUNT.keys is not None
    right: list[tuple[Hashable, int]] = [(b"a", 2), (b"b", 2)]
    passed = state_finding(COUNT.keys, topics, positions, lambda checkpoint: right)
    assert passed.outcome is Outcome.PASSED
    assert passed.figures["entries"] == 2
    faults: list[list[tuple[Hashable, int]]] = [
        [(b"a", 2), (b"b", 3)],
        [(b"a", 2)],
        [*right, (b"c", 1)],
        [*right, (b"a", 2)],
    ]
    for wrong in faults:
        found = state_finding(COUNT.keys, topics, positions, {CheckpointId(1): wrong}.__getitem__)
        assert found.outcome is Outcome.FAILED
        assert found.figures["wrong"] == 1


def in_flight(entry: CheckpointEntry, records: int) -> CheckpointEntry:
    """The same checkpoint, with so many records in flight."""
    held = ChannelFile(
        edge=EdgeName(origin=StepName("by-key"), output="", target=StepName("count"), input=0),
        file=FileRef(name="c", bytes=1, sha256=""),
        key_groups=KeyGroupRange(0, 128),
        records=records,
    )
    return replace(entry, subtasks=(replace(entry.subtasks[0], channels=(held,)),))


def test_what_is_in_flight_is_no_loss_and_what_is_out_before_it_is_known_right() -> None:
    whole = checkpoint(2, 1, 1, 0, {"in/0": 2, "in/1": 1})
    ahead = in_flight(checkpoint(3, 1, 2, 1, {"in/0": 3, "in/1": 1}), 1)
    not_yet = [COUNTS[0][:1], COUNTS[1]]
    report = verify(evidence(not_yet, log=log(seal(1, 1), whole, ahead), published=published(2)))
    assert report.passed, report.text()
    assert report.figure("1", "records in") == 3
    lost = verify(evidence([[], COUNTS[1]], log=log(seal(1, 1), whole, ahead), published=published(2)))
    assert lost.figure("1", "losses") == 1


def test_of_a_job_that_was_stopped_nothing_may_be_left_in_flight() -> None:
    whole = checkpoint(2, 1, 1, 0, {"in/0": 2, "in/1": 1})
    last = replace(in_flight(checkpoint(3, 1, 2, 1, {"in/0": 3, "in/1": 1}), 1), stop=True)
    not_all = [COUNTS[0][:1], COUNTS[1]]
    report = verify(evidence(not_all, log=log(seal(1, 1), whole, last), published=published(2)))
    assert report.figure("1", "losses") == 1


def test_with_something_in_flight_in_every_checkpoint_the_fold_is_not_known() -> None:
    only = in_flight(checkpoint(2, 1, 1, 0, {"in/0": 3, "in/1": 1}), 1)
    report = verify(evidence(COUNTS, log=log(seal(1, 1), only)))
    assert "every checkpoint in the log holds records in flight" in report.text()
