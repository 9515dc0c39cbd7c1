"""What a simulated Kafka asks of the world it lives in: time, chance, and what becomes of requests.

The simulation of the whole engine implements it with a seed; ``CalmWorld`` is a world in which nothing goes
wrong. Everything runs in one thread: a call into a simulated cluster may hand over to other processes of the
world only inside ``wait`` and ``exchange``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol

EXCHANGE_MS: Final = 1
"""How long every request takes in a calm world."""

CALM_START_MS: Final = 1_700_000_000_000
"""When a calm world begins: some day of 2023, so that timestamps look like timestamps."""


class Fate(Enum):
    """What becomes of one request."""

    DELIVERED = auto()
    """It takes effect, and its answer arrives."""
    REQUEST_LOST = auto()
    """It takes no effect, unless it is late (``BrokerWorld.late``); the sender hears nothing."""
    ANSWER_LOST = auto()
    """It takes effect; the sender hears nothing."""
    DOUBLED = auto()
    """It takes effect, its answer arrives, and it takes effect again, late or at once."""


class BrokerWorld(Protocol):
    """The world as a simulated cluster and its clients see it.

    ``request`` is the name of Kafka's own request, then what it is about: ``EndTxn commit job.out.0``,
    ``Produce job.out.0 clicks/2``, ``Fetch clicks/0``. The first word is all that a world need look at.
    """

    def now_ms(self) -> int:
        """Simulated time; it serves as both clocks of the brokers."""
        ...

    def wait(self, wait_ms: int) -> None:
        """The calling process sleeps while others run; raises a BaseException if it is killed meanwhile."""
        ...

    def exchange(self, request: str, client: int) -> Fate:
        """Called once for each request, before it takes effect: its way there. It may wait, hand over to
        others, or raise if the caller is killed. While the broker is down, requests are lost."""
        ...

    def late(self, request: str) -> int | None:
        """After how many milliseconds a request arrives all the same: one that was lost, the second of a
        doubled one, or one whose sender was killed on the way. None: never, or of a doubled one at once."""
        ...

    def nonce(self) -> str:
        """A text that no other call returns."""
        ...

    def stale_read(self, group: str) -> bool:
        """Whether this read of a group's offsets is answered from memory, by a coordinator that slept through
        its succession (R15)."""
        ...

    def visible_after_ms(self, partition: str) -> int:
        """How long after the end of a transaction its marker reaches this partition (``clicks/2``), or a
        group's offsets (``__consumer_offsets job.out.0``) (R17)."""
        ...

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Runs ``act`` once, outside of every process. It neither waits nor raises."""
        ...


class CalmWorld:
    """A world in which nothing goes wrong, for one process: time passes only while it waits or asks."""

    def __init__(self, start_ms: int = CALM_START_MS) -> None:
        self._now_ms = start_ms
        self._acts: list[tuple[int, int, Callable[[], None]]] = []
        self._acts_begun = 0
        self._nonces = 0

    def now_ms(self) -> int:
        return self._now_ms

    def wait(self, wait_ms: int) -> None:
        until_ms = self._now_ms + wait_ms
        while self._acts and self._acts[0][0] <= until_ms:
            due_ms, _, act = heapq.heappop(self._acts)
            self._now_ms = max(self._now_ms, due_ms)
            act()
        self._now_ms = until_ms

    def exchange(self, request: str, client: int) -> Fate:
        self.wait(EXCHANGE_MS)
        return Fate.DELIVERED

    def late(self, request: str) -> int | None:
        return None

    def nonce(self) -> str:
        self._nonces += 1
        return f"nonce-{self._nonces}"

    def stale_read(self, group: str) -> bool:
        return False

    def visible_after_ms(self, partition: str) -> int:
        return 0

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._acts_begun += 1
        heapq.heappush(self._acts, (self._now_ms + delay_ms, self._acts_begun, act))

    def monotonic_ms(self) -> int:
        """It serves as ``contracts.clock.Clock`` too."""
        return self._now_ms

    def wall_ms(self) -> int:
        return self._now_ms
