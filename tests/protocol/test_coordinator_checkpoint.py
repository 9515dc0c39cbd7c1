"""One checkpoint after another: triggered, collected, decided, published, completed (A1-A6, A12, A14)."""

from __future__ import annotations

import pytest

from processor.errors import EngineBug
from processor.ids import CheckpointId, PublisherId, StepName
from processor.protocol.coordinator_messages import (
    Answer,
    Broadcast,
    CopySavepoint,
    Decide,
    DecisionLost,
    DecisionTaken,
    EndJob,
    FencedByLog,
    PublishedRecorded,
    RecordPublished,
    Retain,
    SavepointCopied,
)
from processor.protocol.entries import SubtaskSnapshot
from processor.protocol.messages import (
    Acknowledged,
    CheckpointCompleted,
    CheckpointDecided,
    CheckpointKind,
    HoldSources,
    InjectBarrier,
    PublicationDone,
    SubtaskEnded,
    SubtaskPressed,
    SubtaskRunning,
)
from processor.protocol.pending_checkpoint import Request
from processor.protocol.request_queue import REQUESTS_MAX
from tests.protocol.coordinator_rig import (
    ATTEMPT,
    INTERVAL_MS,
    JOB,
    READ,
    RESTORED,
    SINK,
    SUBTASKS,
    WRITE,
    Rig,
    marker,
    orders,
    outbox,
    some,
    state,
)


def test_a02_no_checkpoint_starts_before_every_subtask_runs():
    rig = Rig(running=False)
    rig.do(SubtaskRunning(attempt=ATTEMPT, subtask=READ))
    assert rig.ask() == ()
    (inject,) = orders(rig.do(SubtaskRunning(attempt=ATTEMPT, subtask=WRITE)), InjectBarrier)
    assert inject.checkpoint == RESTORED + 1, "what was asked for meanwhile runs first"


def test_a03_the_clock_starts_a_checkpoint_each_interval():
    rig = Rig()
    assert rig.after(INTERVAL_MS - 1) == ()
    (inject,) = orders(rig.after(1), InjectBarrier)
    assert inject == InjectBarrier(
        attempt=ATTEMPT,
        checkpoint=CheckpointId(RESTORED + 1),
        kind=CheckpointKind.PERIODIC,
        decided=RESTORED,
    )
    assert orders(rig.after(0), InjectBarrier) == [], "not twice"


def test_a01_a14_a_whole_checkpoint_goes_in_order_and_everybody_is_told():
    rig = Rig()
    checkpoint = rig.start()
    assert rig.acknowledge(checkpoint, READ, states=[state("s")]) == ()
    (decide,) = rig.acknowledge(checkpoint, WRITE, outboxes=[outbox(checkpoint)])
    assert isinstance(decide, Decide)
    assert (decide.checkpoint, decide.parent, decide.stop) == (checkpoint, RESTORED, False)
    assert decide.expected == ((SINK, marker(RESTORED, 0)),)
    assert [snapshot.subtask for snapshot in decide.subtasks] == list(SUBTASKS)

    (told,) = orders(rig.do(DecisionTaken(checkpoint=checkpoint)), CheckpointDecided)
    (publication,) = told.publications
    assert (publication.publisher, publication.rows, publication.expected) == (SINK, 2, marker(RESTORED, 0))
    assert rig.coordinator.decided == checkpoint
    assert rig.coordinator.waiting_for() == (SINK,)

    assert rig.publish(told) == (RecordPublished(checkpoint=checkpoint),)
    assert rig.coordinator.waiting_for() == ()
    completed, retain, answer = rig.do(PublishedRecorded(checkpoint=checkpoint))
    assert completed == Broadcast(order=CheckpointCompleted(attempt=ATTEMPT, checkpoint=checkpoint))
    assert retain == Retain(checkpoint=checkpoint)
    assert answer == Answer(number=1, checkpoint=checkpoint)


def test_a14_what_was_published_is_what_the_next_checkpoint_expects():
    rig = Rig()
    first = rig.start()
    rig.complete(first, outbox(first, rows=5))
    second = rig.start()
    (decide,) = rig.acknowledge_all(second)
    assert isinstance(decide, Decide)
    assert decide.expected == ((SINK, marker(first, 5)),)
    assert decide.parent == first


def test_r04_a_checkpoint_without_output_is_published_as_soon_as_it_is_decided():
    rig = Rig()
    checkpoint = rig.start()
    rig.acknowledge_all(checkpoint)
    actions = rig.do(DecisionTaken(checkpoint=checkpoint))
    assert some(actions, RecordPublished) == [RecordPublished(checkpoint=checkpoint)]


def test_r09_a_full_outbox_asks_for_a_checkpoint_at_once():
    rig = Rig(min_pause_ms=10_000)
    actions = rig.do(SubtaskPressed(attempt=ATTEMPT, subtask=WRITE))
    (inject,) = orders(actions, InjectBarrier)
    assert orders(actions, HoldSources) == [
        HoldSources(attempt=ATTEMPT, subtask=WRITE, until=inject.checkpoint)
    ]


def test_r09_pressed_while_one_is_under_way_the_next_follows_at_once():
    rig = Rig()
    first = rig.start()
    (hold,) = orders(rig.do(SubtaskPressed(attempt=ATTEMPT, subtask=WRITE)), HoldSources)
    assert hold.until == first + 1, "the one under way may have been cut before it was full"
    rig.acknowledge_all(first, outbox(first))
    actions = rig.do(DecisionTaken(checkpoint=first))
    assert orders(actions, InjectBarrier), "its barrier may overlap the publishing"


def test_r09_outboxes_of_an_aborted_checkpoint_go_along_under_the_one_that_decides_them():
    rig = Rig()
    first = rig.start()
    rig.acknowledge(first, WRITE, outboxes=[outbox(first)])
    rig.after(INTERVAL_MS // 2)  # timed out, given up
    second = rig.start()
    order = rig.decided(second, outbox(first), outbox(second, rows=3))
    (publication,) = order.publications
    assert [box.cut for box in publication.outboxes] == [first, second]
    assert publication.rows == 5


def test_r09_what_is_decided_is_never_decided_twice_though_a_subtask_missed_the_news():
    rig = Rig()
    first = rig.start()
    rig.complete(first, outbox(first))
    second = rig.start()
    (decide,) = rig.acknowledge_all(second, outbox(first), outbox(second, rows=3))
    assert isinstance(decide, Decide)
    assert [box.cut for snapshot in decide.subtasks for box in snapshot.outboxes] == [second]
    (order,) = orders(rig.do(DecisionTaken(checkpoint=second)), CheckpointDecided)
    assert [publication.rows for publication in order.publications] == [3]


def test_r13_a_checkpoint_is_decided_only_when_the_one_before_is_published():
    rig = Rig()
    first = rig.start()
    order = rig.decided(first, outbox(first))
    second = rig.start(number=2)
    assert rig.acknowledge_all(second, outbox(second)) == (), "complete, and it waits"
    rig.publish(order)
    actions = rig.do(PublishedRecorded(checkpoint=first))
    (decide,) = some(actions, Decide)
    assert (decide.checkpoint, decide.parent) == (second, first)


def test_r13_waiting_for_publishing_is_no_part_of_the_time_out_and_no_further_one_starts():
    rig = Rig()
    first = rig.start()
    rig.decided(first, outbox(first))
    second = rig.start(number=2)
    rig.acknowledge_all(second)
    actions = rig.after(600)  # longer than a checkpoint may take, shorter than a publish
    assert actions == ()
    assert rig.ask(number=3) == (), "it has to wait"


def test_r13_all_identities_have_to_be_out():
    other = PublisherId(JOB, StepName("copy"), 0)
    rig = Rig(publishers=(SINK, other))
    checkpoint = rig.start()
    order = rig.decided(checkpoint, outbox(checkpoint), outbox(checkpoint, publisher=other))
    done = [
        PublicationDone(
            attempt=ATTEMPT, checkpoint=checkpoint, publisher=p.publisher, marker=marker(checkpoint, p.rows)
        )
        for p in order.publications
    ]
    assert rig.do(done[0]) == ()
    assert rig.coordinator.waiting_for() == (done[1].publisher,), "and status can say so"
    assert some(rig.do(done[1]), RecordPublished)


def test_r14_nobody_publishes_who_was_not_opened():
    rig = Rig(publishers=())
    checkpoint = rig.start()
    rig.acknowledge_all(checkpoint, outbox(checkpoint))
    with pytest.raises(EngineBug, match="was opened before it publishes"):
        rig.do(DecisionTaken(checkpoint=checkpoint))


def test_r01_a_lost_place_stops_quietly_and_whoever_waits_is_told():
    rig = Rig()
    checkpoint = rig.start()
    rig.ask(number=2)
    rig.acknowledge_all(checkpoint)
    actions = rig.do(DecisionLost(checkpoint=checkpoint, by="a seal of attempt 4"))
    assert some(actions, FencedByLog) == [FencedByLog(checkpoint=checkpoint, by="a seal of attempt 4")]
    assert {answer.number for answer in some(actions, Answer) if answer.refused} == {1, 2}
    assert some(rig.ask(number=3), Answer) == [], "it is over"


def test_a04_requests_wait_in_order_and_one_too_many_is_refused_by_name():
    rig = Rig()
    first = rig.start(number=1)
    for number in range(2, REQUESTS_MAX + 2):
        assert rig.ask(number=number) == ()
    (refusal,) = rig.ask(number=999)
    assert isinstance(refusal, Answer)
    assert refusal.number == 999
    assert str(REQUESTS_MAX) in refusal.refused
    actions = rig.complete(first)
    assert [answer.number for answer in some(rig.said, Answer) if answer.checkpoint] == [1]
    assert not some(actions, EndJob)


def test_r23_a_savepoint_is_answered_only_when_its_copy_is_whole():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.SAVEPOINT, savepoint="saved")
    request = Request(kind=CheckpointKind.SAVEPOINT, number=1, savepoint="saved")
    actions = rig.complete(checkpoint)
    assert some(actions, CopySavepoint) == [CopySavepoint(checkpoint=checkpoint, request=request)]
    assert some(actions, Answer) == []
    copied = SavepointCopied(checkpoint=checkpoint, request=request)
    assert rig.do(copied) == (Answer(number=1, checkpoint=checkpoint, path="saved"),)


def test_r23_a_failed_copy_is_refused_and_the_job_goes_on():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.SAVEPOINT, savepoint="saved")
    rig.complete(checkpoint)
    request = Request(kind=CheckpointKind.SAVEPOINT, number=1, savepoint="saved")
    copied = SavepointCopied(checkpoint=checkpoint, request=request, failure="disk full")
    assert rig.do(copied) == (Answer(number=1, checkpoint=checkpoint, refused="disk full"),)
    rig.complete(rig.start(number=2))


def test_a04_a05_when_all_input_has_ended_the_next_checkpoint_is_the_last():
    rig = Rig()
    assert rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=READ)) == ()
    (inject,) = orders(rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=WRITE)), InjectBarrier)
    assert inject.kind is CheckpointKind.LAST
    assert rig.complete(inject.checkpoint, outbox(inject.checkpoint))[-1] == EndJob(finished=True)


def test_a05_a_bounded_job_ends_though_the_report_of_an_end_was_lost():
    """Seed 25 of the simulated event-time job: an acknowledgement says it too."""
    rig = Rig()
    rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=READ))
    checkpoint = rig.start()
    rig.acknowledge(checkpoint, READ)
    finished = SubtaskSnapshot(subtask=WRITE, finished=True)
    assert some(rig.do(Acknowledged(attempt=ATTEMPT, checkpoint=checkpoint, snapshot=finished)), Decide)
    (inject,) = orders(rig.do(DecisionTaken(checkpoint=checkpoint)), InjectBarrier)
    assert inject.kind is CheckpointKind.LAST


def test_a04_the_end_of_a_bounded_job_is_never_refused_though_many_wait():
    rig = Rig()
    first = rig.start(number=1)
    for number in range(2, REQUESTS_MAX + 2):
        rig.ask(number=number)
    for subtask in SUBTASKS:
        rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=subtask))
    rig.complete(first)
    inject = orders(rig.said, InjectBarrier)[-1]
    assert inject.kind is CheckpointKind.LAST, "before all others"
    actions = rig.complete(inject.checkpoint)
    assert len(some(actions, Answer)) == REQUESTS_MAX, "everybody else is told"
