"""Asks the broker all the time which transactions of a job are open, and since when."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from typing import Any

from processor.runtime.system import SystemClock

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of its own use of importlib
    from kafka.admin import KafkaAdminClient
    from kafka.errors import CoordinatorLoadInProgressError

STOP_TIMEOUT_S = 30.0
PAUSE_S = 0.005
OPEN = "Ongoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """One look at one transaction that had not ended: it was open from the one moment to the other at least."""

    transactional_id: str
    began_ms: int
    seen_ms: int

    @property
    def open_ms(self) -> int:
        return self.seen_ms - self.began_ms


class TransactionWatch:
    """Looks in a thread of its own, between ``start`` and ``stop``."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._prefix = prefix
        self._clock = SystemClock()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="transaction-watch", daemon=True)
        self.looks = 0
        self.seen: list[OpenTransaction] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Raises what the thread met."""
        self._ended.set()
        self._thread.join(STOP_TIMEOUT_S)
        self._admin.close()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ended.wait(PAUSE_S):
                self._look()
        except BaseException as failure:
            self._failure = failure

    def _look(self) -> None:
        try:
            listed = self._admin.list_transactions(state_filters=[OPEN])
        except CoordinatorLoadInProgressError:
            return  # the first transactions of a broker make it load its coordinators
        self.looks += 1
        ids = [
            str(found.transactional_id)
            for of_broker in listed.values()
            for found in of_broker
            if str(found.transactional_id).startswith(self._prefix)
        ]
        if not ids:
            return
        asked_ms = self._clock.wall_ms()
        for identity, told in self._admin.describe_transactions(ids).items():
            if told.state.value == OPEN and told.transaction_start_time_ms >= 0:
                self.seen.append(
                    OpenTransaction(
                        transactional_id=identity, began_ms=told.transaction_start_time_ms, seen_ms=asked_ms
                    )
                )
