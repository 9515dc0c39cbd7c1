"""What can go wrong with a checkpoint: declined, expired, unknown, unanswered, late, doubled (A13, A15, A16)."""

from __future__ import annotations

import pytest

from processor.ids import Attempt, CheckpointId, StepName, SubtaskId
from processor.protocol.coordinator_messages import (
    Answer,
    Broadcast,
    Condemn,
    CopySavepoint,
    Decide,
    DecisionTaken,
    DecisionUnknown,
    EndJob,
    FailAttempt,
    Ignored,
    PublishedRecorded,
    SavepointCopied,
)
from processor.protocol.entries import SubtaskSnapshot
from processor.protocol.messages import (
    AbortCheckpoint,
    Acknowledged,
    CheckpointDecided,
    CheckpointKind,
    Declined,
    InjectBarrier,
    PublicationDone,
    PublicationUnanswered,
    ResumeSources,
    SubtaskEnded,
    SubtaskRunning,
)
from processor.protocol.pending_checkpoint import Request
from tests.protocol.coordinator_rig import (
    ATTEMPT,
    COPY_TIMEOUT_MS,
    DECISION_TIMEOUT_MS,
    INTERVAL_MS,
    PUBLISH_TIMEOUT_MS,
    READ,
    RESTORED,
    SINK,
    START_TIMEOUT_MS,
    SUBTASKS,
    TIMEOUT_MS,
    WRITE,
    Rig,
    marker,
    orders,
    outbox,
    some,
    state,
)

OLDER = Attempt(ATTEMPT - 1)


def decline(rig: Rig, checkpoint: CheckpointId, subtask: SubtaskId = READ):
    return rig.do(Declined(attempt=ATTEMPT, checkpoint=checkpoint, subtask=subtask, reason="disk full"))


def ignored(actions) -> list[str]:
    return [action.why for action in some(actions, Ignored)]


# --- given up


def test_a13_a_declined_checkpoint_is_aborted_everywhere_and_its_files_are_condemned():
    rig = Rig()
    checkpoint = rig.start()
    rig.acknowledge(checkpoint, WRITE, states=[state("s")], outboxes=[outbox(checkpoint)])
    actions = decline(rig, checkpoint)
    (abort,) = orders(actions, AbortCheckpoint)
    assert abort.checkpoint == checkpoint
    assert "disk full" in abort.reason
    (condemn,) = some(actions, Condemn)
    assert [file.name for file in condemn.files] == ["s"], "its outboxes go along with the next one (R9)"
    (answer,) = some(actions, Answer)
    assert "read[0]" in answer.refused


def test_a06_a13_an_expired_checkpoint_names_who_is_missing():
    rig = Rig()
    checkpoint = rig.start()
    rig.acknowledge(checkpoint, READ)
    assert rig.after(TIMEOUT_MS - 1) == ()
    (answer,) = some(rig.after(1), Answer)
    assert "write[0]" in answer.refused
    assert "read[0]" not in answer.refused


def test_a16_tolerated_failures_in_a_row_are_counted_and_one_success_resets_them():
    rig = Rig(tolerated=2)
    for _ in range(2):
        assert not some(decline(rig, rig.start()), FailAttempt)
    rig.complete(rig.start())
    for _ in range(2):
        assert not some(decline(rig, rig.start()), FailAttempt)
    (failure,) = some(decline(rig, rig.start()), FailAttempt)
    assert "disk full" in failure.reason


def test_a01_an_id_is_never_given_twice_by_an_attempt():
    rig = Rig(tolerated=9)
    ids = [rig.start()]
    for _ in range(4):
        decline(rig, ids[-1])
        ids.append(rig.start())
    assert ids == sorted(set(ids))


# --- late, doubled, unknown, of another attempt: results, never errors (A15)


def test_r21_d5_messages_of_another_attempt_do_nothing():
    rig = Rig()
    checkpoint = rig.start()
    snapshot = SubtaskSnapshot(subtask=READ)
    for event in (
        Acknowledged(attempt=OLDER, checkpoint=checkpoint, snapshot=snapshot),
        Declined(attempt=OLDER, checkpoint=checkpoint, subtask=READ, reason=""),
        SubtaskRunning(attempt=OLDER, subtask=READ),
        PublicationDone(attempt=OLDER, checkpoint=checkpoint, publisher=SINK, marker=marker(11, 1)),
    ):
        assert rig.do(event) == (Ignored(event=event, why="another attempt"),)
    assert some(rig.acknowledge_all(checkpoint), Decide), "the checkpoint still needs, and has, its own"


def test_a15_a_doubled_acknowledgement_counts_once():
    rig = Rig()
    checkpoint = rig.start()
    rig.acknowledge(checkpoint, READ)
    assert ignored(rig.acknowledge(checkpoint, READ)) == ["double"]
    assert some(rig.acknowledge(checkpoint, WRITE), Decide)
    assert ignored(rig.acknowledge(checkpoint, WRITE)) == ["complete already"]
    rig.do(DecisionTaken(checkpoint=checkpoint))
    assert ignored(rig.acknowledge(checkpoint, WRITE)) == ["decided already"]


def test_a15_an_acknowledgement_of_an_unknown_subtask_counts_nothing():
    rig = Rig()
    checkpoint = rig.start()
    rig.acknowledge(checkpoint, READ)
    assert ignored(rig.acknowledge(checkpoint, SubtaskId(StepName("read"), 7))) == ["unknown-subtask"]


def test_r22_a_late_acknowledgement_of_an_aborted_checkpoint_condemns_its_files():
    rig = Rig()
    first = rig.start()
    decline(rig, first)
    second = rig.start()
    late = rig.acknowledge(first, WRITE, states=[state("late")], outboxes=[outbox(first)])
    assert ignored(late) == ["given up already"]
    assert [file.name for condemn in some(late, Condemn) for file in condemn.files] == ["late"]
    assert rig.acknowledge(second, READ) == (), "and the next one is not touched"


def test_a15_late_declines_and_publications_are_results():
    rig = Rig()
    checkpoint = rig.start()
    order = rig.decided(checkpoint, outbox(checkpoint))
    assert ignored(decline(rig, checkpoint)) == ["not pending"]
    rig.publish(order)
    assert ignored(rig.publish(order)) == ["published already"]
    rig.do(PublishedRecorded(checkpoint=checkpoint))
    assert ignored(rig.publish(order)) == ["not publishing"]
    assert ignored(rig.do(PublishedRecorded(checkpoint=checkpoint))) == ["not publishing"]
    assert ignored(rig.do(SubtaskRunning(attempt=ATTEMPT, subtask=READ))) == ["runs already"]


def test_a02_nothing_happens_any_more_when_the_attempt_is_over():
    rig = Rig(tolerated=0)
    decline(rig, rig.start())
    assert ignored(rig.ask()) == ["the attempt is over"]
    assert ignored(rig.after(INTERVAL_MS * 10)) == ["the attempt is over"]


# --- decided, or not known


def test_r06_an_unknown_decision_ends_the_attempt_and_drops_nothing():
    rig = Rig()
    checkpoint = rig.start()
    rig.acknowledge_all(checkpoint, outbox(checkpoint))
    actions = rig.do(DecisionUnknown(checkpoint=checkpoint, reason="no answer"))
    assert some(actions, FailAttempt)
    assert not some(actions, Condemn), "nothing of it is dropped before the entry was read back"
    assert not orders(actions, AbortCheckpoint)


def test_r06_an_entry_that_is_late_is_not_forgotten_after_the_deadline():
    rig = Rig()
    checkpoint = rig.start()
    rig.acknowledge_all(checkpoint, outbox(checkpoint))
    actions = rig.after(DECISION_TIMEOUT_MS)
    assert some(actions, FailAttempt)
    assert not some(actions, Condemn)
    assert not orders(rig.do(DecisionTaken(checkpoint=checkpoint)), CheckpointDecided)


def test_r25_an_unanswered_publish_is_published_again_then_fails_the_attempt():
    rig = Rig()
    checkpoint = rig.start()
    order = rig.decided(checkpoint, outbox(checkpoint))
    unanswered = PublicationUnanswered(
        attempt=ATTEMPT, checkpoint=checkpoint, publisher=SINK, reason="broker away"
    )
    (again,) = orders(rig.do(unanswered), CheckpointDecided)
    assert again == order
    rig.now_ms += PUBLISH_TIMEOUT_MS
    (failure,) = some(rig.do(unanswered), FailAttempt)
    assert str(SINK) in failure.reason
    assert "broker away" in failure.reason


# --- stop (R24)


def test_r24_a_stop_that_fails_before_its_decision_resumes_the_sources():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.STOP)
    assert some(rig.ask(number=2), Answer)[0].refused == "the job is stopping"
    actions = decline(rig, checkpoint)
    assert [type(action.order) for action in some(actions, Broadcast)] == [AbortCheckpoint, ResumeSources]
    assert some(actions, Answer)[0].refused
    rig.complete(rig.start(number=3))
    assert not some(rig.said, EndJob)


def test_r24_a_decided_stop_can_only_finish():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.STOP)
    order = rig.decided(checkpoint, outbox(checkpoint))
    assert some(rig.said, Decide)[-1].stop
    assert ignored(decline(rig, checkpoint)) == ["not pending"]
    assert rig.after(TIMEOUT_MS) == (), "its time-out is no longer of interest, and nothing else starts"
    rig.publish(order)
    assert rig.do(PublishedRecorded(checkpoint=checkpoint))[-1] == EndJob(finished=False)


def test_r24_a_stop_whose_copy_fails_has_stopped_all_the_same():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.STOP, savepoint="saved")
    request = Request(kind=CheckpointKind.STOP, number=1, savepoint="saved")
    assert some(rig.complete(checkpoint), CopySavepoint)
    answer, end = rig.do(SavepointCopied(checkpoint=checkpoint, request=request, failure="disk full"))
    assert answer == Answer(number=1, checkpoint=checkpoint, refused="disk full"), "it names what is decided"
    assert end == EndJob(finished=False)


def test_r24_input_that_ends_during_a_stop_that_fails_still_ends_the_job():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.STOP)
    for subtask in SUBTASKS:
        rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=subtask))
    (inject,) = orders(decline(rig, checkpoint), InjectBarrier)
    assert inject.kind is CheckpointKind.LAST
    assert rig.complete(inject.checkpoint)[-1] == EndJob(finished=True)


def test_r24_a_drain_that_fails_before_its_decision_fails_the_attempt():
    """Timers have fired before their time: nobody may go on from there."""
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.DRAIN)
    rig.ask(number=2)
    actions = decline(rig, checkpoint)
    assert [type(action.order) for action in some(actions, Broadcast)] == [AbortCheckpoint]
    (failure,) = some(actions, FailAttempt)
    assert f"goes on from checkpoint {RESTORED}" in failure.reason
    assert [answer.refused for answer in some(actions, Answer)] == [failure.reason]
    assert ignored(rig.after(INTERVAL_MS)) == ["the attempt is over"], "nothing decides what it has put out"


def test_r24_a_drain_that_takes_too_long_fails_the_attempt():
    rig = Rig()
    rig.acknowledge(rig.start(CheckpointKind.DRAIN), READ)
    assert some(rig.after(TIMEOUT_MS), FailAttempt)


def test_r24_a_decided_drain_says_so_in_the_log_and_has_finished_the_job():
    rig = Rig()
    checkpoint = rig.start(CheckpointKind.DRAIN, savepoint="saved")
    for subtask in SUBTASKS:
        assert rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=subtask)) == (), "no last checkpoint beside it"
    order = rig.decided(checkpoint, outbox(checkpoint))
    (decide,) = some(rig.said, Decide)
    assert (decide.stop, decide.drained, decide.savepoint) == (True, True, "saved")
    rig.publish(order)
    assert some(rig.do(PublishedRecorded(checkpoint=checkpoint)), CopySavepoint)
    request = Request(kind=CheckpointKind.DRAIN, number=1, savepoint="saved")
    answer, end = rig.do(SavepointCopied(checkpoint=checkpoint, request=request))
    assert answer == Answer(number=1, checkpoint=checkpoint, path="saved")
    assert end == EndJob(finished=True)


def test_a05_a_last_checkpoint_that_fails_is_tried_again():
    rig = Rig()
    for subtask in SUBTASKS:
        rig.do(SubtaskEnded(attempt=ATTEMPT, subtask=subtask))
    last = orders(rig.said, InjectBarrier)[-1]
    (again,) = orders(decline(rig, last.checkpoint), InjectBarrier)
    assert (again.kind, again.checkpoint) == (CheckpointKind.LAST, last.checkpoint + 1)


# --- every state has a deadline (R25)


def starting() -> Rig:
    rig = Rig(running=False)
    rig.do(SubtaskRunning(attempt=ATTEMPT, subtask=READ))
    return rig


def requested() -> Rig:
    rig = Rig(running=False)
    rig.ask()
    return rig


def pending(kind: CheckpointKind = CheckpointKind.MANUAL) -> Rig:
    rig = Rig(tolerated=0)
    rig.acknowledge(rig.start(kind), READ)
    return rig


def deciding() -> Rig:
    rig = Rig()
    rig.acknowledge_all(rig.start())
    return rig


def publishing() -> Rig:
    rig = Rig()
    checkpoint = rig.start()
    rig.decided(checkpoint, outbox(checkpoint))
    return rig


def complete_behind_publishing() -> Rig:
    rig = publishing()
    rig.acknowledge_all(rig.start(number=2))
    return rig


def recording() -> Rig:
    rig = publishing()
    rig.publish(orders(rig.said, CheckpointDecided)[-1])
    return rig


def copying() -> Rig:
    rig = Rig()
    rig.complete(rig.start(CheckpointKind.SAVEPOINT, savepoint="saved"))
    return rig


def copying_to_stop() -> Rig:
    rig = Rig()
    rig.complete(rig.start(CheckpointKind.STOP, savepoint="saved"))
    return rig


STATES = {
    starting: START_TIMEOUT_MS,
    requested: START_TIMEOUT_MS,
    pending: TIMEOUT_MS,
    deciding: DECISION_TIMEOUT_MS,
    publishing: PUBLISH_TIMEOUT_MS,
    complete_behind_publishing: PUBLISH_TIMEOUT_MS,
    recording: PUBLISH_TIMEOUT_MS,
    copying: COPY_TIMEOUT_MS,
    copying_to_stop: COPY_TIMEOUT_MS,
}


@pytest.mark.parametrize("state_of", STATES, ids=lambda state_of: state_of.__name__)
def test_r25_every_state_ends_by_ticks_alone(state_of):
    rig = state_of()
    waits = not any(answer.refused or answer.checkpoint for answer in some(rig.said, Answer))
    before_ms = rig.coordinator.next_ms()
    assert before_ms is not None, "it knows when it needs a tick"
    rig.said.clear()
    rig.after(STATES[state_of] - 1)
    assert not some(rig.said, FailAttempt)
    assert not some(rig.said, EndJob)
    rig.after(1)
    ended = bool(some(rig.said, FailAttempt)) or bool(some(rig.said, EndJob))
    if state_of is copying:  # the job runs on; the request is over
        assert some(rig.said, Answer)[0].refused
    else:
        assert ended
    if waits and state_of is not starting:
        assert some(rig.said, Answer), "whoever asked is told"


def test_r25_a_copy_that_was_late_is_a_result():
    rig = copying()
    rig.after(COPY_TIMEOUT_MS)
    request = Request(kind=CheckpointKind.SAVEPOINT, number=1, savepoint="saved")
    assert ignored(rig.do(SavepointCopied(checkpoint=CheckpointId(11), request=request))) == [
        "answered already"
    ]


def test_r25_a_published_checkpoint_that_is_not_recorded_says_so():
    (failure,) = some(recording().after(PUBLISH_TIMEOUT_MS), FailAttempt)
    assert "is published, but that was not recorded" in failure.reason
