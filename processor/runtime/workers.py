"""The workers of one attempt, as its coordinator has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from processor.ids import WorkerId
from processor.plan.execution import ExecutionPlan
from processor.protocol.messages import Order, Report
from processor.protocol.worker_messages import Deploy
from processor.runtime.deployment import Surroundings
from processor.runtime.publishers import Publishers
from processor.task.publication import PublishTools


class Workers(Protocol):
    """Calls come from the thread that runs the attempt, and so do the reports."""

    def addresses(self) -> dict[WorkerId, str]:
        """Every worker that takes part, and where others connect with it. May wait for those that are starting;
        raises Unavailable when too few come."""
        ...

    def deploy(self, deploy: Deploy) -> None:
        """Restore the attempt's subtasks and run them; returns when all do. Raises what kept one from it."""
        ...

    def send(self, order: Order) -> None:
        """Carry an order to every worker."""
        ...

    def tick(self, now_ms: int) -> None:
        """Time has passed; ``now_ms`` is monotonic."""
        ...

    def turn(self) -> bool:
        """What there is to do in this thread; True when anything was done."""
        ...

    def grown(self, now_ms: int) -> bool:
        """Whether more workers are there than take part, and have been for a while. ``now_ms`` is monotonic."""
        ...

    def next_processing_time_ms(self) -> int | None:
        """When a processing-time timer is due that this thread runs."""
        ...

    def wait_visible(self, timeout_ms: int) -> bool:
        """Whether everything that was published can be read (R17); waits for it."""
        ...

    def release(self) -> None:
        """The attempt is over: nothing of it runs or is open afterwards, as far as that can be had. Raises what
        failed in closing, once everything was tried."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersParts:
    """What an attempt has for its workers."""

    plan: ExecutionPlan
    around: Surroundings
    publishers: Publishers
    publish_tools: PublishTools
    report: Callable[[Report], None]
    failed: Callable[[BaseException], None]
    """A worker cannot go on."""
    stop_asked: Callable[[], bool]
    """Whether waiting for workers to start is to end."""
