"""The machine's own time and chance: the only places where the engine asks for them."""

from __future__ import annotations

import secrets
import time


class SystemClock:
    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SystemChance:
    def token(self) -> str:
        return secrets.token_hex(16)

    def below(self, limit: int) -> int:
        return secrets.randbelow(limit)
