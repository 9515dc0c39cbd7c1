"""A job that is stopped in its tracks (SIGSTOP), overtaken, and woken: it does no harm and ends quietly."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.scenario import STOP_TIMEOUT_S, Feeder, Scenario
from tests.kill_budget import budgeted
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.kill, pytest.mark.slow]

REACH_TIMEOUT_S = 60.0
QUIET_TIMEOUT_S = 90.0
CHECKPOINTS_ON = 3
"""How far the second attempt goes on before the first wakes."""

PUBLISHING = [
    "recovery-opening:1,entry-synced-not-linked:3",
    "entry-taken-not-told:2",
    "entry-taken-not-told:1,taken-over-marker-not-read:2",
    "entry-taken-not-told:1,marker-read:2",
    "half-sent:4",
    "all-sent-not-committed:5",
    "commit-sent-answer-not-seen:5",
    "chunk-published:2",
    "chunk-published:2,half-sent:1",
    "some-sinks-published:1",
    "published-not-recorded:2",
]
OPENING = ["recovery-sealed:1", "recovery-opening:2", "taken-over-marker-not-read:2", "marker-read:2"]
FEW = ["entry-taken-not-told:1,marker-read:2", "recovery-opening:2"]
"""About to publish, and with its markers half written; the simulation has all, in any order."""


@pytest.mark.parametrize("points", budgeted(FEW, [*PUBLISHING, *OPENING]))
def test_r01_r11_r14_zombie_wakes_after_its_successor_has_published(
    points: str, kafka: str, tmp_path: Path
) -> None:
    scenario = Scenario.make(kafka, tmp_path, job="count", parallelism=3)
    feeder = Feeder(kafka, scenario.topic_in, seed=11)
    witness, successor = scenario.witness(), scenario.process("successor")
    zombie = scenario.process_with_fault(points, "stop")
    feeder.write(200)
    feeder.start()
    witness.start()
    try:
        zombie.start()
        wait_until(
            scenario.fault_flag.exists, REACH_TIMEOUT_S, f"{points} is reached; it said:\n{zombie.said()}"
        )
        before = scenario.reached()
        successor.start()

        def published_on() -> bool:
            assert successor.exit_code() is None, successor.said()
            now = scenario.reached()
            return now.published and now.checkpoint >= before.checkpoint + CHECKPOINTS_ON

        wait_until(published_on, REACH_TIMEOUT_S, f"the successor publishes on:\n{successor.said()}")
        assert zombie.exit_code() is None, "it is no zombie: it ended"
        zombie.signal(signal.SIGCONT)
        assert zombie.wait(QUIET_TIMEOUT_S) == 0, f"the zombie did not end quietly:\n{zombie.said()}"
        feeder.stop()
        scenario.drain(successor)
        assert successor.stop(STOP_TIMEOUT_S) == 0, successor.said()
    finally:
        feeder.stop()
        zombie.kill()
        successor.kill()
        witness.stop()
    scenario.check(witness)
