"""What probes are told, by the status of a job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor.protocol.job_status import JobStatus as Stage
from processor.service.health import liveness, readiness
from tests.unit.service.fake_job import STATUS

HANG_TIMEOUT_MS = 300_000


@pytest.mark.parametrize("stage", Stage)
def test_a_job_is_ready_while_it_runs_and_then_only(stage: Stage):
    health = readiness(replace(STATUS, state=stage.value))
    assert health.good is (stage is Stage.RUNNING)
    assert stage.value in health.why


@pytest.mark.parametrize(
    ("age_ms", "good"), [(None, True), (0, True), (HANG_TIMEOUT_MS, True), (HANG_TIMEOUT_MS + 1, False)]
)
def test_a_job_lives_unless_its_thread_stands_still_for_longer_than_any_call_may_take(age_ms, good):
    health = liveness(replace(STATUS, turn_age_ms=age_ms), HANG_TIMEOUT_MS)
    assert health.good is good


def test_a_hang_is_told_with_its_bound():
    health = liveness(replace(STATUS, turn_age_ms=400_000), HANG_TIMEOUT_MS)
    assert "400000 ms ago (runtime.hang_timeout: 300000 ms)" in health.why
