"""Takes places of the decision log for an attempt, and asks again while an outcome is not known (R6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar, assert_never

from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.errors import Unavailable
from processor.protocol.entries import CheckpointEntry, Entry, Rewind, Seal
from processor.storage.decision_log import DecisionLog, Lost, Taken

E = TypeVar("E", bound=Entry)

PAUSE_MS = 100
"""Between two questions about an entry whose outcome is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryWriter:
    """``timeout_ms`` bounds how long an outcome may stay unknown; ``pause`` waits, or raises at the end of
    the attempt."""

    log: DecisionLog
    chance: Chance
    clock: Clock
    pause: Callable[[int], None]
    timeout_ms: int

    def take(self, entry: Entry) -> Taken | Lost:
        """Give the entry a nonce, unless it has one, and take its place.

        Raises Unavailable when the outcome stays unknown: then neither may be assumed, and the next attempt
        finds out.
        """
        signed = entry if entry.nonce else self.sign(entry)
        deadline_ms = self.clock.monotonic_ms() + self.timeout_ms
        while True:
            try:
                return self.log.take(signed)
            except Unavailable:
                if self.clock.monotonic_ms() >= deadline_ms:
                    raise
                self.pause(PAUSE_MS)

    def sign(self, entry: E) -> E:
        """The entry with a nonce of its own, and its time."""
        match entry:
            case Seal() | Rewind():
                return replace(entry, nonce=self.chance.token())
            case CheckpointEntry():
                return replace(entry, nonce=self.chance.token(), taken_ms=self.clock.wall_ms())
            case _:
                assert_never(entry)
