"""The audit on a real broker: a run without faults passes, and one planted record more or less does not."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from examples.job_process import PROJECT
from processor.cli.reporting import FELL_SHORT_EXIT_CODE
from tests.integration.kills import run_round
from tests.integration.scenario import STOP_TIMEOUT_S, Scenario, spread
from tests.kill_budget import budgeted

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

VERIFY_TIMEOUT_S = 60.0
FLUSH_TIMEOUT_S = 30.0
COMBINATIONS_KILLED = budgeted(1, 8)
"""Of jobs, backends and parallelism, by chance; `make kills` goes on with them."""


@pytest.fixture
def finished(kafka: str, tmp_path: Path) -> Scenario:
    """A job that has counted everything and was stopped."""
    scenario = Scenario.make(kafka, tmp_path, job="count", backend="rocksdb", parallelism=2)
    scenario.feed(300)
    witness, process = scenario.witness(), scenario.process()
    witness.start()
    process.start()
    try:
        scenario.drain(process)
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()
        witness.stop()
    reports = scenario.check(witness)
    assert int(reports[0].figure("2", "entries")) > 0, "no state was looked at"
    assert int(reports[0].figure("3", "spans")) > 0, "no transaction was looked at"
    assert int(reports[0].figure("3", "looks")) > 0, "the witness saw no end"
    return scenario


def verify(scenario: Scenario) -> tuple[int, str]:
    """`processor verify`, as a person runs it."""
    options = [word for assignment in scenario.assignments for word in ("--set", assignment)]
    done = subprocess.run(
        [sys.executable, "-m", "processor", "verify", scenario.reference, *options],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=VERIFY_TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def plant(scenario: Scenario, topic: str, record: dict[str, int]) -> None:
    producer = Producer({"bootstrap.servers": scenario.bootstrap})
    producer.produce(topic, json.dumps(record).encode(), partition=0)
    assert producer.flush(FLUSH_TIMEOUT_S) == 0


def test_a_count_written_by_somebody_else_is_found(finished: Scenario) -> None:
    code, said = verify(finished)
    assert code == 0, said
    assert "losses 0, duplicates 0" in said
    plant(finished, finished.topic_out, {"p": 0, "s": 0, "k": 1, "n": 1})
    code, said = verify(finished)
    assert code == FELL_SHORT_EXIT_CODE, said
    assert "duplicates 1" in said


def test_input_behind_the_last_checkpoint_is_not_missed(finished: Scenario) -> None:
    plant(finished, finished.topic_in, {"p": 0, "s": 300, "k": 1})
    code, said = verify(finished)
    assert code == 0, said


@pytest.mark.kill(COMBINATIONS_KILLED)
def test_random_kills_of_combinations(kafka: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    outcomes = run_round(kafka, COMBINATIONS_KILLED, random.Random(seed))
    assert [outcome.failure for outcome in outcomes] == [""] * COMBINATIONS_KILLED, f"seed {seed}"
    assert sum(outcome.kills for outcome in outcomes) == COMBINATIONS_KILLED


def test_kills_are_spread_evenly() -> None:
    plan = spread(50, random.Random(1))
    assert sum(kills for *_, kills in plan) == 50
    assert {kills for *_, kills in plan} == {6, 7}
    assert len({run[:3] for run in plan}) == 8
