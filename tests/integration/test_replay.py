"""History run again on a real broker: from one savepoint to the next, into another topic, killed on the way; the
outcome is what came then, and with other code it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.cli.reporting import FELL_SHORT_EXIT_CODE
from processor.errors import JobError
from processor.savepoint import difference, open_savepoint
from tests.contracts.kafka_rig import read_committed
from tests.integration.scenario import PARTITIONS_IN, PARTITIONS_OUT, Scenario
from tests.kill_budget import budgeted
from tests.topics import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 60
"""Of each input partition and round."""
KILLS = budgeted(1, 3)


@pytest.fixture(scope="module")
def history(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A job that ran for three rounds, with a savepoint after the first and the second."""
    scenario = Scenario.make(kafka, tmp_path_factory.mktemp("history"), job="count", parallelism=2)
    for number in range(3):
        scenario.feed(RECORDS, first=number * RECORDS, own_keys=True)
        with scenario.running() as process:
            scenario.drain(process)
            taken = scenario.command(
                "savepoint", "take", "--to", str(saved(scenario, number)), about=scenario.job_name
            )
            assert taken.code == 0, taken
    return scenario


def saved(scenario: Scenario, number: int) -> Path:
    return scenario.folder / f"saved-{number}"


def replay(scenario: Scenario, topic: str, *words: str, job: str | None = None) -> list[str]:
    """Words of the command, up to its settings."""
    reference = scenario.reference if job is None else f"{scenario.module}:{job}"
    said = ["replay", reference, "--from", str(saved(scenario, 0)), "--topic-map", f"out={topic}", *words]
    return [*said, *scenario.options]


@pytest.mark.kill(KILLS)
def test_c07_a_stretch_is_replayed_through_kills_and_is_what_came_then(history: Scenario) -> None:
    topic = create_topic(history.bootstrap, "again", partitions=PARTITIONS_OUT)
    words = replay(history, topic, "--until", str(saved(history, 1)), "--compare")
    process = history.process_of(words, "replay")
    for _ in range(KILLS):
        history.start(process, "replay")
        process.kill()
    process.start()
    assert process.wait(60) == 0, process.said()
    assert f"[job {history.job_name}-replay attempt {KILLS + 1}]" in process.said()
    assert f"write: {RECORDS * PARTITIONS_IN} records again" in process.said()
    assert ", 0 not as then" in process.said()
    assert len(read_committed(history.bootstrap, topic, PARTITIONS_OUT)) == RECORDS * PARTITIONS_IN
    then, again = (open_savepoint(str(path)) for path in (saved(history, 1), replayed(history)))
    assert list(difference(then, again, "count", "seen")) == []
    # Once more it is done, and adds nothing.
    process.start()
    assert process.wait(60) == 0, process.said()
    assert len(read_committed(history.bootstrap, topic, PARTITIONS_OUT)) == RECORDS * PARTITIONS_IN


def replayed(history: Scenario) -> Path:
    return history.checkpoints / f"{history.job_name}-replay"


def test_c07_changed_code_is_found_to_write_something_else(history: Scenario) -> None:
    topic = create_topic(history.bootstrap, "changed", partitions=PARTITIONS_OUT)
    words = replay(history, topic, "--until", "now", "--as", "changed", "--compare", job="count_twice")
    process = history.process_of(words, "changed")
    process.start()
    assert process.wait(60) == FELL_SHORT_EXIT_CODE, process.said()
    assert f"write: {2 * RECORDS * PARTITIONS_IN} records again" in process.said()
    assert "record 1 of key" in process.said()
    assert "is not what came then" in process.said()


def test_c07_a_replay_into_the_topics_of_the_job_is_refused_before_anything_runs(history: Scenario) -> None:
    words = replay(history, history.topic_out, "--until", "now", "--as", "refused")
    process = history.process_of(words, "refused")
    process.start()
    assert process.wait(60) == JobError.exit_code
    assert "which the job itself reads or writes" in process.said()
    assert not (history.checkpoints / "refused").exists()
