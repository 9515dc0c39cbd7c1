"""At full speed, over a hundred checkpoints of 100 ms: order is kept, and no transaction stays open.

Per key and per source partition records leave in the order in which they came. The broker, asked all the time,
shows every transaction of the job to lie between two decisions: it is open for as long as its publish, never
while records are gathered (R13).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from processor.ids import JobName, escape_name
from processor.protocol.entries import CheckpointEntry
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from tests.integration.scenario import Feeder, Scenario
from tests.integration.transaction_watch import TransactionWatch
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CHECKPOINTS = 100
RUN_TIMEOUT_S = 100.0
BACKLOG = 15_000
"""Of each input partition, there before the job starts: it runs at full speed from the first moment."""

SETTINGS = {
    "checkpoint.interval": "100ms",
    "checkpoint.retained": "1000",
    "kafka.main.publish_rows_max": "50000",
}


@pytest.mark.parametrize("job", ["copy", "count"])
def test_r13_order_is_kept_and_transactions_are_short_at_full_speed(
    job: str, kafka: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    scenario = Scenario.make(kafka, tmp_path, job=job, parallelism=2, settings=SETTINGS)
    feeder = Feeder(kafka, scenario.topic_in, seed=7, pause_s=0.002)
    feeder.write(BACKLOG)
    feeder.start()
    watch = TransactionWatch(kafka, f"{escape_name(scenario.job_name)}.")
    witness, process = scenario.witness(), scenario.process()
    watch.start()
    witness.start()
    process.start()
    try:

        def enough() -> bool:
            assert process.exit_code() is None, process.said()
            return scenario.reached().checkpoint > CHECKPOINTS

        wait_until(enough, RUN_TIMEOUT_S, f"{CHECKPOINTS} checkpoints are decided")
    finally:
        feeder.stop()
        if scenario.reached().checkpoint <= CHECKPOINTS:
            process.kill()
    # Of all these checkpoints the audit looks at the state of the last two.
    scenario.with_settings({"checkpoint.retained": "2"}).finish(process, witness)
    watch.stop()

    decided = decisions(scenario)
    with_output = [entry for entry in decided if entry.outboxes()]
    intervals_ms = [later.taken_ms - entry.taken_ms for entry, later in pairwise(decided)]
    longest_ms = max((look.open_ms for look in watch.seen), default=0)
    for name, value in {
        "checkpoints with output": len(with_output),
        "median ms between checkpoints": sorted(intervals_ms)[len(intervals_ms) // 2],
        "looks": watch.looks,
        "open transactions seen": len(watch.seen),
        "longest open ms": longest_ms,
    }.items():
        record_property(name, value)
        print(f"{name}: {value}")
    assert len(with_output) >= CHECKPOINTS // 2, "the job stood idle"
    assert watch.seen, "no transaction was ever seen: this looks at nothing"
    held = [
        (look, entry.checkpoint)
        for look in watch.seen
        for entry in decided
        if look.began_ms < entry.taken_ms < look.seen_ms
    ]
    assert not held, f"open while another checkpoint was decided: {held[:3]}"


def decisions(scenario: Scenario) -> list[CheckpointEntry]:
    directory = open_job_directory(
        scenario.checkpoints, JobName(scenario.job_name), token=secrets.token_hex, make=False
    )
    return list(DecisionLog(directory.log).read_all().checkpoints())
