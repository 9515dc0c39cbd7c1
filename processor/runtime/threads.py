"""Background work on threads: completions, the decision log, publishing, discovery."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from processor.contracts.wakeup import Wakeup
from processor.errors import Fenced

T = TypeVar("T")

THREADS_MAX = 16
"""Lanes that run at the same time; the others wait their turn."""

CLOSE_TIMEOUT_S = 5.0
"""How long ``close`` waits for running work. What still runs then can do no harm: a publish is fenced by the
next attempt's opening, a file it writes is garbage."""


@dataclass(slots=True)
class _Work:
    run: Callable[[], Any]
    done: Callable[[Any], None]
    failed: Callable[[BaseException], None]


class EventWakeup:
    """See ``processor.contracts.wakeup.Wakeup``: for a thread that waits for other threads alone."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wait(self, timeout_ms: int) -> None:
        self._event.wait(timeout_ms / 1_000)
        # Whoever has set it meanwhile is right to think that this wait ends.
        self._event.clear()

    def wake(self) -> None:
        self._event.set()


class ThreadedExecutor:
    """An Executor with at most THREADS_MAX daemon threads; a thread serves one lane until it is empty."""

    def __init__(self, wakeup: Wakeup | None = None) -> None:
        """``wakeup``: what the delivering thread waits on, if not for other threads alone."""
        self._lock = threading.Lock()
        self._lanes: dict[str, deque[_Work]] = {}
        self._waiting: deque[str] = deque()
        self._threads: set[threading.Thread] = set()
        self._results: deque[Callable[[], None]] = deque()
        self._wakeup: Wakeup = wakeup or EventWakeup()
        self._closing = threading.Event()

    def submit(
        self,
        lane: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        with self._lock:
            if self._closing.is_set():
                return
            queue = self._lanes.get(lane)
            if queue is not None:
                queue.append(_Work(work, done, failed))
                return
            self._lanes[lane] = deque((_Work(work, done, failed),))
            self._waiting.append(lane)
            if len(self._threads) < THREADS_MAX:
                thread = threading.Thread(target=self._serve, name=f"background {lane}", daemon=True)
                self._threads.add(thread)
                thread.start()

    def deliver(self) -> bool:
        worked = False
        while self._results:
            result = self._results.popleft()
            result()
            worked = True
        return worked

    def wake(self) -> None:
        """End a ``wait`` of the delivering thread; from any thread."""
        self._wakeup.wake()

    def wait(self, timeout_ms: int) -> None:
        """Wait until there is something to deliver, somebody wakes us, or the time has passed."""
        self._wakeup.wait(timeout_ms)

    def pause(self, pause_ms: int) -> None:
        """Inside background work: wait, unless the attempt ends. Raises Fenced when it does."""
        if self._closing.wait(pause_ms / 1_000):
            raise Fenced("the attempt has ended")

    def close(self) -> bool:
        with self._lock:
            self._closing.set()
            self._lanes.clear()
            self._waiting.clear()
            threads = list(self._threads)
        deadline_s = time.monotonic() + CLOSE_TIMEOUT_S
        for thread in threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        self._results.clear()
        return not any(thread.is_alive() for thread in threads)

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads.discard(threading.current_thread())
                    return
                lane = self._waiting.popleft()
            self._run_lane(lane)

    def _run_lane(self, lane: str) -> None:
        while True:
            with self._lock:
                queue = self._lanes.get(lane)
                if not queue:
                    self._lanes.pop(lane, None)
                    return
                work = queue[0]
            result = _outcome(work)
            with self._lock:
                queue = self._lanes.get(lane)
                if queue:
                    queue.popleft()
            if not self._closing.is_set():
                self._results.append(result)
                self._wakeup.wake()


def _outcome(work: _Work) -> Callable[[], None]:
    """Run it; what to call in the delivering thread."""
    try:
        value = work.run()
    except BaseException as error:  # handed over whole: the delivering thread decides
        caught = error
        return lambda: work.failed(caught)
    return lambda: work.done(value)
