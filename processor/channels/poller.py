"""Waits for sockets and for other threads at once."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from typing import Protocol

_DRAINED_BYTES = 4_096


class Watched(Protocol):
    """Something with a socket."""

    def fileno(self) -> int: ...

    @property
    def reads(self) -> bool:
        """Whether it wants to know that there is something to read."""
        ...

    @property
    def writes(self) -> bool:
        """Whether it waits until its socket takes something to write."""
        ...

    def ready(self) -> None:
        """There is something to read. Who does not look at it, such as a part of an attempt that has failed, should
        not ``read`` any more: else every wait would end at once."""
        ...


class Poller:
    """See ``processor.contracts.wakeup.Wakeup``. All but ``wake`` is for the thread that waits."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._selector.register(self._reading, selectors.EVENT_READ)
        self._watched: dict[Watched, int] = {}
        """Each with the events its socket is registered for; 0: none."""
        self._woken = False
        """There is a byte in the pipe, or about to be: no need for another."""
        self._closed = False
        self._closing = threading.Lock()
        """Held while writing to the pipe: once it is closed, its number may be that of another file."""

    def watch(self, watched: Watched) -> None:
        """From now on a wait ends when there is something to read, or room for what it waits to write; idempotent."""
        self._watched.setdefault(watched, 0)

    def forget(self, watched: Watched) -> None:
        """To be called while its socket is still open; without effect when it is not watched."""
        if self._watched.pop(watched, 0):
            self._selector.unregister(watched.fileno())

    def wait(self, timeout_ms: int) -> None:
        for watched, registered in self._watched.items():
            events = watched.reads * selectors.EVENT_READ | watched.writes * selectors.EVENT_WRITE
            if events != registered:
                self._register(watched, registered, events)
        for key, events in self._selector.select(timeout_ms / 1_000):
            if key.data is not None and events & selectors.EVENT_READ:
                key.data.ready()
        with contextlib.suppress(BlockingIOError):
            os.read(self._reading, _DRAINED_BYTES)
        # After reading, never before: whoever finds it still set is right not to write, for this wait ends now.
        self._woken = False

    def _register(self, watched: Watched, registered: int, events: int) -> None:
        if not registered:
            self._selector.register(watched.fileno(), events, watched)
        elif not events:
            self._selector.unregister(watched.fileno())
        else:
            self._selector.modify(watched.fileno(), events, watched)
        self._watched[watched] = events

    def wake(self) -> None:
        if self._woken:
            return
        self._woken = True
        with self._closing, contextlib.suppress(BlockingIOError):
            if not self._closed:
                os.write(self._writing, b"\0")

    def close(self) -> None:
        """``wake`` has no effect any more; idempotent."""
        with self._closing:
            closed, self._closed = self._closed, True
        if not closed:
            self._selector.close()
            os.close(self._reading)
            os.close(self._writing)
