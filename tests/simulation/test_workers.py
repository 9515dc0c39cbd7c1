"""A job in several simulated worker processes: that it meets what it is there for, and comes through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from processor.channels.exchange import Exchange
from processor.channels.receiving import ReceivingChannel
from processor.fault_points import OF_WORKERS
from processor.ids import CheckpointId
from processor.operators.operator import Collector
from processor.operators.outbox_sink import OutboxSink
from processor.records.batch import Batch
from processor.records.elements import Barrier, Element
from processor.simulation.case import Input
from processor.simulation.faults import Faults
from processor.simulation.injection import Injection
from processor.simulation.operator import run_and_rescale
from processor.simulation.process import SimulatedProcess
from processor.simulation.run import Result, run_seed
from processor.simulation.streams import StreamEnd, Streams
from processor.simulation.trace import Trace
from processor.simulation.world import World
from tests.simulation.chosen import case_of, faults_of, run
from tests.simulation.jobs import PARTS_IN

BETWEEN_WORKERS = Faults(
    points=6,
    kills=8,
    sleeps=20,
    streams_break=10,
    message_lost=0.08,
    message_late=0.1,
    message_doubled=0.05,
    until_ms=15_000,
)
"""Much of what goes wrong between workers, and nothing outside of them."""

MET = (
    "Deploy lost",
    "Deployed lost",
    "Release lost",
    "Released lost",
    "WorkerFailed lost",
    "a worker is gone while deploying",
    "a worker is gone while releasing",
    "a worker is gone in between",
    "a worker is ended by its coordinator while deploying",
    "a worker is ended by its coordinator while releasing",
    "a worker is ended by its coordinator in between",
    "a worker outlives its coordinator",
)
"""Lost and hung workers, and releases that took too long."""

WHILE_PUBLISHING = replace(
    BETWEEN_WORKERS,
    points=12,
    kills=10,
    sleeps=4,
    streams_break=2,
    message_lost=0,
    request_lost=0.02,
    request_slow=0.02,
)
"""Coordinators die while their workers publish."""

JOBS_OF_SEVERAL_SHAPES = (
    "copy",
    "collect",
    "broadcast",
    "union",
    "two-sinks",
    "growing",
    "event-time",
    "drain-overtaken",
)

WINDOW_BYTES = 300


def of(results: Sequence[Result]) -> Counter[str]:
    met: Counter[str] = Counter()
    for result in results:
        assert result.good, (result.seed, *result.problems)
        met.update(result.met)
    return met


def test_d01_d05_workers_are_lost_at_every_moment_and_nothing_else_is():
    seeds = range(1, 16)
    results = [
        run_seed(case_of(seed, ("copy", "count")[seed % 2]), seed, BETWEEN_WORKERS, workers=2 + seed % 2)
        for seed in seeds
    ]
    met = of(results)
    assert [what for what in MET if not met[what]] == []
    struck = {point for result in results for point, _, _ in result.cells}
    assert struck >= set(OF_WORKERS)
    assert sum(result.faults.get("stream breaks", 0) for result in results) > 0


def test_r12_workers_that_outlive_their_coordinator_publish_and_nothing_is_doubled():
    seeds = (155, 387, 473)
    met = of([run_seed(case_of(seed, "copy"), seed, WHILE_PUBLISHING, workers=3) for seed in seeds])
    assert met["a worker without its coordinator passes taken-over-marker-not-read"]
    assert met["a worker without its coordinator passes commit-sent-answer-not-seen"]


def test_d05_a_job_that_goes_on_with_fewer_workers_takes_in_those_that_come_later():
    seeds = range(1, 13)
    results = [
        run_seed(case_of(seed, "count"), seed, BETWEEN_WORKERS, workers=3, keep_trace=True) for seed in seeds
    ]
    of(results)
    told = "\n".join(line for result in results for line in result.trace)
    for what in ("goes on without all workers", "more workers have come", "info: rescaled"):
        assert what in told, what


@pytest.mark.parametrize("job", JOBS_OF_SEVERAL_SHAPES)
def test_jobs_of_every_shape_in_three_workers(job: str):
    result = run(1, job=job, level="none", workers=3)
    assert result.good, "\n".join(result.problems)


@pytest.mark.parametrize("job", ["restore", "shrink", "overtaken-rescaled"])
def test_d04_a_job_is_started_again_with_more_or_fewer_workers(job: str):
    results = [run(seed, job=job, level="light", workers=2) for seed in (1, 2, 3, 4)]
    met = of(results)
    assert all(met[f"the operator starts {workers} workers"] for workers in (1, 2, 3))


def test_d05_a_job_that_runs_is_rescaled_whatever_goes_wrong_meanwhile():
    script = run_and_rescale(before_ms=(300, 300, 300), parallelisms=(3, 1, 2))
    results = [
        run_seed(
            replace(case_of(seed, "count"), script=script), seed, Faults.heavy().times(0.5), workers=1 + seed
        )
        for seed in (1, 2)
    ]
    assert of(results)["a job that runs is rescaled"] > 0


OUTBOX_BYTES_MAX = 600
ROWS_MAX = 60
"""Of an undecided outbox of so many bytes: 20 fill it, and some are on their way when it is full. Hundreds come when
sources of other workers go on for as long as a checkpoint takes on a slow disk."""


class Outboxes:
    """How many rows a sink subtask has ever had that were not decided."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows_most = 0
        rows: Counter[OutboxSink] = Counter()
        on_batch, decided = OutboxSink.on_batch, OutboxSink.decided

        def wrote(sink: OutboxSink, input: int, batch: Batch, out: Collector) -> None:
            on_batch(sink, input, batch, out)
            rows[sink] += len(batch)
            self.rows_most = max(self.rows_most, rows[sink])

        def told(sink: OutboxSink, checkpoint: CheckpointId) -> None:
            decided(sink, checkpoint)
            rows[sink] = 0

        monkeypatch.setattr(OutboxSink, "on_batch", wrote)
        monkeypatch.setattr(OutboxSink, "decided", told)


def test_r09_a_full_outbox_in_one_worker_holds_the_sources_of_all(monkeypatch):
    outboxes = Outboxes(monkeypatch)
    texts = [(n % PARTS_IN, f"{n % PARTS_IN} {n // PARTS_IN} k0".encode()) for n in range(450)]
    case = replace(
        case_of(1, "count"),
        inputs=[Input(step="read", part=part, key=b"k0", value=text) for part, text in texts],
        input_first=True,
        runtime={"outbox_bytes_max": OUTBOX_BYTES_MAX, "batch_records_max": 1, "channel_bytes_max": 1},
        checkpoint={"interval": 200, "timeout": 6_000, "max_concurrent": 1},
    )
    result = run_seed(case, 1, Faults(disk_slow=0.03, until_ms=20_000), workers=3)
    assert result.good, "\n".join(result.problems)
    assert 0 < outboxes.rows_most < ROWS_MAX


def test_a_stream_keeps_its_order_whatever_the_scheduler_does():
    """Seed 50378 of ``overtaken`` in two workers: bytes that arrived in one moment took turns for ever."""
    world = World(1, steps_max=100_000, trace=Trace(keep=False))
    near, far = (
        StreamEnd(SimulatedProcess(world, name), "another", lambda: None) for name in ("near", "far")
    )
    Streams(world, Injection(world, Faults.none())).between(near, far)
    sent = [bytes([number]) for number in range(250)]
    for part in sent:
        near.send([part])
        near.flush()
    received: list[bytes] = []

    def all_received() -> bool:
        received.append(bytes(far.receive()))
        return sum(map(len, received)) == len(sent)

    world.run(all_received)
    assert b"".join(received) == b"".join(sent)


class Channels:
    """What was seen on the channels between workers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full_next_to_free = self.full_overtaken = 0
        turn, overtake = Exchange.turn, ReceivingChannel.overtake

        def turned(exchange: Exchange) -> bool:
            by_peer: dict[int, set[bool]] = {}
            for figure in exchange.figures():
                by_peer.setdefault(figure.peer, set()).add(figure.in_flight_bytes < WINDOW_BYTES)
            self.full_next_to_free += sum(len(free) == 2 for free in by_peer.values())
            return turn(exchange)

        def overtaken(channel: ReceivingChannel, barrier: Barrier) -> tuple[Element, ...]:
            full = channel.waiting_bytes >= WINDOW_BYTES
            elements = overtake(channel, barrier)
            self.full_overtaken += full and any(isinstance(element, Batch) for element in elements)
            return elements

        monkeypatch.setattr(Exchange, "turn", turned)
        monkeypatch.setattr(ReceivingChannel, "overtake", overtaken)


def test_a10_barriers_overtake_on_full_channels_while_others_of_the_connection_are_free(monkeypatch):
    seen = Channels(monkeypatch)
    for seed in (1, 2, 3):
        case = case_of(seed, "overtaken")
        checkpoint = {**case.checkpoint, "alignment_timeout": 0}
        narrow = {**case.runtime, "channel_bytes_max": WINDOW_BYTES}
        case = replace(case, runtime=narrow, checkpoint=checkpoint, parallelism=3, turn_us_max=10_000)
        result = run_seed(case, seed, faults_of(seed, "light"), workers=2)
        assert result.good, "\n".join(result.problems)
    assert seen.full_next_to_free > 0
    assert seen.full_overtaken > 0
