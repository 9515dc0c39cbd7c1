"""Back-pressure on a real broker: an aligned checkpoint is held up, one whose barriers overtake is not; and what it
keeps of the records in flight survives real kills (A10, R27)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from examples.job_process import JobProcess
from processor.errors import SettingsError
from processor.ids import JobName
from processor.protocol.entries import CheckpointEntry
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from tests.integration.scenario import Scenario
from tests.integration.slow_jobs import SLOW_WHILE
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TIMEOUT_S = 120.0
GIVEN_UP = "it took longer than its time-out"
RECORDS = 400
"""Of each of the six partitions: a minute's work of the slow step."""

MANY = 200
"""Records in flight."""

BACK_PRESSURE = {
    "runtime.parallelism": "6",
    "runtime.batch_records_max": "10",
    "runtime.channel_batches_max": "64",
    "runtime.elements_per_turn": "1",
    "checkpoint.timeout": "6s",
    "checkpoint.tolerated_failures": "1000",
}
"""Far more records fit into the channels than the slow step takes within the time-out of a checkpoint."""

UNALIGNED = {"checkpoint.unaligned": "true", "checkpoint.alignment_timeout": "100ms"}


@pytest.fixture
def slow(kafka: str, tmp_path: Path) -> Scenario:
    (tmp_path / "slow").touch()
    return Scenario.make(kafka, tmp_path, module="tests.integration.slow_jobs", settings=BACK_PRESSURE)


def start(scenario: Scenario, name: str) -> JobProcess:
    process = scenario.process(name)
    process.start({SLOW_WHILE: str(scenario.folder / "slow")})
    return process


def newest(scenario: Scenario) -> CheckpointEntry | None:
    """None as long as the job has not begun."""
    try:
        directory = open_job_directory(
            scenario.checkpoints, JobName(scenario.job_name), token=lambda: "looking", make=False
        )
    except SettingsError:
        return None
    return DecisionLog(directory.log).read_all().newest()


def in_flight(scenario: Scenario, beyond: int) -> bool:
    """Whether the newest checkpoint is of a later attempt than that, and holds many records in flight."""
    entry = newest(scenario)
    return entry is not None and entry.attempt > beyond and entry.records_in_flight >= MANY


@pytest.mark.kill
def test_r27_an_unaligned_checkpoint_finishes_where_an_aligned_one_is_held_up(slow: Scenario) -> None:
    slow.feed(RECORDS)
    aligned = start(slow.with_settings({"checkpoint.tolerated_failures": "0"}), "aligned")
    try:
        wait_until(lambda: GIVEN_UP in (slow.folder / "aligned.log").read_text(), TIMEOUT_S, "it is held up")
    finally:
        aligned.kill()
    entry = newest(slow)
    assert entry is not None
    assert entry.records_in_flight == 0, "what was decided before the channels were full is aligned"

    overtaking = slow.with_settings(UNALIGNED)
    attempt = entry.attempt
    for number in range(2):
        process = start(overtaking, f"overtaking-{number}")
        try:
            wait_until(
                partial(in_flight, overtaking, attempt),
                TIMEOUT_S,
                "a checkpoint holds many records in flight",
            )
        finally:
            process.kill()
        after = newest(overtaking)
        assert after is not None
        assert "in flight" in overtaking.command("checkpoints", "show", about=slow.job_name).out
        attempt = after.attempt

    (slow.folder / "slow").unlink()
    last = start(overtaking, "last")
    reports = overtaking.finish(last)
    assert int(reports[0].figure("1", "found")) == RECORDS * overtaking.partitions_in


@pytest.mark.kill
def test_r27_records_in_flight_go_by_key_group_to_another_parallelism(slow: Scenario) -> None:
    slow.feed(RECORDS)
    overtaking = slow.with_settings(UNALIGNED)
    process = start(overtaking, "six")
    try:
        wait_until(lambda: in_flight(overtaking, 0), TIMEOUT_S, "a checkpoint holds many records in flight")
    finally:
        process.kill()
    (slow.folder / "slow").unlink()
    rescaled = overtaking.with_settings({"runtime.parallelism": "2"})
    reports = rescaled.finish(start(rescaled, "two"))
    assert int(reports[0].figure("1", "found")) == RECORDS * overtaking.partitions_in
