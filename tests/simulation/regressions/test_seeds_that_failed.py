"""Seeds that failed once, with what was wrong. A seed only says so as long as its draws are the same: what it
found is also shown by a test of its own, named here."""

from __future__ import annotations

import pytest

from tests.simulation.chosen import command, run

FAILED_ONCE = {
    ("copy", 39): "a seal took a place that retention had freed: storage/test_decision_log, test_r07_…",
    (
        "copy",
        49,
    ): "a late order to publish read a deleted outbox as damage: unit/runtime/test_worker, test_r13_a_late_…",
    ("copy", 122): "a stop that asked a process which was restarting",
    (
        "event-time",
        25,
    ): "the lost report of an end, and a job that never ended: protocol/test_coordinator_checkpoint",
    (
        "drain",
        50587,
    ): "workers: a checkpoint was decided while a drained job ended: unit/runtime/test_remote_workers, test_r24_…",
    ("restore", 3): "a savepoint that could not be written ends the job all the same",
    (
        "restore",
        2002,
    ): "a savepoint could not replace its own unreadable checkpoint: protocol/test_recovery, test_r03_r08_…",
    ("restore", 4): "the audit compared the wrong checkpoint behind a rewind",
    (
        "timers",
        16,
    ): "a lost report of a start cost the whole time-out of starting: unit/runtime/test_worker, test_a02_…",
    (
        "bounded",
        2993,
    ): "a branch that was left took the place of an ancestor: unit/storage/test_retention, test_r03_r07_…",
    (
        "shrink-overtaken",
        3539,
    ): "a process that had been replaced shut out its heirs and died: nobody was left",
    (
        "restore",
        53,
    ): "the marker was not read again after what was left open had been ended: kafka/test_settling, test_r32_…",
    (
        "drain-overtaken",
        500047,
    ): "it ended with 0 though output of the attempt before could not be read: kafka/test_settling, test_r32_…",
    (
        "broadcast",
        500013,
    ): "a process that had slept forgot for all which marker was settled: kafka/test_settling, test_r32_…",
    ("timers-overtaken", 3130): "the operator stopped a job while it still had records in flight",
    ("timers", 19): "timestamps more than an hour ahead of the brokers are refused for good",
}


@pytest.mark.parametrize(("job", "seed"), FAILED_ONCE)
def test_a_seed_that_failed_once_passes(job: str, seed: int):
    result = run(seed, job=job)
    assert result.good, "\n".join([*result.problems, command(seed, job=job, level="heavy")])
