"""The states of an attempt's subtasks, and what they make of a checkpoint's plan (A2, A5, D3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from processor.ids import SubtaskId
from processor.protocol.state_table import StateTable


class SubtaskStatus(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    """All its inputs have ended. It stays: it still has a part in checkpoints (R9)."""


_SUBTASK = StateTable(
    "subtask",
    SubtaskStatus.STARTING,
    {
        SubtaskStatus.STARTING: (SubtaskStatus.RUNNING,),
        SubtaskStatus.RUNNING: (SubtaskStatus.ENDED,),
        SubtaskStatus.ENDED: (),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """Who has which part in one checkpoint (A5)."""

    must_acknowledge: frozenset[SubtaskId]
    ended: frozenset[SubtaskId]
    """Those of them whose input had ended: their sources send the barrier all the same, and what their outboxes
    still hold goes along, until nothing is undecided."""


class SubtaskStates:
    """All start within a time-out, counted from the first thing that is heard of the attempt (R25)."""

    def __init__(self, subtasks: frozenset[SubtaskId], start_timeout_ms: int) -> None:
        self.all = subtasks
        self._start_timeout_ms = start_timeout_ms
        self._status = dict.fromkeys(sorted(subtasks), _SUBTASK.first)
        self._starting = set(subtasks)
        self._backlog: set[SubtaskId] = set()
        self._deadline_ms: int | None = None

    @property
    def running(self) -> bool:
        """Every one of them."""
        return not self._starting

    @property
    def all_ended(self) -> bool:
        return all(status is SubtaskStatus.ENDED for status in self._status.values())

    @property
    def backlog(self) -> bool:
        """Whether any of them reads a backlog."""
        return bool(self._backlog)

    def plan(self) -> CheckpointPlan:
        """Of a checkpoint that starts now."""
        return CheckpointPlan(must_acknowledge=self.all, ended=self._of(lambda s: s is SubtaskStatus.ENDED))

    def heard(self, now_ms: int) -> None:
        if self._deadline_ms is None:
            self._deadline_ms = now_ms + self._start_timeout_ms

    def runs(self, subtask: SubtaskId) -> bool:
        """A subtask says that it runs; False when that was known."""
        if subtask not in self._starting:
            return False
        self._to(subtask, SubtaskStatus.RUNNING)
        self._starting.discard(subtask)
        return True

    def ended(self, subtask: SubtaskId) -> bool:
        """All inputs of a subtask have ended; False when that was known."""
        if self._status.get(subtask, SubtaskStatus.ENDED) is SubtaskStatus.ENDED:
            return False
        self.runs(subtask)  # it has run, though the report of that may be lost
        self._to(subtask, SubtaskStatus.ENDED)
        self._backlog.discard(subtask)
        return True

    def reads(self, subtask: SubtaskId, *, backlog: bool) -> None:
        """Whether a subtask reads a backlog."""
        if backlog and self._status.get(subtask) is not SubtaskStatus.ENDED:
            self._backlog.add(subtask)
        else:
            self._backlog.discard(subtask)

    def deadline_ms(self) -> int | None:
        """Until when all have to run; None when they do."""
        return self._deadline_ms if self._starting else None

    def late(self) -> str:
        """Names of those that do not run yet."""
        return ", ".join(str(subtask) for subtask in sorted(self._starting))

    def _to(self, subtask: SubtaskId, status: SubtaskStatus) -> None:
        self._status[subtask] = _SUBTASK.step(self._status[subtask], status)

    def _of(self, chosen: Callable[[SubtaskStatus], bool]) -> frozenset[SubtaskId]:
        return frozenset(subtask for subtask, status in self._status.items() if chosen(status))
