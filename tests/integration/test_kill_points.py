"""SIGKILL at every named point of a checkpoint, of its publishing, and of a recovery; then the audit.

`KILLS=all` runs all of it. What is always run are points behind which something lies on the disk or at the broker,
each once; others of them are in test_cases, test_lost_markers_and_logs, test_damaged_checkpoint and
test_savepoint_seam. The simulation kills at every point, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.integration.scenario import STOP_TIMEOUT_S, Feeder, Scenario
from tests.kill_budget import budgeted

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# Three subtasks open three identities at the start: what they pass comes first, so later passings are named.
# The log's store is tried out by two writers before the first entry: entries are counted from the opening on.
RUNNING = [
    "poll-before-process:20",
    "positions-taken:4",
    "barrier-injected:4",
    "cut-taken:8",
    "state-written-outbox-not:5",
    "all-written-not-acknowledged:5",
    "all-acknowledged:2",
    "recovery-opening:1,entry-synced-not-linked:3",
    "recovery-opening:1,linked-directory-not-synced:3",
    "entry-taken-not-told:2",
    "entry-taken-not-told:1,taken-over-marker-not-read:2",
    "entry-taken-not-told:1,marker-read:2",
    "half-sent:4",
    "all-sent-not-committed:5",
    "commit-sent-answer-not-seen:5",
    "chunk-published:2",
    "chunk-published:2,half-sent:1",
    "chunk-published:4,all-sent-not-committed:1",
    "some-sinks-published:1",
    "some-sinks-published:2",
    "published-not-recorded:2",
    "older-half-deleted:2",
]
# Of a second start: the first one left a decided checkpoint of which nothing was published.
RECOVERING = [
    "recovery-sealed:1",
    "recovery-before-publishing:1",
    "taken-over-marker-not-read:1",
    "half-sent:2",
    "all-sent-not-committed:1",
    "commit-sent-answer-not-seen:1",
    "chunk-published:2,half-sent:1",
    "some-sinks-published:1",
    "published-not-recorded:1",
    "recovery-after-publishing:1",
    "recovery-opening:1",
    "recovery-opening:2",
    "recovery-opening:3",
    "recovery-state-half-read:1",
]
# Where the store is at work, both are shown; elsewhere the one in memory will do.
WITH_ROCKSDB = ["cut-taken:8", "all-written-not-acknowledged:5", "older-half-deleted:2"]
RECOVERING_WITH_ROCKSDB = ["recovery-state-half-read:1"]
FEW = [
    "state-written-outbox-not:5",
    "recovery-opening:1,entry-synced-not-linked:3",
    "recovery-opening:1,linked-directory-not-synced:3",
    "half-sent:4",
    "some-sinks-published:1",
    "published-not-recorded:2",
]
DECIDED = "entry-taken-not-told:2"
"""Of it nothing is published."""

ONE_AFTER_ANOTHER = [
    "recovery-before-publishing:1",
    "recovery-after-publishing:1",
    "recovery-state-half-read:1",
]
"""Each recovery is killed in its turn, further on than the one before."""

ALWAYS_WITH_ROCKSDB = ["cut-taken:8"]


def recoveries(points: Sequence[str], backend: str) -> ParameterSet:
    """Killed where something is decided, and then at each of these points."""
    return pytest.param(
        points, backend, marks=pytest.mark.kill(1 + len(points)), id="-".join([*points, backend])
    )


@pytest.fixture
def scenario(request: pytest.FixtureRequest, kafka: str, tmp_path: Path) -> Scenario:
    backend = getattr(request, "param", "memory")
    return Scenario.make(kafka, tmp_path, job="count", backend=backend, parallelism=3)


@pytest.fixture
def feeder(scenario: Scenario) -> Iterator[Feeder]:
    """Writes until it is stopped, so that every point comes to pass."""
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=5)
    feeder.write(200)
    feeder.start()
    yield feeder
    feeder.stop()


@pytest.mark.kill
@pytest.mark.parametrize(
    ("points", "scenario"),
    [(p, "memory") for p in budgeted(FEW, RUNNING)]
    + [(p, "rocksdb") for p in budgeted(ALWAYS_WITH_ROCKSDB, WITH_ROCKSDB)],
    indirect=["scenario"],
)
def test_r06_r09_r11_a_job_killed_at(points: str, scenario: Scenario, feeder: Feeder) -> None:
    scenario.killed_at(points)
    _go_on_and_check(scenario, feeder)


@pytest.mark.parametrize(
    ("points", "scenario"),
    budgeted(
        [recoveries(ONE_AFTER_ANOTHER, "rocksdb")],
        [
            recoveries(ONE_AFTER_ANOTHER, "rocksdb"),
            *(recoveries([each], "memory") for each in RECOVERING),
            *(recoveries([each], "rocksdb") for each in RECOVERING_WITH_ROCKSDB),
        ],
    ),
    indirect=["scenario"],
)
def test_r01_r11_r14_recoveries_killed_at(points: Sequence[str], scenario: Scenario, feeder: Feeder) -> None:
    scenario.killed_at(DECIDED)
    for each in points:
        scenario.killed_at(each)
    _go_on_and_check(scenario, feeder)


def _go_on_and_check(scenario: Scenario, feeder: Feeder) -> None:
    """Start it as everybody does, let it finish, look at everything."""
    witness, process = scenario.witness(), scenario.process()
    witness.start()
    process.start()
    try:
        feeder.stop()
        scenario.drain(process)
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()
        witness.stop()
    scenario.check(witness)
