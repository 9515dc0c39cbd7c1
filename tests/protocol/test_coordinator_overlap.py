"""Several checkpoints under way at once: triggered, collected, given up, decided one after another (A3, A6)."""

from __future__ import annotations

from processor.ids import CheckpointId, SubtaskId
from processor.protocol.coordinator_messages import (
    Answer,
    Condemn,
    CopySavepoint,
    Decide,
    DecisionTaken,
    EndJob,
    FailAttempt,
    PublishedRecorded,
)
from processor.protocol.entries import SubtaskSnapshot
from processor.protocol.messages import (
    AbortCheckpoint,
    Acknowledged,
    CheckpointDecided,
    CheckpointKind,
    Declined,
    InjectBarrier,
    ResumeSources,
    SubtaskReads,
)
from tests.protocol.coordinator_rig import (
    ATTEMPT,
    INTERVAL_MS,
    READ,
    RESTORED,
    TIMEOUT_MS,
    WRITE,
    Rig,
    orders,
    outbox,
    some,
    state,
)


def decline(rig: Rig, checkpoint: CheckpointId, subtask: SubtaskId = READ):
    return rig.do(Declined(attempt=ATTEMPT, checkpoint=checkpoint, subtask=subtask, reason="disk full"))


def aborted(actions) -> list[CheckpointId]:
    return [order.checkpoint for order in orders(actions, AbortCheckpoint)]


def test_a03_as_many_are_under_way_as_are_allowed_and_a_decision_makes_room():
    rig = Rig(concurrent=2)
    first, second = rig.start(number=1), rig.start(number=2)
    assert rig.ask(number=3) == (), "it waits"
    rig.acknowledge_all(first, outbox(first))
    (inject,) = orders(rig.do(DecisionTaken(checkpoint=first)), InjectBarrier)
    assert (inject.checkpoint, inject.decided) == (second + 1, first)


def test_a03_the_clock_keeps_its_interval_though_each_takes_longer():
    rig = Rig(concurrent=3, timeout_ms=10 * INTERVAL_MS)
    ids = [inject.checkpoint for _ in range(5) for inject in orders(rig.after(INTERVAL_MS), InjectBarrier)]
    assert ids == [RESTORED + 1, RESTORED + 2, RESTORED + 3], "and no more than are allowed"


def test_a03_while_a_source_reads_a_backlog_the_interval_is_longer_and_an_acknowledgement_heals_lost_news():
    rig = Rig(backlog_interval_ms=10 * INTERVAL_MS)
    rig.do(SubtaskReads(attempt=ATTEMPT, subtask=READ, backlog=True))
    first = orders(rig.after(INTERVAL_MS), InjectBarrier)[0].checkpoint
    rig.do(_reading(first, backlog=True))
    rig.acknowledge(first, WRITE)
    rig.do(DecisionTaken(checkpoint=first))
    rig.do(PublishedRecorded(checkpoint=first))
    assert orders(rig.after(9 * INTERVAL_MS), InjectBarrier) == []
    second = orders(rig.after(INTERVAL_MS), InjectBarrier)[0].checkpoint
    rig.do(_reading(second, backlog=False))  # it had said so, and that was lost
    rig.acknowledge(second, WRITE)
    rig.do(DecisionTaken(checkpoint=second))
    rig.do(PublishedRecorded(checkpoint=second))
    assert len(orders(rig.after(INTERVAL_MS), InjectBarrier)) == 1


def _reading(checkpoint: CheckpointId, *, backlog: bool) -> Acknowledged:
    snapshot = SubtaskSnapshot(subtask=READ)
    return Acknowledged(attempt=ATTEMPT, checkpoint=checkpoint, snapshot=snapshot, backlog=backlog)


def test_a03_the_least_pause_holds_between_the_end_of_one_and_the_start_of_the_clocks_next():
    rig = Rig(concurrent=2, min_pause_ms=5 * INTERVAL_MS)
    rig.complete(rig.start())
    assert orders(rig.after(4 * INTERVAL_MS), InjectBarrier) == []
    assert len(orders(rig.after(INTERVAL_MS), InjectBarrier)) == 1


def test_a06_r13_they_are_decided_in_the_order_of_their_ids_each_when_the_one_before_is_out():
    rig = Rig(concurrent=3)
    first, second, third = (rig.start(number=number) for number in (1, 2, 3))
    order = rig.decided(first, outbox(first))
    assert rig.acknowledge_all(second, outbox(first), outbox(second)) == ()
    assert rig.acknowledge_all(third, outbox(second), outbox(third)) == (), "both wait for the first"
    rig.publish(order)
    (decide,) = some(rig.do(PublishedRecorded(checkpoint=first)), Decide)
    assert (decide.checkpoint, decide.parent) == (second, first)
    assert [box.cut for snapshot in decide.subtasks for box in snapshot.outboxes] == [second]
    (told,) = orders(rig.do(DecisionTaken(checkpoint=second)), CheckpointDecided)
    rig.publish(told)
    (decide,) = some(rig.do(PublishedRecorded(checkpoint=second)), Decide)
    assert (decide.checkpoint, decide.parent) == (third, second)
    assert [box.cut for snapshot in decide.subtasks for box in snapshot.outboxes] == [third]


def test_a06_r09_a_newer_one_that_is_complete_first_ends_the_older_and_takes_its_output_along():
    rig = Rig(concurrent=2)
    first, second = rig.start(number=1), rig.start(number=2)
    rig.acknowledge(first, WRITE, outboxes=[outbox(first)], states=[state("first")])
    actions = rig.acknowledge_all(second, outbox(first), outbox(second))
    assert aborted(actions) == [first]
    assert [file.name for condemn in some(actions, Condemn) for file in condemn.files] == ["first"]
    (decide,) = some(actions, Decide)
    assert [box.cut for snapshot in decide.subtasks for box in snapshot.outboxes] == [first, second]
    assert some(rig.said, Answer) == [], "nobody was refused: who asked for the first gets the next"
    (inject,) = orders(actions, InjectBarrier)
    rig.do(DecisionTaken(checkpoint=second))
    rig.publish(orders(rig.said, CheckpointDecided)[-1])
    rig.do(PublishedRecorded(checkpoint=second))
    rig.complete(inject.checkpoint)
    assert some(rig.said, Answer) == [
        Answer(number=2, checkpoint=second),
        Answer(number=1, checkpoint=inject.checkpoint),
    ]


def test_a06_a_savepoint_that_was_overtaken_is_taken_again():
    rig = Rig(concurrent=2)
    first = rig.start(CheckpointKind.SAVEPOINT, number=1, savepoint="saved")
    second = rig.start(number=2)
    rig.complete(second)
    again = orders(rig.said, InjectBarrier)[-1]
    assert (again.kind, again.checkpoint) == (CheckpointKind.SAVEPOINT, second + 1)
    assert some(rig.complete(again.checkpoint), CopySavepoint)[0].request.savepoint == "saved"
    assert first not in [decide.checkpoint for decide in some(rig.said, Decide)]


def test_a13_r26_giving_one_up_gives_up_the_older_that_subtasks_drop_with_it_and_no_newer():
    rig = Rig(concurrent=3)
    first, second, third = (rig.start(number=number) for number in (1, 2, 3))
    actions = decline(rig, second)
    assert aborted(actions) == [first, second]
    assert [answer.number for answer in some(actions, Answer)] == [2], "the first is asked for again"
    assert some(rig.acknowledge_all(third), Decide)


def test_a16_being_overtaken_is_no_failure():
    rig = Rig(concurrent=2, tolerated=0)
    for _ in range(5):
        rig.start(number=1)
        newest = orders(rig.ask(number=2), InjectBarrier)[-1].checkpoint
        rig.complete(newest)
        rig.complete(orders(rig.said, InjectBarrier)[-1].checkpoint)
    assert not some(rig.said, FailAttempt)
    assert rig.statistics.picture().counts.given_up == {"subsumed": 5}


def test_a13_the_oldest_expires_first_and_alone():
    rig = Rig(concurrent=2)
    first = rig.start(number=1)
    rig.after(TIMEOUT_MS // 2)
    second = rig.start(number=2)
    assert aborted(rig.after(TIMEOUT_MS // 2)) == [first]
    assert some(rig.acknowledge_all(second, outbox(first), outbox(second)), Decide)


def test_a15_r22_late_acknowledgements_condemn_what_was_given_up_also_behind_a_newer_decision():
    rig = Rig(concurrent=2)
    first, second = rig.start(number=1), rig.start(number=2)
    rig.complete(second)
    late = rig.acknowledge(first, WRITE, states=[state("late")])
    assert [file.name for condemn in some(late, Condemn) for file in condemn.files] == ["late"]
    assert not some(rig.acknowledge(second, WRITE, states=[state("late")]), Condemn), "that one is decided"


def test_r22_a_decision_spares_what_those_under_way_may_build_on():
    rig = Rig(concurrent=3)
    first, second, third = (rig.start(number=number) for number in (1, 2, 3))
    (decide,) = some(rig.acknowledge_all(first), Decide)
    assert decide.needed_from == RESTORED
    rig.do(DecisionTaken(checkpoint=first))
    rig.do(PublishedRecorded(checkpoint=first))
    (decide,) = some(rig.acknowledge_all(second), Decide)
    assert decide.needed_from == RESTORED, "the third was cut when nothing newer was decided"
    rig.do(DecisionTaken(checkpoint=second))
    rig.do(PublishedRecorded(checkpoint=second))
    (decide,) = some(rig.acknowledge_all(third), Decide)
    assert decide.needed_from == second


def test_r22_a_snapshot_that_builds_on_what_is_no_longer_spared_is_given_up():
    """A subtask that has missed the news and the order, on another link than the barrier."""
    rig = Rig(concurrent=2)
    first = rig.start(number=1)
    rig.complete(first)
    second = rig.start(number=2)
    snapshot = SubtaskSnapshot(subtask=READ)
    old = Acknowledged(attempt=ATTEMPT, checkpoint=second, snapshot=snapshot, built_on=RESTORED)
    actions = rig.do(old)
    assert aborted(actions) == [second]
    assert "has not heard of checkpoint 11" in some(actions, Answer)[0].refused
    third = rig.start(number=3)
    good = Acknowledged(attempt=ATTEMPT, checkpoint=third, snapshot=snapshot, built_on=first)
    assert rig.do(good) == ()


def test_r24_a_stop_may_overtake_and_nothing_follows_it():
    rig = Rig(concurrent=3)
    first = rig.start(number=1)
    stop = rig.start(CheckpointKind.STOP, number=2)
    assert some(rig.ask(number=3), Answer)[0].refused == "the job is stopping"
    actions = rig.complete(stop)
    assert aborted(rig.said) == [first]
    assert actions[-1] == EndJob(finished=False)
    assert {a.number: bool(a.refused) for a in some(rig.said, Answer)} == {3: True, 2: False, 1: True}


def test_r24_an_older_one_that_fails_does_not_resume_what_a_stop_has_stopped():
    rig = Rig(concurrent=2)
    first = rig.start(number=1)
    stop = rig.start(CheckpointKind.STOP, number=2)
    assert orders(decline(rig, first), ResumeSources) == []
    (resume,) = orders(decline(rig, stop), ResumeSources)
    assert resume.checkpoint == stop
