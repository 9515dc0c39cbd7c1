"""``processor probe`` asks the running job, and answers with an exit code."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.errors import Unavailable
from processor.ids import JobName
from processor.protocol.job_status import JobStatus as Stage
from processor.service.control_place import control_place
from processor.service.control_socket import ControlSocket
from processor.telemetry.log import get_log
from tests.unit.service.fake_job import STATUS, FakeJob


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="c-") as directory:
        yield Path(directory)


@pytest.fixture
def job(root: Path) -> Iterator[FakeJob]:
    running = FakeJob()
    server = ControlSocket(running, control_place(root, JobName("counts")), get_log("test"))
    server.start()
    yield running
    server.close()


@pytest.fixture
def probe(processor_command: Any, root: Path):
    def run(what: str) -> tuple[int, str]:
        result = processor_command("probe", what, "counts", PROCESSOR__CHECKPOINT__DIRECTORY=str(root))
        return result.exit_code, result.output

    return run


def test_a_job_that_runs_is_ready_and_lives(probe, job: FakeJob):
    job.now = replace(STATUS, state=Stage.RUNNING.value, turn_age_ms=3)
    assert probe("ready") == (0, "the job is running\n")
    code, said = probe("live")
    assert (code, "last turned 3 ms ago" in said) == (0, True)


def test_a_job_that_restarts_is_not_ready_and_lives(probe, job: FakeJob):
    job.now = replace(STATUS, state=Stage.RESTARTING.value)
    assert probe("ready") == (1, "the job is restarting\n")
    assert probe("live")[0] == 0


def test_a_job_whose_thread_stands_still_does_not_live(probe, job: FakeJob):
    job.now = replace(STATUS, turn_age_ms=10**9)
    assert probe("live")[0] == 1


def test_a_job_that_has_not_begun_to_run_is_not_ready_and_lives(probe):
    code, said = probe("ready")
    assert (code, "job 'counts' is not running on this machine" in said) == (1, True)
    assert probe("live") == (0, "the job has not begun to run yet\n")


def test_a_job_that_does_not_answer_is_not_ready_and_does_not_live(probe, job: FakeJob):
    job.failure = Unavailable("a stand-in for a job that cannot answer")
    assert probe("ready")[0] != 0
    assert probe("live")[0] != 0
