"""``--rename``: everything of a checkpoint that hangs on a name follows it (C5)."""

from __future__ import annotations

import pytest

from processor.errors import JobError, SettingsError
from processor.ids import (
    Attempt,
    CheckpointId,
    EdgeName,
    FileRef,
    Incarnation,
    JobName,
    KeyGroupRange,
    Place,
    Position,
    SplitId,
    StepName,
    SubtaskId,
)
from processor.protocol.entries import (
    ChannelFile,
    CheckpointEntry,
    JobShape,
    ParticipantState,
    ReachedEventTime,
    SourceState,
    StateFile,
    SubtaskSnapshot,
)
from processor.runtime.discovery import participant_name
from processor.runtime.renaming import read_renamings, renamed, renamed_shape

READ, COUNT = StepName("read"), StepName("count/all")
GROUPS = KeyGroupRange(0, 8)
FILE = FileRef(name="a1/x", bytes=1, sha256="0")

ENTRY = CheckpointEntry(
    place=Place(3),
    attempt=Attempt(1),
    nonce="",
    incarnation=Incarnation("i"),
    job=JobName("job"),
    checkpoint=CheckpointId(2),
    parent=CheckpointId(1),
    taken_ms=0,
    shape=JobShape(
        max_parallelism=8,
        parallelism={READ: 1, COUNT: 2},
        stateful={COUNT: {"total": "int", "last": "str"}},
        sources=(READ,),
    ),
    subtasks=(
        SubtaskSnapshot(
            subtask=SubtaskId(READ, 0),
            sources=(SourceState(step=READ, positions={SplitId("t/0"): Position(next=4)}),),
        ),
        SubtaskSnapshot(
            subtask=SubtaskId(COUNT, 0),
            keyed=(
                StateFile(step=COUNT, file=FILE, key_groups=GROUPS, states={"total": "int", "last": "str"}),
            ),
            channels=(
                ChannelFile(
                    edge=EdgeName(origin=READ, output="", target=COUNT, input=0),
                    file=FILE,
                    key_groups=GROUPS,
                    records=1,
                ),
            ),
            event_times=(ReachedEventTime(step=COUNT, key_groups=GROUPS, watermark_ms=5),),
        ),
    ),
    expected=(),
    participants=(ParticipantState(name=participant_name(READ), data=b"{}"),),
)


def test_c5_a_step_takes_all_of_it_along():
    entry = renamed(ENTRY, read_renamings(["read=lines", "count/all=counted"]))
    assert "'read'" not in repr(entry).replace("count/all", "")
    assert "count/all" not in repr(entry)
    counted = StepName("counted")
    assert entry.shape.stateful == {counted: {"total": "int", "last": "str"}}
    assert entry.subtasks[1].channels[0].edge == EdgeName(
        origin=StepName("lines"), output="", target=counted, input=0
    )
    assert entry.participants[0].name == participant_name(StepName("lines"))


def test_c5_a_state_is_still_found_in_its_files():
    entry = renamed(ENTRY, read_renamings(["count/all/total=count/all/sum", "count/all/sum=count/all/n"]))
    file = entry.subtasks[1].keyed[0]
    assert (file.states, file.kept_as) == ({"n": "int", "last": "str"}, {"n": "total"})
    assert entry.shape.stateful[COUNT] == {"n": "int", "last": "str"}


@pytest.mark.parametrize(
    "given", [["read=lines", "count/all=c", "c/total=c/n"], ["count/all/total=count/all/n"]]
)
def test_c5_what_was_done_by_an_earlier_start_is_left(given):
    renamings = read_renamings(given)
    done = renamed_shape(ENTRY.shape, renamings)
    assert renamed_shape(done, renamings) == done
    other_order = renamed_shape(ENTRY.shape, read_renamings(["count/all/total=count/all/n", "count/all=c"]))
    assert (
        renamed_shape(other_order, read_renamings(["count/all/total=count/all/n", "count/all=c"]))
        == other_order
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            "reed=lines",
            "Choose one of those that are there: count/all, count/all/last, count/all/total, read",
        ),
        ("count/all/sum=count/all/n", "has neither"),
        ("read=count/all", "the checkpoint has both"),
        ("count/all/total=count/all/last", "the checkpoint has both"),
        ("count/all/total=read/total", "a state stays in its step"),
    ],
)
def test_c5_what_cannot_be_renamed_is_refused_with_what_is_there(given, says):
    with pytest.raises(JobError, match=says):
        renamed_shape(ENTRY.shape, read_renamings([given]))


@pytest.mark.parametrize("given", ["read", "read=", "=lines", "a=b=c", "a=a"])
def test_c5_what_is_no_renaming_is_refused(given):
    with pytest.raises(SettingsError, match="OLD=NEW"):
        read_renamings([given])
