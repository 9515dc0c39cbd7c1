"""The simulation's jobs on a real broker, killed at random moments: a few of them, once each.

`make kills JOBS=all N=20` kills every one of them twenty times.
"""

from __future__ import annotations

from random import Random, SystemRandom

import pytest

from tests.integration.case_kills import run_all
from tests.integration.simulated_jobs import REAL
from tests.kill_budget import budgeted
from tests.simulation.jobs import JOBS

JOBS_KILLED = budgeted(1, len(REAL))


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.kill(JOBS_KILLED)
def test_jobs_of_the_simulation_are_exact_after_kills_on_a_real_broker(kafka: str) -> None:
    seed = SystemRandom().randrange(2**32)
    outcomes = run_all(kafka, Random(seed).sample(list(REAL), JOBS_KILLED), kills=1, seed=seed)
    assert [outcome.failure for outcome in outcomes] == [""] * JOBS_KILLED, f"seed {seed}"
    assert [outcome.kills for outcome in outcomes] == [1] * JOBS_KILLED, f"seed {seed}"


def test_every_job_of_the_simulation_that_uses_kafka_is_among_them() -> None:
    assert set(JOBS) - set(REAL) == {"table-copy"}
