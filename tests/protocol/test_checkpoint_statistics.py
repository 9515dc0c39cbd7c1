"""What is remembered of checkpoints: counts, history, each subtask's part, the newest of each end (A1, A18)."""

from __future__ import annotations

from typing import Any

from processor.ids import CheckpointId
from processor.protocol.checkpoint_statistics import HISTORY_MAX
from processor.protocol.checkpoint_status import CheckpointStatus
from processor.protocol.coordinator_messages import DecisionTaken, DecisionUnknown, PublishedRecorded
from processor.protocol.entries import SubtaskSnapshot
from processor.protocol.failure_manager import GivenUp
from processor.protocol.messages import (
    Acknowledged,
    AcknowledgementMetrics,
    CheckpointDecided,
    CheckpointKind,
    Declined,
    SubtaskEnded,
)
from tests.protocol.coordinator_rig import ATTEMPT, READ, SUBTASKS, TIMEOUT_MS, WRITE, Rig, orders, outbox


def metrics(**more: Any) -> AcknowledgementMetrics:
    return AcknowledgementMetrics(**more)


def acknowledge(rig: Rig, checkpoint: CheckpointId, subtask, said: AcknowledgementMetrics) -> None:
    snapshot = SubtaskSnapshot(subtask=subtask, outboxes=(outbox(checkpoint),) if subtask == WRITE else ())
    rig.do(Acknowledged(attempt=ATTEMPT, checkpoint=checkpoint, snapshot=snapshot, metrics=said))


def test_a18_a_checkpoint_is_remembered_with_its_times_and_every_subtasks_part():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.SAVEPOINT, savepoint="saved")
    rig.now_ms += 40
    acknowledge(rig, checkpoint, READ, metrics(start_delay_ms=1, alignment_ms=2, state_bytes=30, files=2))
    under_way = rig.statistics.picture().under_way
    assert [(r.status, [p.subtask for p in r.parts]) for r in under_way] == [
        (CheckpointStatus.PENDING, [READ])
    ]
    rig.now_ms += 60
    acknowledge(
        rig,
        checkpoint,
        WRITE,
        metrics(
            outbox_bytes=70, new_state_bytes=5, files=1, overtaken=True, channel_records=9, channel_bytes=40
        ),
    )
    rig.now_ms += 100
    rig.do(DecisionTaken(checkpoint=checkpoint))
    rig.now_ms += 100
    rig.publish(orders(rig.said, CheckpointDecided)[-1])
    rig.now_ms += 100
    rig.do(PublishedRecorded(checkpoint=checkpoint))
    picture = rig.statistics.picture()
    (record,) = picture.history
    assert (record.status, record.attempt, record.kind) == (
        CheckpointStatus.COMPLETED,
        ATTEMPT,
        CheckpointKind.SAVEPOINT,
    )
    times = (record.barriers_ms, record.complete_ms, record.decided_ms, record.published_ms, record.over_ms)
    assert times == (0, 100, 200, 400, 400)
    assert (record.state_bytes, record.new_state_bytes, record.outbox_bytes, record.files) == (30, 5, 70, 3)
    assert (record.overtaken, record.channel_records, record.channel_bytes) == (1, 9, 40)
    assert [(part.subtask, part.acknowledged_ms) for part in record.parts] == [(READ, 40), (WRITE, 100)]
    assert record.parts[0].metrics == metrics(start_delay_ms=1, alignment_ms=2, state_bytes=30, files=2)
    assert picture.published is picture.savepoint is record
    assert picture.failed is None
    assert picture.of(checkpoint) is record


def test_a18_counts_keep_ends_and_reasons_apart_and_the_newest_of_each_stays():
    rig = Rig(tolerated=9)
    rig.complete(rig.start(number=1))
    declined = rig.start(number=2)
    rig.do(Declined(attempt=ATTEMPT, checkpoint=declined, subtask=READ, reason="disk full"))
    expired = rig.start(number=3)
    rig.after(TIMEOUT_MS)
    rig.do(Declined(attempt=ATTEMPT, checkpoint=declined, subtask=READ, reason="late"))
    picture = rig.statistics.picture()
    counts = picture.counts
    assert (counts.triggered, counts.decided, counts.published) == (3, 1, 1)
    assert counts.given_up == {"declined": 1, "expired": 1}
    assert counts.refused == 2
    assert counts.ignored == {"not pending": 1}
    assert picture.failed is not None
    assert (picture.failed.checkpoint, picture.failed.why) == (expired, GivenUp.EXPIRED)
    assert "waiting for read[0], write[0]" in picture.failed.reason
    assert [record.checkpoint for record in picture.history] == [expired, declined, declined - 1]


def test_a18_the_history_has_a_bound_and_the_newest_failed_one_outlives_it():
    rig = Rig()
    failed = rig.start()
    rig.do(Declined(attempt=ATTEMPT, checkpoint=failed, subtask=READ, reason="disk full"))
    for _ in range(HISTORY_MAX):
        rig.complete(rig.start())
    picture = rig.statistics.picture()
    assert len(picture.history) == HISTORY_MAX
    assert picture.of(failed) is picture.failed is not None
    assert failed not in [record.checkpoint for record in picture.history]


def test_a01_a18_what_was_under_way_when_the_attempt_ended_is_left_and_the_next_goes_on_counting():
    rig = Rig(concurrent=2)
    first, second = rig.start(number=1), rig.start(number=2)
    rig.acknowledge_all(first)
    rig.do(DecisionUnknown(checkpoint=first, reason="no answer"))
    picture = rig.statistics.picture()
    assert picture.under_way == ()
    assert [(r.checkpoint, r.status) for r in picture.history] == [
        (second, CheckpointStatus.LEFT),
        (first, CheckpointStatus.LEFT),
    ]
    assert picture.counts.left == 2
    rig.statistics.restored(ATTEMPT, first, rig.now_ms)
    picture = rig.statistics.picture()
    assert picture.restored is not None
    assert (picture.restored.checkpoint, picture.counts.triggered) == (first, 2)


def test_a01_an_attempt_that_is_ended_from_outside_leaves_nothing_under_way():
    rig = Rig()
    rig.start()
    rig.coordinator.close(rig.now_ms)
    assert rig.statistics.picture().under_way == ()
    assert rig.coordinator.close(rig.now_ms) == (), "once"


def test_a05_the_plan_says_who_takes_part_and_whose_input_has_ended():
    rig = Rig()
    rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=READ))
    rig.start()
    (record,) = rig.statistics.picture().under_way
    assert (record.subtasks, record.ended_subtasks) == (len(SUBTASKS), 1)
