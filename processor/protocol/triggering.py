"""Which checkpoint starts next, and when (A2, A3, A4)."""

from __future__ import annotations

from processor.ids import CheckpointId, SubtaskId
from processor.protocol.checkpoint_policy import CheckpointPolicy
from processor.protocol.coordinator_messages import Answer
from processor.protocol.messages import CheckpointKind
from processor.protocol.pacing import Pacing
from processor.protocol.pending_checkpoint import PendingCheckpoint, Request
from processor.protocol.request_queue import CLOCK, RequestQueue
from processor.protocol.subtask_states import SubtaskStates


class Triggering:
    """Owns the ids, the pace, the queue of requests, and what is known of the subtasks."""

    def __init__(
        self, subtasks: frozenset[SubtaskId], next_checkpoint: CheckpointId, policy: CheckpointPolicy
    ) -> None:
        self.subtasks = SubtaskStates(subtasks, policy.start_timeout_ms)
        self.pacing = Pacing(policy.pacing)
        self._policy = policy
        self._queue = RequestQueue()
        self._next_id = next_checkpoint
        self._stopping: CheckpointId | None = None
        """The checkpoint behind whose barrier nothing runs any more."""

    @property
    def next_checkpoint(self) -> CheckpointId:
        """The id that the next one gets."""
        return self._next_id

    # --- what is heard of subtasks

    def runs(self, subtask: SubtaskId, now_ms: int) -> bool:
        """A subtask runs; with the last of them the clock starts. False when that was known."""
        if not self.subtasks.runs(subtask):
            return False
        if self.subtasks.running:
            self.pacing.start(now_ms)
        return True

    def ended(self, subtask: SubtaskId, now_ms: int) -> None:
        """All input of a subtask has ended; once all has, the next checkpoint is the last."""
        self.runs(subtask, now_ms)  # the report of that may have been lost
        if self.subtasks.ended(subtask) and self._stopping is None:
            self._ask_last()
        self.pacing.backlog(self.subtasks.backlog)

    def reads(self, subtask: SubtaskId, *, backlog: bool) -> None:
        """Whether a subtask reads a backlog."""
        self.subtasks.reads(subtask, backlog=backlog)
        self.pacing.backlog(self.subtasks.backlog)

    # --- requests

    def request(self, request: Request) -> tuple[Answer, ...]:
        """Take a request in, or refuse it by name."""
        return self._queue.add(request, stopping=self._stopping is not None)

    def again(self, request: Request) -> None:
        """What was asked for came to nothing through no fault of its own: it goes first."""
        if request.number != CLOCK or request.kind is CheckpointKind.LAST:
            self._queue.add_first(request)

    def refuse_all(self, reason: str, others: tuple[Request, ...]) -> tuple[Answer, ...]:
        """The attempt is over."""
        return self._queue.refuse_all(reason, others)

    # --- one after another

    def next(self, now_ms: int, *, under_way: int, base: CheckpointId) -> PendingCheckpoint | None:
        """The checkpoint that starts now, if one does. ``under_way``: how many are, up to their decision."""
        if self._stopping is not None or not self.subtasks.running:
            return None
        if under_way >= self._policy.max_concurrent:
            return None
        request = self._queue.next()
        if request is None:
            if not self.pacing.due(now_ms):
                return None
            request = Request(kind=CheckpointKind.PERIODIC)
        checkpoint = self._next_id
        self._next_id = CheckpointId(checkpoint + 1)
        self.pacing.triggered(now_ms)
        if request.kind.stops:
            self._stopping = checkpoint
        return PendingCheckpoint(
            checkpoint=checkpoint,
            request=request,
            plan=self.subtasks.plan(),
            base=base,
            expires_ms=now_ms + self._policy.timeout_ms,
        )

    def given_up(self, checkpoint: CheckpointId, now_ms: int) -> bool:
        """A checkpoint was given up; True when it was to be the last, and sources have to go on (R24)."""
        self.pacing.ended(now_ms)
        if self._stopping != checkpoint:
            return False
        self._stopping = None
        # Also when the input has ended while a stop was on its way: nobody will say so again.
        self._ask_last()
        return True

    def next_ms(self) -> int | None:
        """When something may be due by itself."""
        times = [self.pacing.next_ms(), self.subtasks.deadline_ms()]
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def _ask_last(self) -> None:
        if self.subtasks.all_ended:
            self._queue.add_last()
