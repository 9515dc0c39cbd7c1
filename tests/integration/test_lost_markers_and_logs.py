"""What was kept outside is gone, old or doubled: the job stops and says so, and the operator chooses (R2, R14)."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from examples.job_process import JobProcess
from processor.errors import LogConflict, SettingsError
from processor.ids import JobName, PublisherId, StepName
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from tests.integration.command import Said
from tests.integration.scenario import PARTITIONS_OUT, Scenario
from tests.topics import create_topic, delete_topics
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

GONE_TIMEOUT_S = 30.0
RUNNING_TIMEOUT_S = 60.0
RECORDS = 40
"""Of each input partition: one transaction of the scenario's size."""

# After the opening the first transaction is of the first checkpoint with output.
NOTHING_OUT = "recovery-opening:1,taken-over-marker-not-read:1"
ALL_OUT_NOT_RECORDED = "recovery-opening:1,commit-sent-answer-not-seen:1"


@pytest.fixture
def scenario(kafka: str, tmp_path: Path) -> Scenario:
    scenario = Scenario.make(kafka, tmp_path, job="count")
    scenario.feed(RECORDS)
    return scenario


@pytest.fixture
def started() -> Iterator[list[JobProcess]]:
    """Processes that the test starts and that do not outlive it."""
    processes: list[JobProcess] = []
    yield processes
    for process in processes:
        process.kill()


def ended_with(process: JobProcess) -> tuple[int, str]:
    process.start()
    try:
        return process.wait(RUNNING_TIMEOUT_S), process.said()
    finally:
        process.kill()


def go_on(scenario: Scenario, times: int = 1) -> None:
    """More comes in, for the second time or a later one, and a new process goes on with the job."""
    scenario.feed(RECORDS, first=times * RECORDS)
    process = scenario.process("settled")
    process.start()
    scenario.finish(process)


def stopped_by_choice(scenario: Scenario, job_says: str) -> Said:
    """The job stops with both remedies, and changes nothing; returns what the list of outboxes says."""
    code, said = ended_with(scenario.process())
    assert code == LogConflict.exit_code, said
    assert job_says in said, said
    assert "processor outbox" in said, said
    listed = scenario.command("outbox", "list")
    assert listed.code == 0, listed
    assert "no marker is there" in listed.out, listed
    assert "unknown" in listed.out, listed
    return listed


def lose_group(scenario: Scenario) -> None:
    """Delete the consumer group that holds the marker."""
    identity = str(PublisherId(scenario.loaded_graph().name, StepName("write"), 0))
    admin = AdminClient({"bootstrap.servers": scenario.bootstrap})
    admin.delete_consumer_groups([identity], request_timeout=GONE_TIMEOUT_S)[identity].result()


@pytest.mark.kill
def test_r14_a_deleted_marker_group_stops_the_job_until_the_operator_publishes(scenario: Scenario) -> None:
    scenario.killed_at(NOTHING_OUT)
    lose_group(scenario)
    stopped_by_choice(scenario, "no marker is there")
    published = scenario.command("outbox", "publish")
    assert published.code == 0, published
    assert scenario.command("outbox", "list").out == "nothing is decided and unpublished\n"
    go_on(scenario)


@pytest.mark.kill
def test_r14_a_deleted_marker_group_stops_the_job_until_the_operator_skips(scenario: Scenario) -> None:
    scenario.killed_at(ALL_OUT_NOT_RECORDED)
    lose_group(scenario)
    stopped_by_choice(scenario, "no marker is there")
    skipped = scenario.command("outbox", "skip", "--sink", "write", "--subtask", "0")
    assert skipped.code == 0, skipped
    assert scenario.command("outbox", "list").out == "nothing is decided and unpublished\n"
    go_on(scenario)


def make_marker_topic_anew(scenario: Scenario) -> None:
    delete_topics(scenario.bootstrap, [scenario.marker_topic])
    admin = AdminClient({"bootstrap.servers": scenario.bootstrap})
    wait_until(
        lambda: scenario.marker_topic not in admin.list_topics(timeout=GONE_TIMEOUT_S).topics,
        GONE_TIMEOUT_S,
        "the marker topic is gone",
    )


@pytest.mark.kill
def test_r14_r15_a_marker_topic_made_anew_stops_the_job_until_the_operator_publishes(
    scenario: Scenario,
) -> None:
    scenario.killed_at(NOTHING_OUT)
    make_marker_topic_anew(scenario)
    stopped_by_choice(scenario, "made anew")
    published = scenario.command("outbox", "publish")
    assert published.code == 0, published
    go_on(scenario)


def test_r14_r15_a_marker_topic_made_anew_with_everything_recorded_is_settled_too(scenario: Scenario) -> None:
    process = scenario.process()
    process.start()
    scenario.finish(process)
    make_marker_topic_anew(scenario)
    code, said = ended_with(scenario.process())
    assert code == LogConflict.exit_code, said
    assert "made anew" in said
    assert "processor outbox" in said
    published = scenario.command("outbox", "publish")
    assert published.code == 0, published
    go_on(scenario)


def test_r02_an_emptied_checkpoint_directory_stops_the_job_and_take_over_goes_on(scenario: Scenario) -> None:
    process = scenario.process()
    process.start()
    scenario.finish(process)
    lost = incarnation(scenario)
    shutil.rmtree(scenario.checkpoints)
    code, said = ended_with(scenario.process("emptied"))
    assert code == LogConflict.exit_code, said
    assert f"{lost}" in said, said
    assert "the decision log of job 'kills-count' is empty" in said, said
    assert f"--take-over {lost}" in said, said
    # Everything is read again: into another topic, or it would be there twice.
    anew = replace(
        scenario,
        topic_out=create_topic(scenario.bootstrap, "out", partitions=PARTITIONS_OUT),
        settings={"kafka.main.marker_topic": scenario.marker_topic},
    )
    taken_over = anew.process("taken-over", "--take-over", lost)
    taken_over.start()
    anew.finish(taken_over)
    assert incarnation(anew) != lost
    go_on(anew)  # the markers are of the new log now


def test_r02_r11_an_older_copy_of_the_checkpoint_directory_stops_the_job(scenario: Scenario) -> None:
    process = scenario.process()
    process.start()
    scenario.finish(process)
    older = scenario.folder / "older"
    shutil.copytree(scenario.checkpoints, older)
    go_on(scenario)
    newer = scenario.folder / "newer"
    scenario.checkpoints.rename(newer)
    older.rename(scenario.checkpoints)
    code, said = ended_with(scenario.process("restored"))
    assert code == LogConflict.exit_code, said
    assert "kills-count.write.0 has published" in said, said
    assert "ends with attempt 1" in said, said
    assert "older copy" in said, said
    shutil.rmtree(scenario.checkpoints)
    newer.rename(scenario.checkpoints)  # as the remedy says
    go_on(scenario, times=2)


def test_r02_a_copy_of_the_checkpoint_directory_cannot_be_used_at_the_same_time(
    scenario: Scenario, started: list[JobProcess]
) -> None:
    process = scenario.process()
    process.start()
    scenario.finish(process)
    copy = scenario.folder / "copy"
    shutil.copytree(scenario.checkpoints, copy)
    second = replace(scenario, settings={"checkpoint.directory": str(copy)}).process("second")
    started += [process, second]
    process.start()
    scenario.feed(RECORDS, first=RECORDS)
    scenario.drain(process)
    code, said = ended_with(second)
    assert code == LogConflict.exit_code, said
    assert "kills-count.write.0 has published" in said, said
    scenario.feed(RECORDS, first=2 * RECORDS)
    scenario.finish(process)  # the first only saw somebody look


def test_r02_one_of_two_who_use_copies_of_one_directory_stops_loudly(
    scenario: Scenario, started: list[JobProcess]
) -> None:
    """The copy is made while the job runs, and is used before the job publishes again."""
    process = scenario.process()
    started.append(process)
    process.start()
    scenario.drain(process)
    copy = scenario.folder / "copy"
    shutil.copytree(scenario.checkpoints, copy, ignore=shutil.ignore_patterns("*.sock", "*.tmp"))
    used = replace(scenario, settings={"checkpoint.directory": str(copy)})
    second = used.process("second")
    started.append(second)
    second.start()
    wait_until(lambda: "running from" in second.said(), RUNNING_TIMEOUT_S, "the copy is in use")
    scenario.feed(RECORDS, first=RECORDS)
    assert process.wait(RUNNING_TIMEOUT_S) == LogConflict.exit_code, process.said()
    assert "knows no attempt 2" in process.said(), process.said()
    used.finish(second)


def test_r02_the_directory_of_another_job_is_refused(scenario: Scenario) -> None:
    process = scenario.process()
    process.start()
    scenario.finish(process)
    other = replace(scenario, job="copy")
    (scenario.checkpoints / "kills-count").rename(scenario.checkpoints / "kills-copy")
    code, said = ended_with(other.process("other"))
    assert code == SettingsError.exit_code, said
    assert "belongs to job 'kills-count', and this is job 'kills-copy'" in said, said
    assert "checkpoint.directory" in said, said
    inside = replace(other, settings={"checkpoint.directory": str(scenario.checkpoints / "kills-copy")})
    code, said = ended_with(inside.process("inside"))
    assert code == SettingsError.exit_code, said
    assert "is itself the checkpoint directory of job 'kills-count'" in said, said


def incarnation(scenario: Scenario) -> str:
    directory = open_job_directory(
        scenario.checkpoints, JobName(scenario.job_name), token=secrets.token_hex, make=False
    )
    found = DecisionLog(directory.log).read_all().incarnation
    assert found is not None
    return found
