"""The worker processes of a job, as its coordinator has them; they outlive attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from processor.ids import WorkerId
from processor.protocol.messages import Order, Report
from processor.protocol.worker_messages import FromWorker, Joined, ToWorker


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The process has ended, or nothing can be heard of it any more."""

    why: str
    exit_code: int | None = None
    """Of a process that has ended by itself."""


WorkerEvent = Report | FromWorker | Gone


class WorkerPool(Protocol):
    """Calls come from the coordinator's thread."""

    @property
    def workers(self) -> tuple[WorkerId, ...]: ...

    def joined(self) -> Mapping[WorkerId, Joined]:
        """Those that are there, by what they said when they came."""
        ...

    def start_missing(self) -> None:
        """Begin to start those that are not there; returns at once."""
        ...

    def take(self) -> tuple[WorkerId, WorkerEvent] | None:
        """What was heard next; None: nothing is. Of a process that is ``Gone`` nothing follows."""
        ...

    def wait(self, timeout_ms: int) -> None:
        """Wait until something can be taken, or the time has passed."""
        ...

    def wakes(self, wake: Callable[[], None]) -> None:
        """Have this called too, from any thread, when something can be taken; until another is given."""
        ...

    def send(self, worker: WorkerId, message: Order | ToWorker) -> None:
        """Does nothing for one that is not there: it is told to be ``Gone``, or joins first."""
        ...

    def kill(self, worker: WorkerId) -> None:
        """End a process at once; ``take`` tells that it is ``Gone``."""
        ...
