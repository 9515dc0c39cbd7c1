"""What a simulated Kafka asks of the world it lives in: time, chance, and what becomes of requests.

The simulation of the whole engine implements it with a seed; ``CalmWorld`` is a world in which nothing goes
wrong. Everything runs in one thread: a call into a simulated cluster may hand over to other processes of the
world only inside ``wait`` and ``exchange``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from processor.contracts.simulated import Fate, OutsideWorld

EXCHANGE_MS: Final = 1
"""How long every request takes in a calm world."""

__all__ = ["BrokerWorld", "CalmWorld", "Fate"]

CALM_START_MS: Final = 1_700_000_000_000
"""When a calm world begins: some day of 2023, so that timestamps look like timestamps."""


BrokerWorld = OutsideWorld
"""The brokers' name for it."""


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

    def leader_away_ms(self, partition: str) -> int:
        return 0

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._acts_begun += 1
        heapq.heappush(self._acts, (self._now_ms + delay_ms, self._acts_begun, act))

    def monotonic_ms(self) -> int:
        """It serves as ``contracts.clock.Clock`` too."""
        return self._now_ms

    def wall_ms(self) -> int:
        return self._now_ms
