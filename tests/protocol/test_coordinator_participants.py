"""The coordinator's side takes part before barriers go out (A7); failures before and after barriers (A16)."""

from __future__ import annotations

from processor.ids import CheckpointId
from processor.protocol.coordinator_messages import (
    Answer,
    AskParticipants,
    Broadcast,
    Decide,
    FailAttempt,
    Ignored,
    ParticipantFailed,
    ParticipantsReady,
    TellParticipants,
)
from processor.protocol.entries import ParticipantState
from processor.protocol.messages import AbortCheckpoint, Declined, InjectBarrier
from tests.protocol.coordinator_rig import ATTEMPT, READ, TIMEOUT_MS, Rig, orders, some

KEPT = (ParticipantState(name="hook model", data=b"7"),)


def silent(**more) -> Rig:
    """Those on the coordinator's side do not answer by themselves."""
    return Rig(participants=lambda checkpoint: None, **more)


def asked(rig: Rig, number: int = 1) -> CheckpointId:
    (ask,) = some(rig.ask(number=number), AskParticipants)
    return ask.checkpoint


def test_a07_no_barrier_goes_out_before_everybody_has_taken_part_and_what_they_keep_is_decided_with_it():
    rig = silent()
    checkpoint = asked(rig)
    assert orders(rig.said, InjectBarrier) == []
    (inject,) = orders(rig.do(ParticipantsReady(checkpoint=checkpoint, states=KEPT)), InjectBarrier)
    assert inject.checkpoint == checkpoint
    (decide,) = some(rig.acknowledge_all(checkpoint), Decide)
    assert decide.participants == KEPT


def test_a07_the_next_checkpoint_waits_for_those_who_still_prepare_though_there_is_room():
    rig = silent(concurrent=2)
    first = asked(rig)
    assert rig.ask(number=2) == ()
    actions = rig.do(ParticipantsReady(checkpoint=first, states=()))
    (ask,) = some(actions, AskParticipants)
    assert ask.checkpoint == first + 1


def test_a07_a16_one_that_cannot_take_part_gives_the_checkpoint_up_and_no_subtask_is_told():
    rig = silent(tolerated=1)
    checkpoint = asked(rig)
    actions = rig.do(ParticipantFailed(checkpoint=checkpoint, reason="no lease"))
    assert not some(actions, Broadcast), "nobody has heard of it"
    assert some(actions, Answer)[0].refused == "no lease"
    assert rig.told == [TellParticipants(checkpoint=checkpoint, completed=False)]
    (failure,) = some(rig.do(ParticipantFailed(checkpoint=asked(rig), reason="no lease")), FailAttempt)
    assert "2 before their barriers" in failure.reason
    assert rig.statistics.picture().counts.given_up == {"participant-failed": 2}


def test_a07_a13_one_that_does_not_answer_is_waited_for_as_long_as_a_checkpoint_may_take():
    rig = silent()
    checkpoint = asked(rig)
    assert rig.after(TIMEOUT_MS - 1) == ()
    (answer,) = some(rig.after(1), Answer)
    assert "before everybody beside the coordinator had taken part" in answer.refused
    late = rig.do(ParticipantsReady(checkpoint=checkpoint, states=()))
    assert some(late, Ignored)[0].why == "not preparing"
    assert orders(rig.said, AbortCheckpoint) == []


def test_a07_a14_they_are_told_once_it_is_completed_or_given_up():
    rig = Rig()
    first = rig.start()
    rig.complete(first)
    second = rig.start()
    rig.do(Declined(attempt=ATTEMPT, checkpoint=second, subtask=READ, reason="disk full"))
    assert rig.told == [
        TellParticipants(checkpoint=first, completed=True),
        TellParticipants(checkpoint=second, completed=False),
    ]
