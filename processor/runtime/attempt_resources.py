"""What one attempt has open in one process, on the coordinator's side or a worker's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.contracts.executor import Executor
from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook
from processor.plan.execution import ExecutionPlan
from processor.runtime.deployment import Surroundings
from processor.runtime.publishers import Publishers
from processor.settings.model import Settings
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import JobStore
from processor.storage.outbox_files import OutboxFiles
from processor.task.publication import PublishTools
from processor.telemetry.log import Log
from processor.telemetry.metrics import Metrics

PUBLISHES_FAILED = "publishes_failed"
"""Counter of a sink: tries to publish that did not go through; they are repeated (case 8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessParts:
    """What outlives attempts in every process of a job."""

    settings: Settings
    store: JobStore
    backend: StateBackend
    clock: Clock
    chance: Chance
    metrics: Metrics
    executor: Callable[[], Executor]
    """Makes a new one for each attempt: what an old attempt still has under way is never delivered."""
    faults: FaultHook
    say: Log


class AttemptResources:
    """Made for an attempt, and closed with it."""

    def __init__(self, plan: ExecutionPlan, parts: ProcessParts) -> None:
        self._parts = parts
        self.executor = parts.executor()
        self.closing = ExitStack()
        """What goes whatever still runs; last."""
        self.connections = ExitStack()
        """What background work may be using; left open when some does not come back."""
        self.around = Surroundings(
            settings=parts.settings,
            files=parts.store.files,
            outboxes=OutboxFiles(parts.store.files),
            backend=parts.backend,
            clock=parts.clock,
            chance=parts.chance,
            executor=self.executor,
            metrics=parts.metrics,
            faults=parts.faults,
        )
        self.publishers = Publishers(
            plan,
            settings=parts.settings.plugins,
            clock=parts.clock,
            metrics=parts.metrics,
            faults=parts.faults,
        )
        self.connections.callback(self.publishers.close)
        self.log = DecisionLog(parts.store.log)

    def publish_tools(self, pause: Callable[[int], None]) -> PublishTools:
        """``pause`` is that of ``PublishTools``."""
        parts = self._parts
        return PublishTools(
            outboxes=self.around.outboxes,
            sealed=lambda attempt: self.log.read_all().sealed(attempt),
            timeout_ms=parts.settings.checkpoint.publish_timeout,
            clock=parts.clock,
            pause=pause,
            faults=parts.faults,
            failed=lambda publisher: parts.metrics.count(publisher.sink, PUBLISHES_FAILED),
        )

    def close(self) -> None:
        """Free everything; also after a failure half-way. What failed in closing is raised last."""
        try:
            if not self.executor.close():
                # A client library's call that does not come back: closing its client under it could end the process.
                # It can do no harm, the next attempt shuts it out.
                self._parts.say.warning("left connections open that are still in use")
                self.connections.pop_all()
            self.connections.close()
        finally:
            self.closing.close()
