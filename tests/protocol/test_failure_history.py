"""What is kept of failures, and which of them come again (D2, D3)."""

from __future__ import annotations

import pytest

from processor.errors import (
    BadRecord,
    Blame,
    Elsewhere,
    EngineBug,
    LogConflict,
    ProcessorError,
    Response,
    Unavailable,
    UserCodeError,
    Where,
)
from processor.ids import Attempt, CheckpointId, WorkerId
from processor.protocol.failure_history import (
    FAILURES_MAX,
    TEXT_CHARS_MAX,
    AttemptFailure,
    FailureHistory,
    failure_of,
)

HERE = Where(step="check", split="in/0", offset=4)
SOMEWHERE = Where(step="check")
OTHER = Where(step="other")


def failure(error: BaseException, *, progressed: bool = False, attempt: int = 1) -> AttemptFailure:
    return failure_of(
        error,
        at_ms=1_000,
        attempt=Attempt(attempt),
        checkpoint=CheckpointId(7),
        progressed=progressed,
        ran_ms=50,
    )


def raised(where: Where = HERE, cause: Exception | None = None, kind: type[ProcessorError] = UserCodeError):
    error = kind("the function raised.", remedy="Mend it.", where=where)
    error.__cause__ = cause if cause is not None else ValueError("five")
    return error


def again(*failures: AttemptFailure) -> list[bool]:
    history = FailureHistory()
    return [history.add(each).again for each in failures]


def test_d3_a_failure_is_kept_with_its_cause():
    kept = failure_of(
        raised(),
        at_ms=1_000,
        attempt=Attempt(3),
        checkpoint=CheckpointId(7),
        progressed=True,
        ran_ms=50,
    )
    assert (kept.attempt, kept.checkpoint, kept.progressed) == (3, 7, True)
    assert (kept.error, kept.cause, kept.text, kept.remedy) == (
        "UserCodeError",
        "ValueError",
        "the function raised.",
        "Mend it.",
    )
    assert (kept.blame, kept.response) == (Blame.USER, Response.RESTART_FROM_CHECKPOINT)
    assert kept.place() == "step 'check', at in/0 offset 4"


def test_d3_a_failure_in_a_worker_is_kept_with_the_worker_and_the_cause_that_it_had_there():
    error = UserCodeError("the function raised.", where=HERE)
    error.elsewhere = Elsewhere(worker=WorkerId(2), cause="ValueError")
    kept = failure(error)
    assert (kept.worker, kept.cause) == (2, "ValueError")
    assert kept.place() == "step 'check', at in/0 offset 4, worker 2"


def test_d2_a_failure_that_comes_again_in_another_worker_is_the_same():
    errors = [UserCodeError("the function raised.", where=HERE) for _ in range(2)]
    for worker, error in enumerate(errors):
        error.elsewhere = Elsewhere(worker=WorkerId(worker), cause="ValueError")
    assert again(*map(failure, errors)) == [False, True]


@pytest.mark.parametrize(
    ("error", "response"),
    [
        (LogConflict("x"), Response.FAIL_JOB),
        (ValueError("x"), Response.RESTART_FROM_CHECKPOINT),
        (KeyboardInterrupt(), Response.CRASH),
        (EngineBug("x"), Response.CRASH),
    ],
)
def test_d2_what_is_done_about_an_error_is_its_own_word_or_another_attempt(error, response):
    assert failure(error).response is response


def test_d3_the_newest_are_kept_and_long_texts_are_cut():
    history = FailureHistory()
    for attempt in range(1, FAILURES_MAX + 3):
        history.add(failure(Unavailable("x" * 2 * TEXT_CHARS_MAX), attempt=attempt))
    kept = history.newest_first()
    assert [each.attempt for each in kept] == list(range(FAILURES_MAX + 2, 2, -1))
    assert {len(each.text) for each in kept} == {TEXT_CHARS_MAX + 1}


@pytest.mark.parametrize("where", [HERE, SOMEWHERE])
@pytest.mark.parametrize("kind", [UserCodeError, BadRecord])
def test_d2_the_same_failure_of_code_or_data_comes_again(kind, where):
    first, second = (failure(raised(kind=kind, where=where)) for _ in range(2))
    assert again(first, second) == [False, True]


@pytest.mark.parametrize("where", [HERE, SOMEWHERE])
def test_d2_what_was_published_before_the_first_of_them_does_not_matter(where):
    assert again(failure(raised(where), progressed=True), failure(raised(where))) == [False, True]


@pytest.mark.parametrize(
    "second",
    [
        failure(raised(Where(step="check", split="in/0", offset=5))),
        failure(raised(cause=KeyError("five"))),
        failure(raised(kind=BadRecord)),
        failure(Unavailable("away", where=HERE)),
    ],
    ids=["elsewhere", "of another kind", "of another class", "of the outside"],
)
def test_d2_what_is_not_the_same_does_not(second):
    assert again(failure(raised()), second) == [False, False]


def test_d2_an_outage_or_a_place_that_nobody_knows_is_never_said_to_come_again():
    outage = failure(Unavailable("away", where=HERE))
    nowhere = failure(raised(Where()))
    assert again(outage, outage, nowhere, nowhere) == [False] * 4


@pytest.mark.parametrize(("where", "comes"), [(HERE, True), (SOMEWHERE, False)])
def test_d2_progress_between_speaks_of_a_place_and_not_of_a_record(where, comes):
    """Other parts of the input go on, and a checkpoint without anything new is published, too."""
    assert again(failure(raised(where)), failure(raised(where), progressed=True)) == [False, comes]
    through = failure(raised(OTHER), progressed=True)
    assert again(failure(raised(where)), through, failure(raised(where))) == [False, False, comes]


@pytest.mark.parametrize("where", [HERE, SOMEWHERE])
def test_d2_of_two_that_take_turns_both_come_again(where):
    one, two = failure(raised(where)), failure(raised(OTHER))
    assert again(one, two, one, two) == [False, False, True, True]


def test_d2_what_comes_again_is_told_with_place_and_remedy():
    history = FailureHistory()
    history.add(failure(raised()))
    told = history.add(failure(raised())).outlook()
    assert "step 'check', at in/0 offset 4" in told
    assert "no restart will mend that. Mend it. Then stop the job" in told
