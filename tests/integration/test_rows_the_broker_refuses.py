"""Rows that a broker would refuse for ever are found before they are decided, and go by policy (R30)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from processor.errors import BadRecord
from tests.integration.row_jobs import Described
from tests.integration.scenario import STOP_TIMEOUT_S, Scenario

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

END_TIMEOUT_S = 60.0
GOOD = [Described(n, key=f"key {n}") for n in range(20)]
"""A key each: of rows with one key, the broker's cleaner may have removed all but the last when they are read."""
CONFIG_OUT = {
    "max.message.bytes": "4000",
    "cleanup.policy": "compact",
    "message.timestamp.after.max.ms": "3600000",  # before Kafka 4 it is unlimited by default
}
FAR_AHEAD_MS = 4_000_000_000_000
REFUSED = {
    "too large with its headers": (Described(100, header_bytes=4_000), "max.message.bytes of 4000"),
    "without key into a compacted topic": (Described(101, key=None), "no key, and the topic is compacted"),
    "outside of the topic's time": (Described(102, at_ms=FAR_AHEAD_MS), "message.timestamp.after.max.ms"),
    "into a partition that is not there": (Described(103, partition=7), "partition 7 does not exist"),
}


def made(kafka: str, folder: Path, job: str) -> Scenario:
    return Scenario.make(
        kafka,
        folder,
        job=job,
        module="tests.integration.row_jobs",
        partitions_in=1,
        partitions_out=2,
        config_out=CONFIG_OUT,
        settings={"runtime.restart.strategy": "none"},
    )


def put(scenario: Scenario, rows: list[Described]) -> None:
    scenario.put([msgspec.json.encode(row) for row in rows])


@pytest.mark.parametrize("kind", REFUSED)
def test_r30_fail_stops_at_the_row_before_it_is_decided(kafka: str, tmp_path: Path, kind: str) -> None:
    refused, why = REFUSED[kind]
    scenario = made(kafka, tmp_path, "failing")
    put(scenario, [*GOOD, refused, Described(21)])
    process = scenario.process()
    process.start()
    assert process.wait(END_TIMEOUT_S) == BadRecord.exit_code, process.said()
    said = process.said()
    assert f"step 'write', at {scenario.topic_in}/0 offset 20" in said, said
    assert why in said, said
    assert f"'{scenario.topic_out}'" in said, said
    assert "Skip()" in said, said
    listed = scenario.command("outbox", "list")
    assert listed.out == "nothing is decided and unpublished\n", listed
    written = [msgspec.json.decode(record.value(), type=Described).n for record in scenario.records_out()]
    assert set(written) <= {row.n for row in GOOD}
    assert len(written) == len(set(written))


def test_r30_skip_leaves_the_rows_out_and_counts_them(kafka: str, tmp_path: Path) -> None:
    scenario = made(kafka, tmp_path, "skipping")
    refused = [row for row, _ in REFUSED.values()] * (len(GOOD) // len(REFUSED))
    put(scenario, [row for pair in zip(GOOD, refused, strict=True) for row in pair])
    process = scenario.process()
    process.start()
    try:
        scenario.drain(process)
        counters = scenario.counters()
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()
    assert counters["write"]["records_skipped"] == len(refused)
    written = [msgspec.json.decode(record.value(), type=Described) for record in scenario.records_out()]
    assert sorted(written, key=lambda row: row.n) == GOOD
