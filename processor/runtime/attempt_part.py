"""A worker process's part in one attempt: connect with the other workers, restore, run, close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from processor.channels.exchange import Exchange
from processor.contracts.peers import Peers
from processor.fault_points import FaultPoint
from processor.ids import Attempt, PublisherId, StepName, WorkerId
from processor.plan.chaining import plan as lay_out
from processor.plan.graph import JobGraph
from processor.plan.placement import Placement
from processor.protocol.messages import Order, Report
from processor.protocol.worker_messages import AwaitVisible, Deploy, Deployed, FromWorker, Visible
from processor.runtime.attempt_resources import AttemptResources, ProcessParts
from processor.runtime.channel_ends import ChannelEnds
from processor.runtime.deployment import Deployment
from processor.runtime.worker import TICK_MS, Worker, idle_ms

VISIBLE_LANE = "visible"

IN_FLIGHT_BYTES: Final = "in_flight_bytes"
"""Gauge of a chain, by the name of its first step: sent to other workers, and not yet taken there."""

MEASURE_MS: Final = 500
"""Between two looks at what is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts(ProcessParts):
    """What outlives an attempt in a worker process: its executors' waits end when those of ``peers`` do."""

    worker: WorkerId
    graph: JobGraph
    peers: Peers
    send: Callable[[FromWorker | Report], None]
    settled: Callable[[], AbstractContextManager[None]]
    """Entered once the subtasks are there, left when they go."""


class AttemptPart:
    """``turn`` runs one round of whatever comes next. What it raises ends the part; ``close`` frees everything."""

    def __init__(self, parts: WorkerParts, deploy: Deploy) -> None:
        self._parts = parts
        self._deploy = deploy
        self._worker: Worker | None = None
        self._exchange: Exchange | None = None
        self._failure: BaseException | None = None
        self._next_tick_ms = self._next_measure_ms = 0
        self._plan = lay_out(parts.graph, deploy.parallelism)
        self._placement = Placement(self._plan, tuple(deploy.addresses))
        self._resources = AttemptResources(self._plan, parts)
        self._executor = self._resources.executor
        others = {worker: at for worker, at in deploy.addresses.items() if worker != parts.worker}
        parts.peers.connect(deploy.incarnation, deploy.attempt, others)
        self._resources.closing.callback(parts.peers.disconnect)

    @property
    def attempt(self) -> Attempt:
        return self._deploy.attempt

    @property
    def runs(self) -> bool:
        """Whether the subtasks are there."""
        return self._worker is not None

    def turn(self) -> None:
        """One round: deliver, tick, move what is on channels, step; waits a moment when there is nothing to do.
        Raises what failed."""
        worker, exchange = self._worker, self._exchange
        worked = self._executor.deliver()
        if worker is None or exchange is None:
            self._build_when_connected()
            return
        now_ms = self._parts.clock.monotonic_ms()
        if now_ms >= self._next_tick_ms:
            self._next_tick_ms = now_ms + TICK_MS
            worker.tick(now_ms)
            if now_ms >= self._next_measure_ms:
                self._next_measure_ms = now_ms + MEASURE_MS
                self._measure(exchange)
        worked = worker.step() or worked
        worked = exchange.turn() or worked
        if self._failure is not None:
            raise self._failure
        if not worked:
            longest_ms = self._parts.settings.runtime.idle_wait
            self._executor.wait(idle_ms(longest_ms, worker.next_processing_time_ms(), self._parts.clock))

    def handle(self, order: Order) -> None:
        """Act on an order of the coordinator."""
        if self._worker is not None:
            self._worker.handle(order)

    def say_that_it_runs(self) -> None:
        """Somebody has not heard it."""
        if self._worker is not None:
            self._parts.send(Deployed(attempt=self.attempt))

    def await_visible(self, asked: AwaitVisible) -> None:
        """See whether everything published can be read, in the background, and say so."""

        def tell(visible: bool) -> None:
            self._parts.send(Visible(attempt=asked.attempt, visible=visible))

        self._executor.submit(
            VISIBLE_LANE,
            lambda: self._resources.publishers.wait_visible(asked.timeout_ms),
            tell,
            self._failed,
        )

    def close(self) -> None:
        """Free everything; also after a failure half-way. What failed in closing is raised last."""
        if self._exchange is not None:
            self._measure(self._exchange, over=True)
        self._resources.close()

    def _measure(self, exchange: Exchange, *, over: bool = False) -> None:
        in_flight: Counter[StepName] = Counter()
        for figure in exchange.figures():
            producer = self._plan.channels[figure.channel.edge].producer
            in_flight[producer] += 0 if over else figure.in_flight_bytes
        for step, total_bytes in in_flight.items():
            self._parts.metrics.set(step, IN_FLIGHT_BYTES, total_bytes)

    def _build_when_connected(self) -> None:
        connections = self._parts.peers.connected()
        if connections is None:
            self._executor.wait(self._parts.settings.runtime.idle_wait)
            return
        parts, deploy, resources = self._parts, self._deploy, self._resources
        runtime = parts.settings.runtime
        exchange = Exchange(connections, window_bytes=runtime.channel_bytes_max)
        ends = ChannelEnds(self._plan, self._placement, parts.worker, runtime, exchange)
        worker = Worker(
            attempt=deploy.attempt,
            incarnation=deploy.incarnation,
            subtasks=Deployment(self._plan, deploy, resources.around, parts.send, ends).build(),
            publishes=self._publishes,
            publishers=resources.publishers,
            publish_tools=resources.publish_tools(self._executor.pause),
            executor=self._executor,
            report=parts.send,
            failed=self._failed,
        )
        resources.closing.callback(worker.close)
        resources.closing.enter_context(parts.settled())
        self._worker, self._exchange = worker, exchange
        parts.faults(FaultPoint.BUILT_NOT_TOLD)
        worker.start()
        self.say_that_it_runs()

    def _publishes(self, identity: PublisherId) -> bool:
        return self._placement.publishes(self._parts.worker, identity)

    def _failed(self, error: BaseException) -> None:
        """Of background work; the first error counts."""
        if self._failure is None:
            self._failure = error
