"""Errors cross between processes as what they are: the supervisor acts on them as on its own."""

from __future__ import annotations

import pytest

from processor import errors
from processor.errors import (
    AttemptFailed,
    Elsewhere,
    ProcessorError,
    PublishRefused,
    TooLarge,
    UserCodeError,
    Where,
)
from processor.ids import WorkerId
from processor.runtime.failure_form import error_of, failure_of
from processor.telemetry.error_text import error_block

KINDS = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ProcessorError)),
    key=lambda kind: kind.__name__,
)
WORKER = WorkerId(2)
WHERE = Where(step="count", split="in/3", offset=17)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_d02_every_error_is_the_same_one_on_the_other_side(kind: type[ProcessorError]):
    more = {"row": 4} if issubclass(kind, PublishRefused) else {}
    error = kind("it failed.", remedy="Mend it.", where=WHERE, **more)
    arrived = error_of(failure_of(error), WORKER)
    assert type(arrived) is kind
    assert str(arrived) == str(error)
    assert (arrived.response, arrived.exit_code, arrived.where) == (error.response, error.exit_code, WHERE)
    assert getattr(arrived, "row", None) == more.get("row")
    assert arrived.elsewhere is not None
    assert arrived.elsewhere.worker == WORKER


def test_d02_a_class_that_only_one_side_knows_is_told_as_the_nearest_that_both_do():
    class Local(TooLarge):
        pass

    assert type(error_of(failure_of(Local("too much.")), WORKER)) is TooLarge


def test_d02_an_error_of_the_jobs_code_keeps_its_cause_for_people():
    try:
        try:
            raise ZeroDivisionError("division by zero")
        except ZeroDivisionError as cause:
            raise UserCodeError("step 'share' raised.") from cause
    except UserCodeError as raised:
        failure = failure_of(raised)
    arrived = error_of(failure, WORKER)
    assert type(arrived) is UserCodeError
    assert arrived.elsewhere == Elsewhere(worker=WORKER, cause="ZeroDivisionError", trace=failure.trace)
    block = error_block(arrived)
    assert "where: worker 2" in block
    assert "in test_d02_an_error_of_the_jobs_code" in block
    assert "ZeroDivisionError: division by zero" in block


def test_d02_what_is_no_error_of_ours_fails_the_attempt_and_names_itself():
    arrived = error_of(failure_of(KeyError("lost")), WORKER)
    assert type(arrived) is AttemptFailed
    assert str(arrived) == "KeyError: 'lost'"
