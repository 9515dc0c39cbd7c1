"""Savepoints whose checkpoint is published and whose copy is under way, each with its deadline (R23, R25)."""

from __future__ import annotations

from dataclasses import dataclass

from processor.ids import CheckpointId
from processor.protocol.pending_checkpoint import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointCopy:
    """``request`` waits for the copy of ``checkpoint``."""

    checkpoint: CheckpointId
    request: Request
    deadline_ms: int


class SavepointCopies:
    def __init__(self) -> None:
        self._under_way: dict[int, SavepointCopy] = {}

    def begin(self, copy: SavepointCopy) -> None:
        self._under_way[copy.request.number] = copy

    def end(self, request: Request) -> SavepointCopy | None:
        """The copy of this request is over; None when it was over before."""
        return self._under_way.pop(request.number, None)

    def overdue(self, now_ms: int) -> SavepointCopy | None:
        """One whose deadline has passed; it still has to be ended."""
        return next((copy for copy in self._under_way.values() if now_ms >= copy.deadline_ms), None)

    def next_ms(self) -> int | None:
        return min((copy.deadline_ms for copy in self._under_way.values()), default=None)

    def requests(self) -> tuple[Request, ...]:
        return tuple(copy.request for copy in self._under_way.values())
