"""Which subtasks of an attempt run, and whose input has ended (A2, A5)."""

from __future__ import annotations

from processor.ids import SubtaskId


class SubtaskStates:
    """All start within a time-out, counted from the first thing that is heard of the attempt (R25)."""

    def __init__(self, subtasks: frozenset[SubtaskId], start_timeout_ms: int) -> None:
        self.all = subtasks
        self._start_timeout_ms = start_timeout_ms
        self._starting = set(subtasks)
        self._ended: set[SubtaskId] = set()
        self._deadline_ms: int | None = None

    @property
    def running(self) -> bool:
        """Every one of them."""
        return not self._starting

    @property
    def all_ended(self) -> bool:
        return self._ended == self.all

    def heard(self, now_ms: int) -> None:
        if self._deadline_ms is None:
            self._deadline_ms = now_ms + self._start_timeout_ms

    def runs(self, subtask: SubtaskId) -> bool:
        """A subtask says that it runs; False when that was known."""
        if subtask not in self._starting:
            return False
        self._starting.discard(subtask)
        return True

    def ended(self, subtask: SubtaskId) -> bool:
        """All inputs of a subtask have ended; False when that was known."""
        if subtask in self._ended:
            return False
        self._ended.add(subtask)
        return True

    def deadline_ms(self) -> int | None:
        """Until when all have to run; None when they do."""
        return self._deadline_ms if self._starting else None

    def late(self) -> str:
        """Names of those that do not run yet."""
        return ", ".join(str(subtask) for subtask in sorted(self._starting))
