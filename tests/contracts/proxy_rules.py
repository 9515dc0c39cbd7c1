"""What a proxy is told to do to a request, and what became of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import Enum, auto

from tests.contracts.kafka_wire import Api, Request

CAUGHT_TIMEOUT_S = 60.0
DELIVERED_TIMEOUT_S = 60.0


class Fate(Enum):
    """What becomes of a request and of its answer."""

    LATE = auto()
    """It reaches the broker only when it is released, whether or not its client still waits. What the client sends
    behind it on the same connection waits as well, as on a network that stalls."""
    TWICE = auto()
    """It reaches the broker at once, and is answered; a second copy follows when it is released, on a connection
    of its own."""
    UNANSWERED = auto()
    """The broker acts, and the way back is cut: this answer is lost and, as answers come in order, all behind it on
    the same connection. The connection stays, so the client waits for its time-out."""
    CUT_BEFORE = auto()
    """It never reaches the broker; the client's connection is closed."""
    CUT_AFTER = auto()
    """The broker acts; then the client's connection is closed without the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One request to catch, counted from the moment the rule is given to the proxy."""

    api: Api
    fate: Fate
    nth: int = 1
    transactional_id: str | None = None
    """Of this producer only; None: of any that has one."""
    release_after_s: float | None = None
    """It releases itself so long after it was caught; None: when the test says so."""

    def fits(self, request: Request) -> bool:
        """Requests of producers without transactions are nobody's business."""
        if request.api != self.api or request.transactional_id is None:
            return False
        return self.transactional_id in (None, request.transactional_id)


class Catch:
    """A rule at work: filled by the proxy, read and released by the test."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.released = threading.Event()
        self._left = rule.nth
        self._caught = threading.Event()
        self._delivered = threading.Event()
        self._request: Request | None = None
        self._code: int | None = None

    # --- the test's side

    def wait_caught(self, what: str = "") -> Request:
        """Wait until the request has come; it is returned. Of UNANSWERED and CUT_AFTER the broker has acted."""
        if not self._caught.wait(CAUGHT_TIMEOUT_S):
            raise AssertionError(f"no request came for {self.rule} within {CAUGHT_TIMEOUT_S} s\n{what}")
        assert self._request is not None
        return self._request

    @property
    def caught(self) -> bool:
        return self._caught.is_set()

    def release(self) -> None:
        """Let the held request, or its second copy, go to the broker. May be called before it is caught."""
        self.released.set()

    def wait_delivered(self) -> int:
        """Wait until the broker has answered what was released; returns its error code."""
        if not self._delivered.wait(DELIVERED_TIMEOUT_S):
            raise AssertionError(f"the broker did not answer to {self.rule} within {DELIVERED_TIMEOUT_S} s")
        assert self._code is not None
        return self._code

    # --- the proxy's side

    def takes(self, request: Request) -> bool:
        """Whether this request is the one; each is asked about once, in the order in which they come."""
        if self._left == 0 or not self.rule.fits(request):
            return False
        self._left -= 1
        return self._left == 0

    def tell_caught(self, request: Request) -> None:
        self._request = request
        self._caught.set()

    def tell_delivered(self, code: int) -> None:
        self._code = code
        self._delivered.set()
