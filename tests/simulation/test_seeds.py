"""A few hundred seeds, each another job with other faults; the long run is ``make sim``."""

from __future__ import annotations

import pytest

from tests.simulation.chosen import command, job_of, run
from tests.simulation.jobs import JOBS

FIRST = 1_000
SEEDS_PER_TEST = 20
TESTS = 10


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS_PER_TEST * TESTS, SEEDS_PER_TEST))
def test_exactly_once_whatever_goes_wrong(first: int):
    for seed in range(first, first + SEEDS_PER_TEST):
        result = run(seed)
        assert result.good, "\n".join([*result.problems, command(seed, job=job_of(seed), level="heavy")])


@pytest.mark.parametrize("job", JOBS)
def test_every_job_without_faults(job: str):
    result = run(1, job=job, level="none")
    assert result.good, "\n".join(result.problems)
    assert not result.faults
