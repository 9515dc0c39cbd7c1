"""status, savepoint and stop ask the running job over its socket."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.contracts.job_control import Outcome
from processor.errors import UserCodeError, Where
from processor.ids import Attempt, CheckpointId, JobName, WorkerId
from processor.protocol.failure_history import AttemptFailure, failure_of
from processor.service.control_place import control_place
from processor.service.control_socket import ControlSocket
from processor.telemetry.log import get_log
from tests.unit.service.fake_job import STATUS, FakeJob


@pytest.fixture
def root():
    with tempfile.TemporaryDirectory(prefix="c-") as directory:
        yield Path(directory)


@pytest.fixture
def job(root):
    running = FakeJob(Outcome(checkpoint=CheckpointId(9)))
    server = ControlSocket(running, control_place(root, JobName("counts")), get_log("test"))
    server.start()
    yield running
    server.close()


@pytest.fixture
def ask(processor_command, root):
    def run(*arguments: str):
        return processor_command(*arguments, PROCESSOR__CHECKPOINT__DIRECTORY=str(root))

    return run


def test_status_is_name_and_value_a_line(ask, job):
    result = ask("status", "counts")
    assert result.exit_code == 0
    told = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert told["published checkpoint"].strip() == "7"
    assert told["up for"].strip() == "1m 1s"
    assert told["read: records skipped"].strip() == "3"
    assert told["read: back pressure percent"].strip() == "83"
    assert told["count: in flight bytes"].strip() == "40,960"


def test_status_for_programs_is_an_object(ask, job):
    told = json.loads(ask("status", "counts", "--json").stdout)
    assert (told["state"], told["last_checkpoint"], told["records_in"]) == ("RUNNING", 8, 1_234)


def failed(number: int, **found: Any) -> AttemptFailure:
    error = UserCodeError(
        "the function raised ValueError: \x1b[2Jfive.",
        remedy="Mend it.",
        where=Where(step="check", split="in/0", offset=4),
    )
    error.__cause__ = ValueError("five")
    told = failure_of(
        error,
        at_ms=1_000_000,
        attempt=Attempt(number),
        checkpoint=CheckpointId(7),
        progressed=False,
        ran_ms=61_500,
    )
    return replace(told, **found)


def test_d3_status_tells_the_newest_failures_and_which_will_come_again(ask, job):
    early = failed(1, attempt=None, checkpoint=None, worker=WorkerId(2))
    job.now = replace(STATUS, failures=(failed(5, again=True), failed(4, progressed=True), early, failed(3)))
    told = ask("status", "counts").stdout
    assert "newest failures (3 of 4):" in told
    _, newest, older, oldest = told.partition("newest failures")[2].split("\n  1970-")
    assert "attempt 5, began at checkpoint 7, published nothing, ran 1m 1s" in newest
    assert "UserCodeError (ValueError), step 'check', at in/0 offset 4: the function raised" in newest
    assert "no restart will mend that. Mend it." in newest
    assert "attempt 4, began at checkpoint 7, ran 1m 1s" in older
    assert "no restart" not in older
    assert "no attempt yet, before it began" in oldest
    assert "offset 4, worker 2:" in oldest
    assert "\x1b" not in told, "a record's content moves no cursor"


def test_d3_programs_get_all_failures_that_are_remembered(ask, job):
    job.now = replace(STATUS, failures=(failed(5, again=True), failed(4), failed(3), failed(2)))
    told = json.loads(ask("status", "counts", "--json").stdout)["failures"]
    assert [failure["attempt"] for failure in told] == [5, 4, 3, 2]
    assert told[0]["where"] == {"step": "check", "split": "in/0", "offset": 4}
    assert (told[0]["again"], told[0]["response"]) == (True, "restart-from-checkpoint")


def test_c1_a_savepoint_is_made_where_the_asker_says_and_its_path_comes_last(ask, job, tmp_path):
    job.outcome = Outcome(checkpoint=CheckpointId(9), path="/somewhere/savepoint-9")
    result = ask("savepoint", "take", "counts", "--to", "mine")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["savepoint: checkpoint 9", "/somewhere/savepoint-9"]
    assert job.asked.get()[:2] == ("savepoint", os.path.join(os.getcwd(), "mine"))


def test_c6_a_checkpoint_is_taken_by_hand_and_writes_all_anew_where_that_is_asked_for(ask, job):
    assert ask("checkpoints", "take", "counts").stdout == "checkpoint: checkpoint 9\n"
    assert job.asked.get()[:2] == ("checkpoint", None)
    assert ask("checkpoints", "take", "counts", "--full").exit_code == 0
    assert job.asked.get()[:2] == ("full checkpoint", None)


def test_stop_with_and_without_a_savepoint(ask, job):
    assert ask("stop", "counts").stdout == "stopped: checkpoint 9\n"
    assert job.asked.get()[:2] == ("stop", None)
    ask("stop", "counts", "--savepoint", "/s")
    assert job.asked.get()[:2] == ("stop", "/s")


def test_c3_the_backends_own_files_are_asked_for_by_name(ask, job):
    ask("savepoint", "take", "counts", "--to", "/s", "--format", "native")
    assert job.asked.get()[:2] == ("native savepoint", "/s")
    ask("stop", "counts", "--savepoint", "/s", "--format", "native")
    assert job.asked.get()[:2] == ("native stop", "/s")
    assert "'canonical', 'native'" in ask("stop", "counts", "--savepoint", "/s", "--format", "zip").stderr


def test_r24_a_drain_is_asked_for_by_name(ask, job):
    assert ask("stop", "counts", "--drain").stdout == "drained: checkpoint 9\n"
    assert job.asked.get()[:2] == ("drain", None)
    ask("stop", "counts", "--drain", "--savepoint", "/s")
    assert job.asked.get()[:2] == ("drain", "/s")


def test_d5_a_running_job_is_rescaled_by_name(ask, job):
    assert ask("rescale", "counts", "--parallelism", "6").stdout == "rescaled: checkpoint 9\n"
    assert job.asked.get()[:2] == ("rescale to 6", None)
    assert ask("rescale", "counts", "-p", "0").exit_code == 2
    job.outcome = Outcome(refused="the job would run as it does")
    refused = ask("rescale", "counts", "-p", "2")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "error: rescaled was refused: the job would run as it does\n",
    )


def test_a_refused_request_exits_with_1_and_the_reason(ask, job):
    job.outcome = Outcome(refused="one is under way")
    result = ask("savepoint", "take", "counts", "--to", "/s")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "error: savepoint was refused: one is under way\n"


@pytest.mark.parametrize(
    "arguments", [("status", "other"), ("stop", "other"), ("savepoint", "take", "other", "--to", "/s")]
)
def test_without_a_running_job_the_error_names_it_and_exits_with_69(ask, job, arguments):
    result = ask(*arguments)
    assert result.exit_code == 69
    assert result.stderr.startswith("error: job 'other' is not running on this machine")
    assert "\n  remedy: " in result.stderr


def test_without_a_directory_the_error_names_the_setting(processor_command):
    result = processor_command("status", "counts")
    assert result.exit_code == 78
    assert "checkpoint.directory is not set" in result.stderr


def test_a_time_out_needs_its_unit(ask, job):
    result = ask("stop", "counts", "--timeout", "5")
    assert result.exit_code == 78
    assert "--timeout: 5 has no unit" in result.stderr
    assert job.asked.empty()


def test_a_job_that_takes_too_long_is_no_success(ask, job):
    job.outcome = None
    result = ask("stop", "counts", "--timeout", "50ms")
    assert result.exit_code == 69
    assert "did not answer within 50ms" in result.stderr
