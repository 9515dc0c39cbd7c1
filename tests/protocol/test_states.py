"""Tables of states: of anything, of a checkpoint (A6), of a job (D3)."""

from __future__ import annotations

from enum import StrEnum

import pytest

from processor.errors import EngineBug
from processor.protocol.checkpoint_status import CheckpointState, CheckpointStatus
from processor.protocol.job_status import JobState, JobStatus
from processor.protocol.state_table import State, StateTable


class Door(StrEnum):
    OPEN = "open"
    SHUT = "shut"
    GONE = "gone"


DOOR = StateTable(
    "door",
    Door.OPEN,
    {Door.OPEN: (Door.SHUT, Door.GONE), Door.SHUT: (Door.OPEN,), Door.GONE: ()},
)


def test_d3_a_thing_goes_from_state_to_state_as_its_table_says():
    door = State(DOOR)
    for status in (Door.SHUT, Door.OPEN):
        door.to(status)
        assert not door.over
    with pytest.raises(EngineBug, match="a open door does not become open"):
        door.to(Door.OPEN)
    assert door.status is Door.OPEN, "what is refused changes nothing"
    door.to(Door.GONE)
    assert door.over


@pytest.mark.parametrize(
    ("follows", "what"),
    [
        ({Door.OPEN: (Door.SHUT,), Door.SHUT: ()}, "a gone door has its row"),
        ({Door.OPEN: (Door.SHUT,), Door.SHUT: (), Door.GONE: ()}, "there is a way to a gone door"),
    ],
)
def test_d3_a_table_that_forgets_a_state_is_no_table(follows, what):
    with pytest.raises(EngineBug, match=what):
        StateTable("door", Door.OPEN, follows)


# --- of a checkpoint


def test_a06_d3_what_is_not_in_the_table_of_a_checkpoint_cannot_happen():
    states = list(CheckpointStatus)
    ways = {state: CheckpointState() for state in states}
    way_to = {
        CheckpointStatus.PREPARING: [],
        CheckpointStatus.PENDING: [CheckpointStatus.PENDING],
        CheckpointStatus.COMPLETE: [CheckpointStatus.PENDING, CheckpointStatus.COMPLETE],
    }
    way_to[CheckpointStatus.DECIDING] = [*way_to[CheckpointStatus.COMPLETE], CheckpointStatus.DECIDING]
    way_to[CheckpointStatus.PUBLISHING] = [*way_to[CheckpointStatus.DECIDING], CheckpointStatus.PUBLISHING]
    way_to[CheckpointStatus.COMPLETED] = [*way_to[CheckpointStatus.PUBLISHING], CheckpointStatus.COMPLETED]
    way_to[CheckpointStatus.GIVEN_UP] = [CheckpointStatus.GIVEN_UP]
    way_to[CheckpointStatus.LEFT] = [CheckpointStatus.LEFT]
    for state, way in way_to.items():
        for step in way:
            ways[state].to(step)
        assert ways[state].status is state
    over = {state for state in states if ways[state].over}
    assert over == {CheckpointStatus.COMPLETED, CheckpointStatus.GIVEN_UP, CheckpointStatus.LEFT}
    for ended in over:
        for state in states:
            with pytest.raises(EngineBug):
                ways[ended].to(state)
    for decided in (CheckpointStatus.DECIDING, CheckpointStatus.PUBLISHING):
        with pytest.raises(EngineBug):
            ways[decided].to(CheckpointStatus.GIVEN_UP)


# --- of a job

LIVES = [
    "recovering running stopping stopped",
    "recovering running stopping running failing restarting recovering running finished",
    "recovering failing failed",
    "recovering fenced",
    "recovering running fenced",
    "recovering running stopping failing restarting recovering stopped",
    "recovering running failing restarting recovering finished",
    "recovering failing stopped",
    "failed",
]


@pytest.mark.parametrize("life", LIVES)
def test_d3_lives_of_a_job(life):
    state = JobState()
    for name in life.split():
        assert not state.over
        state.to(JobStatus(name))
    assert state.over


@pytest.mark.parametrize("over", ["stopped", "finished", "fenced", "failed"])
def test_d3_a_job_that_is_over_becomes_nothing_else(over):
    life = next(life for life in LIVES if life.endswith(over))
    for status in JobStatus:
        state = JobState()
        for name in life.split():
            state.to(JobStatus(name))
        with pytest.raises(EngineBug, match="does not become"):
            state.to(status)


@pytest.mark.parametrize(
    ("before", "after"), [("", "running"), ("recovering", "stopping"), ("recovering running", "restarting")]
)
def test_d3_what_is_not_in_the_table_cannot_happen(before, after):
    state = JobState()
    for name in before.split():
        state.to(JobStatus(name))
    with pytest.raises(EngineBug, match=f"does not become {after}"):
        state.to(JobStatus(after))
