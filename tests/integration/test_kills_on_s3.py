"""Checkpoints in an S3 server that loses and doubles answers, under a job that is killed at random moments."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.integration.kills import STARTING_SHARE, run_kills
from tests.integration.scenario import Scenario
from tests.integration.unreliable_s3 import unreliable_s3
from tests.kill_budget import budgeted

KILLS = budgeted(1, 5)
STARTING = budgeted(0.0, STARTING_SHARE)
"""A single kill is of a job that runs: one that has just been started may not have begun an attempt."""

pytestmark = [pytest.mark.kafka, pytest.mark.kill(KILLS), pytest.mark.slow]


def test_r05_r06_kills_and_lost_and_doubled_answers_lose_and_double_nothing(
    kafka: str, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    with unreliable_s3(random.Random(seed)) as s3:
        scenario = Scenario.make(
            kafka, tmp_path, job="count", backend="rocksdb", parallelism=3, settings=s3.settings(tmp_path)
        )
        outcome = run_kills(scenario, KILLS, random.Random(seed), starting_share=STARTING)
    assert outcome.failure == "", f"seed {seed}"
    assert outcome.kills == KILLS
    assert outcome.attempts > 1
    assert outcome.records > 0
    assert s3.happened["lose_the_answer"] > 0
    assert s3.happened["serve_twice"] > 0
