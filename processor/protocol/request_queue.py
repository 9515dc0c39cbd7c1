"""The one entry for whoever wants a checkpoint, and what runs next (A4)."""

from __future__ import annotations

from collections.abc import Iterable

from processor.protocol.coordinator_messages import Answer
from processor.protocol.messages import CheckpointKind
from processor.protocol.pending_checkpoint import Request

REQUESTS_MAX = 64
"""Requests by hand that may wait; one more is refused."""

CLOCK = 0
"""Number of requests that nobody waits for."""


class RequestQueue:
    """Requests by hand in the order in which they came; the end of a bounded job goes first."""

    def __init__(self) -> None:
        self._waiting: list[Request] = []

    def add(self, request: Request, *, stopping: bool) -> tuple[Answer, ...]:
        """Take a request in, or refuse it by name."""
        if stopping:
            return (Answer(number=request.number, refused="the job is stopping"),)
        if len(self._waiting) >= REQUESTS_MAX:
            return (Answer(number=request.number, refused=f"{REQUESTS_MAX} requests are waiting already"),)
        self._waiting.append(request)
        return ()

    def add_first(self, request: Request) -> None:
        """One that was taken in before; it is not refused now."""
        self._waiting.insert(0, request)

    def add_last(self) -> None:
        """The end of a bounded job: before all others, and never refused, or the job would not end. Once is
        enough."""
        if all(request.kind is not CheckpointKind.LAST for request in self._waiting):
            self.add_first(Request(kind=CheckpointKind.LAST))

    def next(self) -> Request | None:
        return self._waiting.pop(0) if self._waiting else None

    def refuse_all(self, reason: str, others: Iterable[Request] = ()) -> tuple[Answer, ...]:
        """The attempt ends: everybody who waits is told, ``others`` too."""
        asked = [*self._waiting, *others]
        self._waiting.clear()
        return tuple(refusal for request in asked for refusal in answers(request, refused=reason))


def answers(request: Request, *, refused: str) -> tuple[Answer, ...]:
    """The refusal of a request, if anybody waits for it."""
    return () if request.number == CLOCK else (Answer(number=request.number, refused=refused),)
