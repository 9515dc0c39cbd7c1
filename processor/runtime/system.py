"""The machine's own time, chance and memory: the only places where the engine asks for them."""

from __future__ import annotations

import gc
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager


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


@contextmanager
def long_lived_objects() -> Iterator[None]:
    """What is alive now lives for the whole attempt: keep the collector from walking it again and again."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
