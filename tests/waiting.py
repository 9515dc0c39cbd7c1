"""Waiting for something outside the test, bounded and named: the only place of the tests that sleeps.

A sleep in a test is a guess: too short on a slow machine, too long on a fast one. A test says what it waits
for; if that does not come to pass, the failure names it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_INTERVAL_S = 0.02


def wait_until(predicate: Callable[[], T], deadline_s: float, what: str) -> T:
    """Call `predicate` until it returns something true, and return that.

    Fails the test with `what` and the last answer when `deadline_s` seconds have passed. The predicate is
    asked at least twice, the last time after the deadline: a machine that stood still fails no test.
    """
    end = time.monotonic() + deadline_s
    while True:
        last_try = time.monotonic() > end
        answer = predicate()
        if answer:
            return answer
        if last_try:
            raise AssertionError(
                f"waited {deadline_s} s in vain until {what}; the last answer was {answer!r}"
            )
        time.sleep(POLL_INTERVAL_S)
