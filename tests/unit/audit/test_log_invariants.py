"""What the decision log alone can tell: nothing goes back, nothing fenced is decided, seams are exact."""

from __future__ import annotations

from collections.abc import Mapping

from processor.audit.finding import Outcome
from processor.audit.monotone import monotone_finding
from processor.audit.seam import seam_finding
from processor.ids import (
    Attempt,
    CheckpointId,
    Incarnation,
    JobName,
    Place,
    Position,
    SplitId,
    StepName,
    SubtaskId,
)
from processor.protocol.decisions import LogView
from processor.protocol.entries import (
    CheckpointEntry,
    Entry,
    JobShape,
    Published,
    Rewind,
    Seal,
    SourceState,
    SubtaskSnapshot,
)

INCARNATION = Incarnation("i")
JOB = JobName("job")


def seal(place: int, attempt: int) -> Seal:
    return Seal(
        place=Place(place),
        attempt=Attempt(attempt),
        nonce="n",
        incarnation=INCARNATION,
        job=JOB,
        sinks=(),
    )


def checkpoint(
    place: int, attempt: int, number: int, parent: int, positions: Mapping[str, int]
) -> CheckpointEntry:
    source = SourceState(
        step=StepName("read"),
        positions={SplitId(split): Position(next=offset) for split, offset in positions.items()},
    )
    return CheckpointEntry(
        place=Place(place),
        attempt=Attempt(attempt),
        nonce="n",
        incarnation=INCARNATION,
        job=JOB,
        checkpoint=CheckpointId(number),
        parent=CheckpointId(parent),
        taken_ms=0,
        shape=JobShape(max_parallelism=128, parallelism={}, stateful={}),
        subtasks=(SubtaskSnapshot(subtask=SubtaskId(StepName("read"), 0), sources=(source,)),),
        expected=(),
    )


def rewind(place: int, attempt: int, origin: str, parent: int) -> Rewind:
    return Rewind(
        place=Place(place),
        attempt=Attempt(attempt),
        nonce="n",
        incarnation=INCARNATION,
        token=origin,
        origin=origin,
        parent=CheckpointId(parent),
    )


def log(*entries: Entry) -> LogView:
    return LogView(entries=entries)


def published(number: int) -> Published:
    return Published(incarnation=INCARNATION, attempt=Attempt(1), checkpoint=CheckpointId(number))


GOOD = (
    seal(1, 1),
    checkpoint(2, 1, 1, 0, {"in/0": 0}),
    checkpoint(3, 1, 2, 1, {"in/0": 5}),
    seal(4, 2),
    checkpoint(5, 2, 3, 2, {"in/0": 5, "in/1": 9}),
)


def test_a_log_that_goes_forward_passes() -> None:
    finding = monotone_finding(log(*GOOD), published(3))
    assert finding.outcome is Outcome.PASSED
    assert finding.figures == {
        "entries": 5,
        "attempts": 2,
        "newest checkpoint": 3,
        "positions that went back": 0,
    }


def test_r01_a_decision_of_a_sealed_out_attempt_is_found() -> None:
    finding = monotone_finding(log(*GOOD, checkpoint(6, 1, 4, 3, {"in/0": 6, "in/1": 9})), published(3))
    assert finding.outcome is Outcome.FAILED
    assert "after attempt 2 sealed" in finding.notes[0]


def test_a_position_that_goes_back_or_is_lost_is_found() -> None:
    assert monotone_finding(log(*GOOD, checkpoint(6, 2, 4, 3, {"in/0": 4, "in/1": 9})), None).notes
    assert monotone_finding(log(*GOOD, checkpoint(6, 2, 4, 3, {"in/0": 5})), None).notes


def test_an_id_that_comes_again_and_a_publication_of_nothing_are_found() -> None:
    assert monotone_finding(log(*GOOD, checkpoint(6, 2, 3, 2, {"in/0": 5})), None).notes
    assert monotone_finding(log(*GOOD), published(4)).notes


def test_r08_going_back_to_a_parent_is_no_step_back() -> None:
    # Checkpoint 3 could not be read: 4 descends from 2.
    entries = (*GOOD, seal(6, 3), checkpoint(7, 3, 4, 2, {"in/0": 5}))
    assert monotone_finding(log(*entries), None).outcome is Outcome.PASSED


def test_an_exact_seam_passes_and_a_gap_is_found() -> None:
    exact = (*GOOD, seal(6, 3), rewind(7, 3, "sp", 3), checkpoint(8, 3, 4, 0, {"in/0": 5, "in/1": 9}))
    finding = seam_finding(log(*exact))
    assert finding.outcome is Outcome.PASSED
    assert finding.figures["exact"] == 1
    gap = (*exact[:-1], checkpoint(8, 3, 4, 0, {"in/0": 7, "in/1": 9}))
    assert "2 records ahead" in seam_finding(log(*gap)).notes[0]


def test_a_fresh_start_and_an_older_savepoint_are_counted_apart() -> None:
    older = (*GOOD, seal(6, 3), rewind(7, 3, "sp", 3), checkpoint(8, 3, 4, 0, {"in/0": 2, "in/1": 9}))
    assert seam_finding(log(*older)).figures["rewound"] == 1
    fresh = (*GOOD, seal(6, 3), rewind(7, 3, "fresh", 3), checkpoint(8, 3, 4, 0, {"in/0": 0, "in/1": 0}))
    assert seam_finding(log(*fresh)).figures["fresh"] == 1
