"""Where background work runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Runs work away from the thread that steps subtasks, and hands results back to that thread.

    Work of one ``lane`` runs one after another in the order it was submitted; lanes are independent. So the
    completions of one subtask never overtake each other, and neither do the publishes of one sink.
    """

    def submit(
        self,
        lane: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Run ``work`` in the background; later, inside ``deliver``, call exactly one of the two."""
        ...

    def deliver(self) -> bool:
        """Call what is due for finished work, in the calling thread. True when anything was called."""
        ...

    def wake(self) -> None:
        """End a ``wait`` of the delivering thread; from any thread."""
        ...

    def wait(self, timeout_ms: int) -> None:
        """In the delivering thread: wait until something can be delivered, somebody wakes us, or the time has
        passed."""
        ...

    def pause(self, pause_ms: int) -> None:
        """Inside background work: wait, unless ``close`` is called. Raises Fenced when it is."""
        ...

    def close(self) -> bool:
        """Drop queued work, wait for running work within a named bound, deliver nothing any more.

        False: some work still runs; what it uses must be left alone.
        """
        ...
