"""SIGTERM and Ctrl-C: the first asks for a graceful end, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """While entered, the two signals set ``asked``.

    The second one is seen by a thread of its own, through the file descriptor that Python's C handler writes
    to: a handler in Python would have to wait until the job's thread comes back from a call of a client
    library.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._asked = threading.Event()
        self._look = threading.Event()
        """Whoever waits is to look up."""
        self._wake = wake
        self._count = 0
        self._before: list[tuple[signal.Signals, object]] = []
        self._reading, self._writing = socket.socketpair()
        self._fd_before = -1
        self._watching = threading.Thread(target=self._watch, name="signals", daemon=True)

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def wait(self, timeout_ms: int) -> None:
        """Wait that long, or until a signal comes, or somebody has called ``look_up`` since the last wait."""
        self._look.wait(timeout_ms / 1_000)
        if not self._asked.is_set():
            self._look.clear()

    def pause(self, timeout_ms: int) -> None:
        """Wait that long; the first signal ends the wait, once."""
        if self._look.wait(timeout_ms / 1_000):
            self._look.clear()

    def look_up(self) -> None:
        """From any thread: end the wait, the next one if there is none now."""
        self._look.set()

    def __enter__(self) -> StopSignals:
        self._writing.setblocking(False)
        for number in SIGNALS:
            self._before.append((number, signal.signal(number, self._noted)))
        self._fd_before = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        self._watching.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for number, handler in self._before:
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._writing.close()  # which ends the thread
        self._watching.join()
        self._reading.close()

    def _noted(self, number: int, frame: FrameType | None) -> None:
        """The watching thread does everything."""

    def _watch(self) -> None:
        while received := self._reading.recv(1):
            if received[0] not in SIGNALS:
                continue
            self._count += 1
            if self._count > 1:
                os._exit(128 + received[0])
            self._asked.set()
            self._look.set()
            self._wake()
