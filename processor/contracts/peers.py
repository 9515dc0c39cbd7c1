"""How a worker gets its connections to the other workers of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from processor.contracts.connection import Connection
from processor.ids import Attempt, Incarnation, WorkerId


class Peers(Protocol):
    """One a worker process; outlives attempts. Calls come from the thread that steps subtasks, and none blocks but
    ``wait``."""

    @property
    def address(self) -> str:
        """Where the others reach this worker, such as ``unix:/path`` or ``tcp:host:port``."""
        ...

    def connect(self, incarnation: Incarnation, attempt: Attempt, addresses: Mapping[WorkerId, str]) -> None:
        """Begin to connect with every other worker named, for this attempt alone; connections of earlier ones end.

        Whoever comes with a newer attempt waits until it is connected here; with an older one, is turned away (R21).
        """
        ...

    def connected(self) -> Mapping[WorkerId, Connection] | None:
        """All connections of the attempt, once each is there; None before. Raises AttemptFailed, naming the peer,
        when one cannot be had."""
        ...

    def wait(self, timeout_ms: int) -> None:
        """Wait until a connection has something to read that was not told of, or takes what waits to be written,
        somebody calls ``wake``, or the time has passed."""
        ...

    def wake(self) -> None:
        """End a ``wait``; from any thread."""
        ...

    def disconnect(self) -> None:
        """The attempt is over: close its connections; idempotent."""
        ...

    def close(self) -> None:
        """Close everything, the place where others connect included."""
        ...
