"""Stopped with a savepoint, started from it: nothing is lost or doubled at the seam, in whatever shape (R3, R23)."""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from processor.errors import LogConflict
from processor.fault_points import FaultPoint
from processor.ids import escape_name
from tests.integration.jobs import Counted
from tests.integration.scenario import PARTITIONS_OUT, STOP_TIMEOUT_S, Scenario
from tests.topics import create_topic
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

END_TIMEOUT_S = 60.0
RECORDS = 60
"""Of each input partition and round."""


def stopped_with_savepoint(scenario: Scenario, savepoint: Path, *words: str) -> None:
    process = scenario.process()
    process.start()
    try:
        scenario.drain(process)
        said = scenario.command("stop", "--savepoint", str(savepoint), *words, about=scenario.job_name)
        assert said.code == 0, said
        assert said.out.splitlines()[-1] == str(savepoint)
        assert process.wait(END_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()


def counted(records: Sequence[Any]) -> list[Counted]:
    return [msgspec.json.decode(record.value(), type=Counted) for record in records]


def by_key(records: Sequence[Counted]) -> dict[int, list[Counted]]:
    """Records of one key in their order: all of them are in one partition."""
    found: dict[int, list[Counted]] = defaultdict(list)
    for record in records:
        found[record.k].append(record)
    return found


def into(scenario: Scenario, topic: str, **changed: Any) -> Scenario:
    """The same job with its output in another topic; markers stay where they are."""
    markers = {"kafka.main.marker_topic": scenario.marker_topic}
    return replace(scenario, topic_out=topic, settings={**scenario.settings, **markers}, **changed)


def run_through(scenario: Scenario, name: str, *words: str) -> None:
    process = scenario.process(name, *words)
    process.start()
    try:
        # Before that, the log says what the branch reached that is about to be left.
        wait_until(lambda: "running from" in process.said(), END_TIMEOUT_S, "it runs")
        scenario.drain(process)
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()


def test_r03_r23_r24_two_subtasks_in_memory_go_on_as_three_in_rocksdb_and_again_elsewhere(
    kafka: str, tmp_path: Path
) -> None:
    savepoint = tmp_path / "savepoint"
    kept = {"checkpoint.retained": "1000"}  # the audit compares both sides of the seam
    scenario = Scenario.make(kafka, tmp_path / "job", job="count", parallelism=2, settings=kept)
    scenario.feed(RECORDS, own_keys=True)
    stopped_with_savepoint(scenario, savepoint)
    before = counted(scenario.records_out())
    assert len(before) == 6 * RECORDS

    three = replace(scenario, parallelism=3, backend="rocksdb")
    scenario.feed(RECORDS, first=RECORDS, seed=2, own_keys=True)
    process = three.process("seam", "--from", str(savepoint))
    process.start()
    reports = three.finish(process)
    assert int(reports[0].figure("6", "exact")) == 1, reports[0].text()

    # The same command line again, as systemd would: it goes on, and does not rewind (R3).
    scenario.feed(RECORDS, first=2 * RECORDS, seed=3, own_keys=True)
    process.start()
    reports = three.finish(process)
    assert int(reports[0].figure("6", "seams")) == 1, reports[0].text()
    after = counted(three.records_out())
    behind = by_key([record for record in after if record.s >= RECORDS])
    assert sum(map(len, behind.values())) == 12 * RECORDS

    # From the savepoint into another topic: the same records, in the same order of each key.
    again = into(three, create_topic(kafka, "out", partitions=PARTITIONS_OUT))
    run_through(again, "again", "--from", str(savepoint), "--request", "replay")
    assert by_key(counted(again.records_out())) == behind

    # A fresh directory is another history: under the same name it is refused, under its own it is a copy (R2).
    copy_topic = create_topic(kafka, "out", partitions=PARTITIONS_OUT)
    fresh_directory = replace(again, topic_out=copy_topic).with_settings(
        {"checkpoint.directory": str(tmp_path / "fresh")}
    )
    refused = fresh_directory.process("refused", "--from", str(savepoint))
    refused.start()
    assert refused.wait(END_TIMEOUT_S) == LogConflict.exit_code, refused.said()
    assert "under a name of their own" in refused.said()
    copy = replace(fresh_directory, job="count_copy")
    run_through(copy, "copy", "--from", str(savepoint))
    assert escape_name(copy.job_name) in {path.name for path in (tmp_path / "fresh").iterdir()}
    assert by_key(counted(copy.records_out())) == behind


def test_r03_a_rewind_behind_published_output_is_refused_unless_duplicates_are_accepted(
    kafka: str, tmp_path: Path
) -> None:
    savepoint = tmp_path / "savepoint"
    scenario = Scenario.make(kafka, tmp_path / "job", job="count", parallelism=2)
    scenario.feed(RECORDS, own_keys=True)
    process = scenario.process()
    process.start()
    try:
        scenario.drain(process)
        said = scenario.command("savepoint", "take", "--to", str(savepoint), about=scenario.job_name)
        assert said.code == 0, said
        assert said.out.splitlines()[-1] == str(savepoint)
        scenario.feed(RECORDS, first=RECORDS, seed=2, own_keys=True)
        scenario.drain(process)
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()
    for name, words in {"fresh": ("--fresh",), "from": ("--from", str(savepoint))}.items():
        refused = scenario.process(name, *words)
        refused.start()
        assert refused.wait(END_TIMEOUT_S) == LogConflict.exit_code, refused.said()
        assert scenario.topic_out in refused.said(), refused.said()
        assert "--accept-duplicates" in refused.said(), refused.said()
    scenario.check()

    run_through(scenario, "accepted", "--from", str(savepoint), "--accept-duplicates")
    once = by_key(counted(scenario.records_out()))
    for records in once.values():
        second_time = [record for record in records if record.s >= RECORDS]
        half = len(second_time) // 2
        assert second_time[:half] == second_time[half:], "what came after the savepoint is there twice"


@pytest.mark.kill
def test_r24_killed_while_it_writes_the_savepoint_of_a_stop_the_next_start_finishes_it(
    kafka: str, tmp_path: Path
) -> None:
    savepoint = tmp_path / "savepoint"
    kept = {"checkpoint.retained": "1000"}  # the audit compares both sides of the seam
    scenario = Scenario.make(kafka, tmp_path / "job", job="count", parallelism=2, settings=kept)
    scenario.feed(RECORDS, own_keys=True)
    process = scenario.process_with_fault(f"{FaultPoint.SAVEPOINT_WRITTEN}:1", "kill")
    process.start()
    try:
        scenario.drain(process)
        said = scenario.command("stop", "--savepoint", str(savepoint), about=scenario.job_name)
        assert said.code != 0, "nobody answers"
        assert process.wait(END_TIMEOUT_S) == -signal.SIGKILL, process.said()
    finally:
        process.kill()
    assert savepoint.is_dir()

    # The same line that goes on from the savepoint finds it whole: the decided stop is finished first.
    scenario.feed(RECORDS, first=RECORDS, seed=2, own_keys=True)
    process = scenario.process("seam", "--from", str(savepoint))
    process.start()
    reports = scenario.finish(process)
    assert int(reports[0].figure("6", "exact")) == 1, reports[0].text()
    assert "the savepoint of the stop before is whole" in (scenario.folder / "seam.log").read_text()
