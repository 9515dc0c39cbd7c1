"""A worker process's part in one attempt: connect with the other workers, restore, run, close."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from processor.channels.exchange import Exchange
from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.contracts.executor import Executor
from processor.contracts.peers import Peers
from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import Attempt, PublisherId, WorkerId
from processor.plan.chaining import plan as lay_out
from processor.plan.graph import JobGraph
from processor.plan.placement import Placement
from processor.protocol.messages import Order, Report
from processor.protocol.worker_messages import AwaitVisible, Deploy, Deployed, FromWorker, Visible
from processor.runtime.channel_ends import ChannelEnds
from processor.runtime.deployment import Deployment, Surroundings
from processor.runtime.publishers import Publishers
from processor.runtime.worker import PUBLISHES_FAILED, TICK_MS, Worker, idle_ms
from processor.settings.model import Settings
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import JobStore
from processor.storage.outbox_files import OutboxFiles
from processor.task.publication import PublishTools
from processor.telemetry.log import Log
from processor.telemetry.metrics import Metrics

VISIBLE_LANE = "visible"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """What outlives an attempt in a worker process."""

    worker: WorkerId
    graph: JobGraph
    settings: Settings
    store: JobStore
    backend: StateBackend
    clock: Clock
    chance: Chance
    metrics: Metrics
    peers: Peers
    executor: Callable[[], Executor]
    """Makes a new one for each attempt; whatever ends a wait of ``peers`` ends its waits too."""
    send: Callable[[FromWorker | Report], None]
    faults: FaultHook
    settled: Callable[[], AbstractContextManager[None]]
    """Entered once the subtasks are there, left when they go."""
    say: Log


class AttemptPart:
    """``turn`` runs one round of whatever comes next. What it raises ends the part; ``close`` frees everything."""

    def __init__(self, parts: WorkerParts, deploy: Deploy) -> None:
        self._parts = parts
        self._deploy = deploy
        self._executor = parts.executor()
        self._closing = ExitStack()
        self._connections = ExitStack()
        self._worker: Worker | None = None
        self._exchange: Exchange | None = None
        self._failure: BaseException | None = None
        self._next_tick_ms = 0
        self._plan = lay_out(parts.graph, deploy.parallelism)
        self._placement = Placement(self._plan, tuple(deploy.addresses))
        self._publishers = Publishers(
            self._plan,
            settings=parts.settings.plugins,
            clock=parts.clock,
            metrics=parts.metrics,
            faults=parts.faults,
        )
        self._connections.callback(self._publishers.close)
        others = {worker: at for worker, at in deploy.addresses.items() if worker != parts.worker}
        parts.peers.connect(deploy.incarnation, deploy.attempt, others)
        self._closing.callback(parts.peers.disconnect)

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
            VISIBLE_LANE, lambda: self._publishers.wait_visible(asked.timeout_ms), tell, self._failed
        )

    def close(self) -> None:
        """Free everything; also after a failure half-way. What failed in closing is raised last."""
        try:
            if not self._executor.close():
                # A client's call that does not come back: see RunningAttempt.close.
                self._parts.say.warning("left connections open that are still in use")
                self._connections.pop_all()
            self._connections.close()
        finally:
            self._closing.close()

    def _build_when_connected(self) -> None:
        connections = self._parts.peers.connected()
        if connections is None:
            self._executor.wait(self._parts.settings.runtime.idle_wait)
            return
        parts, deploy = self._parts, self._deploy
        runtime = parts.settings.runtime
        around = Surroundings(
            settings=parts.settings,
            files=parts.store.files,
            outboxes=OutboxFiles(parts.store.files),
            backend=parts.backend,
            clock=parts.clock,
            chance=parts.chance,
            executor=self._executor,
            metrics=parts.metrics,
            faults=parts.faults,
        )
        exchange = Exchange(connections, window_bytes=runtime.channel_bytes_max)
        ends = ChannelEnds(self._plan, self._placement, parts.worker, runtime, exchange)
        worker = Worker(
            attempt=deploy.attempt,
            incarnation=deploy.incarnation,
            subtasks=Deployment(self._plan, deploy, around, parts.send, ends).build(),
            publishes=self._publishes,
            publishers=self._publishers,
            publish_tools=self._publish_tools(around),
            executor=self._executor,
            report=parts.send,
            failed=self._failed,
        )
        self._closing.callback(worker.close)
        self._closing.enter_context(parts.settled())
        self._worker, self._exchange = worker, exchange
        parts.faults(FaultPoint.BUILT_NOT_TOLD)
        worker.start()
        self.say_that_it_runs()

    def _publish_tools(self, around: Surroundings) -> PublishTools:
        parts = self._parts
        log = DecisionLog(parts.store.log)
        return PublishTools(
            outboxes=around.outboxes,
            sealed=lambda attempt: log.read_all().sealed(attempt),
            timeout_ms=parts.settings.checkpoint.publish_timeout,
            clock=parts.clock,
            pause=self._executor.pause,
            faults=parts.faults,
            failed=lambda publisher: parts.metrics.count(publisher.sink, PUBLISHES_FAILED),
        )

    def _publishes(self, identity: PublisherId) -> bool:
        return self._placement.publishes(self._parts.worker, identity)

    def _failed(self, error: BaseException) -> None:
        """Of background work; the first error counts."""
        if self._failure is None:
            self._failure = error
