"""The one worker of the embedded runtime: in the coordinator's own thread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from processor.contracts.executor import Executor
from processor.ids import WorkerId
from processor.plan.placement import Placement
from processor.protocol.messages import Order
from processor.protocol.worker_messages import Deploy
from processor.runtime.channel_ends import ChannelEnds
from processor.runtime.deployment import Deployment
from processor.runtime.links import DirectLinks, Links
from processor.runtime.system import long_lived_objects
from processor.runtime.worker import Worker
from processor.runtime.workers import WorkersParts

ALONE = WorkerId(0)


class LocalWorker:
    """See ``processor.runtime.workers.Workers``."""

    def __init__(
        self,
        parts: WorkersParts,
        *,
        links: Callable[[Executor], Links] = DirectLinks,
        settled: Callable[[], AbstractContextManager[None]] = long_lived_objects,
    ) -> None:
        """``settled`` is entered once the subtasks are there, and left when they go."""
        self._parts = parts
        self._settled = settled
        self._worker: Worker | None = None
        self._closing = ExitStack()
        ways = links(parts.around.executor)
        self._send = ways.orders(self._ordered)
        self._report = ways.reports(parts.report)

    def addresses(self) -> dict[WorkerId, str]:
        return {ALONE: ""}

    def deploy(self, deploy: Deploy) -> None:
        parts = self._parts
        placement = Placement(parts.plan, (ALONE,))
        ends = ChannelEnds(parts.plan, placement, ALONE, parts.around.settings.runtime)
        worker = Worker(
            attempt=deploy.attempt,
            incarnation=deploy.incarnation,
            subtasks=Deployment(parts.plan, deploy, parts.around, self._report, ends).build(),
            publishes=lambda identity: placement.publishes(ALONE, identity),
            publishers=parts.publishers,
            publish_tools=parts.publish_tools,
            executor=parts.around.executor,
            report=self._report,
            failed=parts.failed,
        )
        self._closing.callback(worker.close)
        self._closing.enter_context(self._settled())
        self._worker = worker
        worker.start()

    def send(self, order: Order) -> None:
        self._send(order)

    def _ordered(self, order: Order) -> None:
        if self._worker is not None:  # an order of an earlier attempt may arrive before there is one
            self._worker.handle(order)

    def tick(self, now_ms: int) -> None:
        if self._worker is not None:
            self._worker.tick(now_ms)

    def turn(self) -> bool:
        return self._worker is not None and self._worker.step()

    def grown(self, now_ms: int) -> bool:
        return False

    def next_processing_time_ms(self) -> int | None:
        return None if self._worker is None else self._worker.next_processing_time_ms()

    def wait_visible(self, timeout_ms: int) -> bool:
        return self._parts.publishers.wait_visible(timeout_ms)

    def release(self) -> None:
        self._closing.close()
