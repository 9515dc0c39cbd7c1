"""State of a checkpoint is given to a job only where it fits, and all that does not fit is told at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor import ListState, MapState, ValueState
from processor.errors import JobError
from processor.ids import StepName
from processor.plan.compatibility import check_restore
from processor.protocol.entries import JobShape
from processor.state.declarations import described_states

COUNT, WATCH = StepName("count"), StepName("watch")

CHECKPOINT = JobShape(
    max_parallelism=128,
    parallelism={StepName("read"): 2},
    stateful={COUNT: {"total": "int"}, WATCH: {"seen": "int", "last": "Click(user: str)"}},
)


def test_the_same_job_fits_at_any_parallelism_and_with_new_steps_and_states():
    check_restore(CHECKPOINT, CHECKPOINT)
    job = replace(
        CHECKPOINT,
        parallelism={StepName("read"): 5, StepName("new"): 1},
        stateful={
            **CHECKPOINT.stateful,
            StepName("new"): {"x": "str"},
            COUNT: {"total": "int", "more": "str"},
        },
    )
    check_restore(job, CHECKPOINT)


def refused(job: JobShape, **more) -> str:
    with pytest.raises(JobError) as caught:
        check_restore(job, CHECKPOINT, **more)
    return str(caught.value)


def test_another_max_parallelism_is_refused_with_both_numbers():
    text = refused(replace(CHECKPOINT, max_parallelism=64))
    assert "64 in the job and 128 in the checkpoint" in text


def test_a_removed_step_with_state_is_refused_with_what_it_holds_unless_dropped_by_name():
    job = replace(CHECKPOINT, stateful={WATCH: CHECKPOINT.stateful[WATCH]})
    assert "step 'count' has state in the checkpoint (total: int) and none in the job" in refused(job)
    check_restore(job, CHECKPOINT, dropped={COUNT})


def test_c5_a_removed_or_renamed_source_is_refused_unless_dropped_by_name():
    read, other = StepName("read"), StepName("other")
    checkpoint = replace(CHECKPOINT, sources=(read,))
    check_restore(replace(CHECKPOINT, sources=(other, read)), checkpoint)
    job = replace(CHECKPOINT, sources=(other,))
    with pytest.raises(JobError, match="step 'read' reads in the checkpoint and not in the job"):
        check_restore(job, checkpoint)
    check_restore(job, checkpoint, dropped={read})


def test_c5_of_a_step_that_is_still_there_nothing_is_dropped():
    """The same command, run again after a crash, would otherwise forget what the step has kept since."""
    job = replace(CHECKPOINT, stateful={**CHECKPOINT.stateful, COUNT: {"other": "str"}})
    assert "state 'total' of step 'count'" in refused(job, dropped={COUNT})


def test_a_changed_type_is_refused_with_both_types():
    job = replace(CHECKPOINT, stateful={**CHECKPOINT.stateful, COUNT: {"total": "str"}})
    assert "state 'total' of step 'count' is str in the job and int in the checkpoint" in refused(job)


def test_another_kind_of_state_is_refused_with_both_kinds():
    class Before:
        seen = ListState(int)
        pages = MapState(str, int)

    class Now:
        seen = ValueState(list[int])
        pages = MapState(int, int)

    checkpoint = replace(CHECKPOINT, stateful={COUNT: described_states(Before)})
    with pytest.raises(JobError) as caught:
        check_restore(replace(checkpoint, stateful={COUNT: described_states(Now)}), checkpoint)
    for text in (
        "state 'seen' of step 'count' is list[int] in the job and ListState[int] in the checkpoint",
        "state 'pages' of step 'count' is MapState[int, int] in the job and MapState[str, int] in the checkpoint",
    ):
        assert text in str(caught.value)


def test_a_removed_state_is_refused():
    job = replace(CHECKPOINT, stateful={**CHECKPOINT.stateful, WATCH: {"seen": "int"}})
    assert "state 'last' of step 'watch' is Click(user: str) in the checkpoint and not in the job" in refused(
        job
    )


def test_all_problems_are_told_at_once():
    text = refused(JobShape(max_parallelism=1, parallelism={}, stateful={WATCH: {"seen": "str"}}))
    for part in ("max_parallelism", "'count'", "'seen'", "'last'"):
        assert part in text
