"""A group coordinator sleeps past its succession while an attempt takes over: exact all the same (R15).

Three brokers. The first attempt stands still between a decision and its publishing, still connected to the
coordinator of its marker's group. That broker is paused until another has taken its place. A second attempt
publishes through the other one. Then both sleepers wake: what the first attempt is told from memory must not
make it publish again.
"""

from __future__ import annotations

import secrets
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.kafka.dev_broker import BrokerProcess, Cluster
from processor.cli.verify import audit_job
from processor.ids import JobName, PublisherId, StepName
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from tests.contracts.coordinator_topics import lay_out_coordinators
from tests.contracts.kafka_disturbance import outside
from tests.integration.scenario import STOP_TIMEOUT_S, Feeder, Scenario
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PARALLELISM = 2
SUCCESSION_TIMEOUT_S = 60.0
RUN_TIMEOUT_S = 90.0
RECORDS = 100
SLEEPER_LATER_S = 1.0
"""The attempt asks while its coordinator still sleeps: the first thing that one does is to answer."""


def group_coordinator(cluster: Cluster, identity: PublisherId) -> BrokerProcess:
    """The broker that coordinates the identity's group, and not its transactions."""
    with outside(cluster.bootstrap) as outsider:
        group, transactions = outsider.coordinators(str(identity))
    assert group != transactions
    return cluster.brokers[group - 1]


def decided_not_out(scenario: Scenario) -> set[PublisherId]:
    directory = open_job_directory(
        scenario.checkpoints, JobName(scenario.job_name), token=secrets.token_hex, make=False
    )
    newest = DecisionLog(directory.log).read_all().newest()
    assert newest is not None
    return set(newest.outboxes())


def test_r15_an_attempt_takes_over_while_the_group_coordinator_sleeps(
    private_cluster: Cluster, tmp_path: Path
) -> None:
    lay_out_coordinators(private_cluster)
    scenario = Scenario.make(
        private_cluster.bootstrap,
        tmp_path / "job",
        job="count",
        parallelism=PARALLELISM,
        replicas=3,
        settings={"kafka.main.publish_rows_max": "50000"},  # three brokers start slowly, and much is fed
    )
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=3)
    feeder.write(200)
    feeder.start()
    older = scenario.stopped_at(f"recovery-opening:{PARALLELISM},entry-taken-not-told:2")
    feeder.stop()
    sleeper: BrokerProcess | None = None
    newer = None
    try:
        identity = PublisherId(JobName(scenario.job_name), StepName("write"), 0)
        sleeper = group_coordinator(private_cluster, identity)
        assert identity in decided_not_out(scenario), "the first attempt has nothing to publish"
        awake = ",".join(each.bootstrap for each in private_cluster.brokers if each is not sleeper)
        sleeping_node = private_cluster.brokers.index(sleeper) + 1
        sleeper.pause()
        wait_until(
            lambda: group_node(awake, identity) not in (sleeping_node, None),
            SUCCESSION_TIMEOUT_S,
            "succession",
        )
        without_sleeper = replace(scenario, bootstrap=awake)
        newer = without_sleeper.process("newer")
        newer.start()
        without_sleeper.feed(RECORDS, first=feeder.next[0])
        without_sleeper.drain(newer)  # it has published what the older had decided, and more
        threading.Timer(SLEEPER_LATER_S, sleeper.resume).start()
        older.signal(signal.SIGCONT)
        assert older.wait(RUN_TIMEOUT_S) == 0, f"the older attempt did not end quietly:\n{older.said()}"
        scenario.feed(RECORDS, first=feeder.next[0] + RECORDS)
        witness = scenario.witness()
        witness.start()
        scenario.drain(newer)
        assert newer.stop(STOP_TIMEOUT_S) == 0, newer.said()
        witness.stop()
    finally:
        older.kill()
        if newer is not None:
            newer.kill()
        if sleeper is not None:
            sleeper.resume()
    report = audit_job(scenario.loaded_graph(), scenario.loaded())
    assert report.passed, report.text()
    assert witness.records == report.figure("1", "found")
    assert witness.seen_twice == 0


def group_node(bootstrap: str, identity: PublisherId) -> int | None:
    """The node of the group's coordinator; None while it is being chosen."""
    with outside(bootstrap) as outsider:
        return outsider.group_coordinator(str(identity))
