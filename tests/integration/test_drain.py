"""Drained for good while it is killed: what waited for event time is out, once, and the job stays finished."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from examples.job_process import PROJECT, JobProcess
from processor.cli.verify import audit_job
from processor.errors import JobError
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from tests.integration import jobs
from tests.integration.scenario import PARTITIONS_IN, RUNNING, Scenario
from tests.kill_budget import budgeted
from tests.waiting import wait_until

KILLS = budgeted(1, 4)

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 100
"""Of each input partition and round."""

KILL_AFTER_S = (0.0, 0.4)
"""From the moment at which it drains."""

DRAINING = "draining:"
"""What the daemon says then."""

TRIES_MAX = 20
END_TIMEOUT_S = 60.0


def drained(scenario: Scenario) -> bool:
    """What the decision log says."""
    directory = open_job_directory(scenario.checkpoints, scenario.loaded_graph().name, token=str, make=False)
    newest = DecisionLog(directory.log).read_all().newest()
    return newest is not None and newest.drained


def asked_to_drain(scenario: Scenario, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "processor", "stop", scenario.job_name, "--drain", *words]
    return subprocess.Popen(
        [*command, *scenario.options], cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def ended_or_said(process: JobProcess, log: Path, words: str) -> Callable[[], bool]:
    """Whether it has ended, or said these words once more than until now."""
    until_now = log.read_text().count(words)
    return lambda: process.exit_code() is not None or log.read_text().count(words) > until_now


def killed_while_it_drains(scenario: Scenario, process: JobProcess, chance: random.Random) -> None:
    """Every start is asked to drain; the first few are killed while they do."""
    log = scenario.folder / "job.log"
    log.touch()
    for number in range(TRIES_MAX):
        said = partial(ended_or_said, process, log)
        runs, drains = said(RUNNING), said(DRAINING)
        process.start()
        wait_until(runs, END_TIMEOUT_S, "it runs")
        asking = asked_to_drain(scenario)
        try:
            wait_until(drains, END_TIMEOUT_S, "it drains")
            wait_s = chance.uniform(*KILL_AFTER_S) if number < KILLS else END_TIMEOUT_S
            code = process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            assert code == 0, process.said()
            return
        finally:
            asking.kill()
            asking.wait()
    raise AssertionError(f"not drained in {TRIES_MAX} tries:\n{process.said()}")


@pytest.mark.kill(KILLS)
def test_r24_killed_while_it_drains_everything_is_out_once_and_the_job_stays_finished(
    kafka: str, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    scenario = Scenario.make(kafka, tmp_path, job="wait", backend="rocksdb", parallelism=2)
    scenario.feed(RECORDS)
    with scenario.running("before") as before:
        scenario.drain(before)
    assert scenario.records_out() == [], "without a drain what waits for event time goes on waiting"

    killed_while_it_drains(scenario, scenario.process(), random.Random(seed))
    assert drained(scenario)
    for audit in (None, jobs.kept_in_order()):
        report = audit_job(scenario.loaded_graph(), scenario.loaded(), audit=audit)
        assert report.passed, f"seed {seed}: {report.text()}"
        assert int(report.figure("1", "found")) == PARTITIONS_IN * RECORDS
    assert not scenario.open_transactions()

    # The same command line again, as a service manager does: nothing is left to do, whatever there is to read.
    scenario.feed(RECORDS, first=RECORDS, seed=2)
    again = scenario.process("again")
    again.start()
    assert again.wait(END_TIMEOUT_S) == 0, again.said()
    assert "it was drained" in again.said()
    assert len(scenario.records_out()) == PARTITIONS_IN * RECORDS


def test_r24_a_drained_savepoint_is_refused_and_an_earlier_one_is_not(kafka: str, tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    scenario = Scenario.make(kafka, tmp_path / "job", job="wait", parallelism=2)
    scenario.feed(RECORDS)
    with scenario.running() as process:
        scenario.drain(process)
        said = scenario.command("savepoint", "take", "--to", str(early), about=scenario.job_name)
        assert said.code == 0, said
        said = scenario.command("stop", "--drain", "--savepoint", str(late), about=scenario.job_name)
        assert said.code == 0, said
        assert said.out.splitlines()[0].startswith("drained: checkpoint ")
        assert said.out.splitlines()[-1] == str(late)
        assert process.wait(END_TIMEOUT_S) == 0, process.said()
    assert len(scenario.records_out()) == PARTITIONS_IN * RECORDS
    assert "drained" in scenario.command("checkpoints", "list", about=scenario.job_name).out

    refused = scenario.process("refused", "--from", str(late), "--accept-duplicates")
    refused.start()
    assert refused.wait(END_TIMEOUT_S) == JobError.exit_code, refused.said()
    assert "was drained" in refused.said()
    assert "--fresh" in refused.said()

    with scenario.running("earlier", "--from", str(early), "--accept-duplicates") as process:
        scenario.drain(process)
        said = scenario.command("stop", "--drain", about=scenario.job_name)
        assert said.code == 0, said
        assert process.wait(END_TIMEOUT_S) == 0, process.said()
    assert len(scenario.records_out()) == 2 * PARTITIONS_IN * RECORDS, "accepted: once more"
