"""What a worker has on its way to others is measured while its part of an attempt runs, and not beyond."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from processor.contracts.connection import Connection
from processor.ids import Attempt, Incarnation, Position, SplitId, StepName, WorkerId
from processor.operators.aggregates import Count
from processor.protocol.worker_messages import Deploy
from processor.runtime.attempt_part import IN_FLIGHT_BYTES, MEASURE_MS, AttemptPart, WorkerParts
from processor.runtime.stores import make_backend
from processor.stream.job import Job
from processor.telemetry.log import get_log
from processor.telemetry.metrics import Metrics, Series
from tests.unit.channels.kit import connected
from tests.unit.operators.kit import SetClock
from tests.unit.runtime.kit import CountedChance, JobRun
from tests.unit.runtime.test_worker_host import HERE, THERE, Peers
from tests.unit.storage.entries_made import checkpoint
from tests.unit.task.kit import ListSource, MemorySink, OnDemand


class Connected(Peers):
    """The other worker is there, and takes nothing."""

    def connected(self) -> Mapping[WorkerId, Connection]:
        near, _ = connected()
        return {THERE: near}


def same(line: str) -> str:
    return line


def keyed(run: JobRun) -> Job:
    job = Job("keyed")
    lines = job.read("read", run.source).map("lines", same).key_by("by-line", same)
    lines.aggregate("count", Count()).write("write", MemorySink(run.outside))
    return job


@pytest.fixture
def parts(tmp_path: Path) -> WorkerParts:
    source = ListSource({f"lines/{part}": [f"{part}-{7_919 * n}" for n in range(100)] for part in range(2)})
    run = JobRun(tmp_path, source=source, build=keyed, parallelism=2)
    executor = OnDemand()
    return WorkerParts(
        worker=HERE,
        graph=run.job().graph(),
        settings=run.settings,
        store=run.store,
        backend=make_backend(run.settings),
        clock=SetClock(),
        chance=CountedChance(),
        metrics=Metrics(),
        peers=Connected(),
        executor=lambda: executor,
        send=lambda message: None,
        faults=lambda point: None,
        settled=nullcontext,
        say=get_log("test"),
    )


def test_bytes_in_flight_are_shown_by_the_chain_that_has_sent_them_and_gone_with_the_attempt(
    parts: WorkerParts,
):
    splits = {SplitId(f"lines/{part}"): Position(next=0) for part in range(2)}
    part = AttemptPart(
        parts,
        Deploy(
            attempt=Attempt(3),
            incarnation=Incarnation("first"),
            entry=replace(checkpoint(2, 1, 1), subtasks=()),
            unconfirmed={StepName("read"): splits},
            parallelism=2,
            addresses={HERE: "unix:/0", THERE: "unix:/1"},
        ),
    )
    clock = parts.clock
    assert isinstance(clock, SetClock)
    sent = Series(StepName("read"), IN_FLIGHT_BYTES)
    for _ in range(3):
        part.turn()
    assert parts.metrics.snapshot().gauges == {sent: 0}, "measured before the first records were read"
    clock.now_ms += MEASURE_MS
    part.turn()
    assert parts.metrics.snapshot().gauges[sent] > 0
    part.close()
    assert parts.metrics.snapshot().gauges == {sent: 0}
