"""Two topics with shared keyed state: killed and restarted at another parallelism, exact all the same."""

from __future__ import annotations

import random
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from processor.cli.verify import audit_job
from tests.integration import jobs
from tests.integration.kills import STARTING_S
from tests.integration.scenario import DRAIN_TIMEOUT_S, PARTITIONS_IN, Feeder, Scenario
from tests.kill_budget import budgeted
from tests.topics import create_topic
from tests.waiting import wait_until

KILLS = budgeted(1, 5)

pytestmark = [pytest.mark.kafka, pytest.mark.kill(KILLS), pytest.mark.slow]


@pytest.mark.parametrize("backend", budgeted(["rocksdb"], ["memory", "rocksdb"]))
def test_r18_r27_connected_streams_are_exact_over_kills_and_changes_of_parallelism(
    kafka: str, tmp_path: Path, backend: str
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    scenario = Scenario.make(kafka, tmp_path, job="connect", backend=backend)
    right = create_topic(kafka, "right", partitions=PARTITIONS_IN)
    scenario = replace(scenario, more_topics={"right": right})
    feeders = [
        Feeder(kafka, scenario.topic_in, seed=chance.randrange(2**32)),
        Feeder(kafka, right, seed=chance.randrange(2**32)),
    ]
    feeders[1].next = dict.fromkeys(range(PARTITIONS_IN), jobs.RIGHT_FIRST)
    process, witness = scenario.process(), scenario.witness()
    witness.start()
    for feeder in feeders:
        feeder.start()
    try:
        for _ in range(KILLS):
            process = replace(scenario, parallelism=chance.choice((1, 2, 3))).process()
            process.start()
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(chance.uniform(*STARTING_S))
                raise AssertionError(f"seed {seed}: the job ended by itself with {code}")
            process.kill()
        process = scenario.process()
        process.start()
        for feeder in feeders:
            feeder.stop()
        records = PARTITIONS_IN * sum(feeder.next[0] for feeder in feeders) - PARTITIONS_IN * jobs.RIGHT_FIRST
        wait_until(
            lambda: witness.records >= records or process.exit_code() is not None,
            DRAIN_TIMEOUT_S,
            "all timers have come, and what they put out",
        )
        reports = scenario.finish(process, witness)
    finally:
        process.kill()
        for feeder in feeders:
            feeder.stop()
    reports.append(audit_job(scenario.loaded_graph(), scenario.loaded(), audit=jobs.each_kept_in_order()))
    for report in reports:
        assert report.passed, f"seed {seed}: {report.text()}"
        assert int(report.figure("1", "expected out")) == records
