"""How orders and reports travel between the coordinator and a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from processor.contracts.executor import Executor
from processor.protocol.messages import Order, Report


class Links(Protocol):
    """Both directions of one attempt. What is sent may be late, lost or doubled; what arrives is delivered in
    the thread that runs the attempt."""

    def orders(self, deliver: Callable[[Order], None]) -> Callable[[Order], None]:
        """How the coordinator sends; ``deliver`` is the worker's end."""
        ...

    def reports(self, deliver: Callable[[Report], None]) -> Callable[[Report], None]:
        """How the worker sends; ``deliver`` is the coordinator's end."""
        ...


class DirectLinks:
    """Within one process: sending is delivering."""

    def __init__(self, executor: Executor) -> None:
        """The executor is for links that deliver later, through its ``deliver``."""

    def orders(self, deliver: Callable[[Order], None]) -> Callable[[Order], None]:
        return deliver

    def reports(self, deliver: Callable[[Report], None]) -> Callable[[Report], None]:
        return deliver
