"""Back-pressure on a real broker, in one worker and in several: an aligned checkpoint waits for the slow step, one
whose barriers overtake does not; and what it keeps of the records in flight survives real kills (A10, R27)."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from processor.runtime.attempt_part import IN_FLIGHT_BYTES
from processor.runtime.progress import BACK_PRESSURE_PERCENT
from tests.integration.held_job import FULL_CHANNELS, TIMEOUT_S, Held
from tests.integration.scenario import Scenario
from tests.integration.skewed_job import SLOW_WHILE
from tests.integration.worker_kills import kill_worker
from tests.kill_budget import budgeted
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PARALLELISM = 3
RECORDS = 1_000
"""Of each of the six partitions: far more than the channels hold, and two minutes' work of the slow step."""

MANY = 400
"""Of the records in front of the slow step, how many at least a checkpoint holds whose barriers overtook: it did not
wait for that step."""

FURTHER = 50
"""Records that the slow step is seen to take while an aligned checkpoint waits."""

MUCH_PERCENT = 30
LITTLE_PERCENT = 10
"""Of the time: back-pressure that is there, and none to speak of."""

UNALIGNED = {"checkpoint.unaligned": "true", "checkpoint.alignment_timeout": "100ms"}


def by_workers(number: int) -> str:
    return f"{number} workers"


@pytest.fixture(params=budgeted([3], [1, 3]), ids=by_workers)
def workers(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def scenario(kafka: str, tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    monkeypatch.setenv(SLOW_WHILE, str(tmp_path / "slow"))
    return Scenario.make(
        kafka,
        tmp_path,
        module="tests.integration.skewed_job",
        job="build",
        parallelism=PARALLELISM,
        settings={**FULL_CHANNELS, "runtime.workers": str(workers)},
    )


def test_a10_an_aligned_checkpoint_waits_for_all_that_is_in_front_of_a_slow_step(
    scenario: Scenario, workers: int
) -> None:
    held = Held(scenario, RECORDS)
    process = held.piled_up("aligned")
    try:
        with ThreadPoolExecutor(1) as others:
            asked = others.submit(held.take_checkpoint)
            wait_until(lambda: scenario.control().checkpoints(None).under_way, TIMEOUT_S, "it is under way")
            taken = held.taken()
            wait_until(lambda: held.taken() >= taken + FURTHER, TIMEOUT_S, "the slow step goes on")
            assert not asked.done(), "what is in front of its barriers is not through"
            shown_which_step_is_slow(held, workers)
            held.open()
            outcome = asked.result()
        assert held.entry_of(outcome).records_in_flight == 0
        held.finish(process)
    finally:
        process.kill()


def shown_which_step_is_slow(held: Held, workers: int) -> None:
    wait_until(
        lambda: held.gauge("read", BACK_PRESSURE_PERCENT) >= MUCH_PERCENT,
        TIMEOUT_S,
        "the readers are held up",
    )
    assert held.gauge("count", BACK_PRESSURE_PERCENT) < LITTLE_PERCENT, "what holds them up is not held up"
    if workers > 1:
        wait_until(lambda: held.gauge("read", IN_FLIGHT_BYTES) > 0, TIMEOUT_S, "records are on their way")
    else:
        assert held.gauge("read", IN_FLIGHT_BYTES) == 0


@pytest.mark.kill
def test_a10_r27_a_checkpoint_that_overtakes_is_complete_while_the_step_is_slow_and_survives_a_kill(
    scenario: Scenario, workers: int
) -> None:
    held = Held(scenario.with_settings(UNALIGNED), RECORDS)
    process = held.piled_up("overtaking")
    try:
        assert held.entry_of(held.take_checkpoint()).records_in_flight >= MANY
        if workers > 1:
            kill_worker(process, random.Random(1))
            wait_until(lambda: held.status().attempt == 2, TIMEOUT_S, "another attempt begins")
            wait_until(lambda: held.status().state == "running", TIMEOUT_S, "it runs")
        else:
            process.kill()
            scenario.start(process, "overtaking")
        second = held.entry_of(held.take_checkpoint())
        assert (second.attempt, second.records_in_flight >= MANY) == (2, True)
        shown = scenario.command("checkpoints", "show", about=scenario.job_name).out
        assert "in flight" in shown
        held.open()
        held.finish(process)
    finally:
        process.kill()


@pytest.mark.kill
@pytest.mark.parametrize("workers", budgeted([1], [1, 3]), ids=by_workers)
def test_r27_records_in_flight_go_by_key_group_to_another_parallelism(scenario: Scenario) -> None:
    held = Held(scenario.with_settings(UNALIGNED), RECORDS)
    process = held.piled_up("three")
    try:
        assert held.entry_of(held.take_checkpoint()).records_in_flight >= MANY
    finally:
        process.kill()
    held.open()
    held.scenario = held.scenario.with_settings({"runtime.parallelism": "2", "runtime.workers": "2"})
    rescaled = held.scenario.process("two")
    try:
        held.scenario.start(rescaled, "two")
        held.finish(rescaled)
    finally:
        rescaled.kill()
