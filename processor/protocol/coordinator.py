"""Decides about the checkpoints of one attempt: when one starts, when it is decided, published, over (A1-A16).

A checkpoint passes four places, one at a time in each:

    requested → pending → complete → deciding → publishing → completed
                   └────────┴── given up: abort told to all, files condemned

``complete`` waits until the checkpoint before it is published everywhere (R13); that wait is not part of the
checkpoint's time-out, and meanwhile no further one starts. Late, doubled and unknown messages are results.
"""

from __future__ import annotations

from typing import assert_never

from processor.ids import Attempt, CheckpointId, Marker, PublisherId, SubtaskId
from processor.invariant import invariant
from processor.protocol.checkpoint_policy import CheckpointPolicy
from processor.protocol.coordinator_messages import (
    Action,
    Answer,
    Broadcast,
    Condemn,
    CopySavepoint,
    Decide,
    DecisionLost,
    DecisionTaken,
    DecisionUnknown,
    EndJob,
    Event,
    FailAttempt,
    FencedByLog,
    Ignored,
    PublishedRecorded,
    RecordPublished,
    Requested,
    Retain,
    SavepointCopied,
    Tick,
)
from processor.protocol.decided_checkpoint import DecidedCheckpoint
from processor.protocol.failure_manager import FailureManager
from processor.protocol.messages import (
    AbortCheckpoint,
    Acknowledged,
    CheckpointCompleted,
    CheckpointDecided,
    CheckpointKind,
    Declined,
    InjectBarrier,
    PublicationDone,
    PublicationUnanswered,
    ResumeSources,
    SubtaskEnded,
    SubtaskPressed,
    SubtaskRunning,
)
from processor.protocol.pacing import Pacing
from processor.protocol.pending_checkpoint import Collected, PendingCheckpoint, Request
from processor.protocol.recovered import Recovered
from processor.protocol.request_queue import CLOCK, RequestQueue, answers
from processor.protocol.savepoint_copies import SavepointCopies, SavepointCopy
from processor.protocol.subtask_states import SubtaskStates


class Coordinator:
    """One attempt's coordinator; ``handle`` is its only entry."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        subtasks: frozenset[SubtaskId],
        recovered: Recovered,
        policy: CheckpointPolicy,
    ) -> None:
        self._attempt = attempt
        self._subtasks = SubtaskStates(subtasks, policy.start_timeout_ms)
        self._policy = policy
        self._pacing = Pacing(policy.pacing)
        self._failures = FailureManager(policy.tolerated_failures)
        self._next_id = recovered.next_checkpoint
        self._decided = recovered.checkpoint
        self._markers = dict(recovered.markers)
        self._queue = RequestQueue()
        self._pending: PendingCheckpoint | None = None
        self._complete: PendingCheckpoint | None = None
        self._deciding: PendingCheckpoint | None = None
        self._decision_deadline_ms = 0
        self._publishing: DecidedCheckpoint | None = None
        self._copies = SavepointCopies()
        self._stopping = False
        self._over = False

    @property
    def decided(self) -> CheckpointId:
        """The newest decided checkpoint."""
        return self._decided

    @property
    def markers(self) -> dict[PublisherId, Marker]:
        """What is known to be out, by identity."""
        return dict(self._markers)

    def waiting_for(self) -> tuple[PublisherId, ...]:
        """Identities whose publishing holds up the next decision (R13)."""
        return tuple(sorted(self._publishing.missing)) if self._publishing else ()

    def next_ms(self) -> int | None:
        """When the next Tick is needed at the latest."""
        times = [
            self._pacing.next_ms(),
            self._copies.next_ms(),
            self._subtasks.deadline_ms(),
            None if self._pending is None else self._pending.expires_ms,
            None if self._deciding is None else self._decision_deadline_ms,
            None if self._publishing is None else self._publishing.deadline_ms,
        ]
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def handle(self, event: Event, now_ms: int) -> tuple[Action, ...]:
        """What to do about an event; ``now_ms`` is monotonic."""
        if self._over:
            return (Ignored(event=event, why="the attempt is over"),)
        if getattr(event, "attempt", self._attempt) != self._attempt:
            return (Ignored(event=event, why="another attempt"),)
        self._subtasks.heard(now_ms)
        actions = self._dispatch(event, now_ms)
        return actions + self._trigger(now_ms)

    def _dispatch(self, event: Event, now_ms: int) -> tuple[Action, ...]:
        match event:
            case Tick():
                return self._deadlines(now_ms)
            case SubtaskRunning():
                return self._subtask_running(event, now_ms)
            case SubtaskEnded(subtask=subtask):
                return self._subtask_ended(subtask)
            case SubtaskPressed():
                self._pacing.press()
                return ()
            case Requested(request=request):
                return self._queue.add(request, stopping=self._stopping)
            case Acknowledged():
                return self._acknowledged(event, now_ms)
            case Declined():
                return self._declined(event, now_ms)
            case DecisionTaken(checkpoint=checkpoint):
                return self._decision_taken(checkpoint, now_ms)
            case DecisionLost(checkpoint=checkpoint, by=by):
                invariant(self._deciding is not None, "a lost place was asked for")
                refusals = self._refuse_all("a newer attempt of the job runs")
                return (*refusals, FencedByLog(checkpoint=checkpoint, by=by))
            case DecisionUnknown(checkpoint=checkpoint, reason=reason):
                return self._fail(f"it is not known whether checkpoint {checkpoint} was decided: {reason}")
            case PublicationDone():
                return self._publication_done(event)
            case PublicationUnanswered():
                return self._publication_unanswered(event, now_ms)
            case PublishedRecorded(checkpoint=checkpoint):
                return self._recorded(checkpoint, now_ms)
            case SavepointCopied():
                return self._savepoint_copied(event)
            case _:
                assert_never(event)

    # --- starting

    def _subtask_running(self, event: SubtaskRunning, now_ms: int) -> tuple[Action, ...]:
        if not self._subtasks.runs(event.subtask):
            return (Ignored(event=event, why="runs already"),)
        if self._subtasks.running:
            self._pacing.start(now_ms)
        return ()

    def _subtask_ended(self, subtask: SubtaskId) -> tuple[Action, ...]:
        if self._subtasks.ended(subtask) and not self._stopping:
            self._ask_last()
        return ()

    def _ask_last(self) -> None:
        """Once all input has ended, the next checkpoint is the last."""
        if self._subtasks.all_ended:
            self._queue.add_last()

    # --- starting a checkpoint

    def _trigger(self, now_ms: int) -> tuple[Action, ...]:
        """Start the next checkpoint if one is wanted and the place is free."""
        if self._over or self._stopping or not self._subtasks.running:
            return ()
        if self._pending or self._complete or self._deciding:
            return ()
        request = self._queue.next()
        if request is None:
            if not self._pacing.due(now_ms):
                return ()
            request = Request(kind=CheckpointKind.PERIODIC)
        checkpoint = self._next_id
        self._next_id = CheckpointId(checkpoint + 1)
        self._pacing.triggered(now_ms)
        self._stopping = request.kind.stops
        self._pending = PendingCheckpoint(
            checkpoint=checkpoint,
            request=request,
            must_acknowledge=self._subtasks.all,
            triggered_ms=now_ms,
            expires_ms=now_ms + self._policy.timeout_ms,
        )
        order = InjectBarrier(attempt=self._attempt, checkpoint=checkpoint, kind=request.kind)
        return (Broadcast(order=order),)

    # --- collecting

    def _acknowledged(self, event: Acknowledged, now_ms: int) -> tuple[Action, ...]:
        pending = self._pending
        if pending is None or pending.checkpoint != event.checkpoint:
            # Late: its state files are garbage, its outboxes are listed again by the next one (R9).
            if event.checkpoint <= self._decided:
                return (Ignored(event=event, why="decided already"),)
            waiting = (self._complete, self._deciding)
            if any(place is not None and place.checkpoint == event.checkpoint for place in waiting):
                return (Ignored(event=event, why="complete already"),)
            return (
                Ignored(event=event, why="given up already"),
                Condemn(files=tuple(state.file for state in event.snapshot.keyed)),
            )
        result = pending.collect(event.snapshot, event.metrics)
        if event.snapshot.finished and result in (Collected.COUNTED, Collected.COMPLETE):
            # It says so itself once, which may be lost: without this the job would never end.
            self._subtask_ended(event.snapshot.subtask)
        match result:
            case Collected.COUNTED:
                return ()
            case Collected.COMPLETE:
                self._pending = None
                self._complete = pending
                return self._decide(now_ms)
            case Collected.DOUBLE | Collected.UNKNOWN_SUBTASK:
                return (Ignored(event=event, why=result.value),)
            case _:
                assert_never(result)

    def _declined(self, event: Declined, now_ms: int) -> tuple[Action, ...]:
        if self._pending is None or self._pending.checkpoint != event.checkpoint:
            return (Ignored(event=event, why="not pending"),)
        return self._give_up(f"subtask {event.subtask} declined: {event.reason}", now_ms)

    def _give_up(self, reason: str, now_ms: int) -> tuple[Action, ...]:
        pending, self._pending = self._pending, None
        assert pending is not None
        self._pacing.ended(now_ms)
        checkpoint = pending.checkpoint
        actions: tuple[Action, ...] = (
            Broadcast(order=AbortCheckpoint(attempt=self._attempt, checkpoint=checkpoint, reason=reason)),
            Condemn(files=pending.state_files()),
        )
        if self._stopping:
            self._stopping = False
            resume = ResumeSources(attempt=self._attempt, checkpoint=checkpoint)
            actions += (Broadcast(order=resume),)
            # Also when the input has ended while a stop was on its way: nobody will say so again.
            self._ask_last()
        actions += answers(pending.request, refused=reason)
        if self._failures.failed():
            actions += self._fail(f"checkpoint {checkpoint} failed, the last of too many in a row: {reason}")
        return actions

    # --- deciding

    def _decide(self, now_ms: int) -> tuple[Action, ...]:
        """R13: only when the one before is published everywhere."""
        complete = self._complete
        if complete is None or self._publishing is not None:
            return ()
        self._complete = None
        self._deciding = complete
        self._decision_deadline_ms = now_ms + self._policy.decision_timeout_ms
        return (
            Decide(
                checkpoint=complete.checkpoint,
                parent=self._decided,
                subtasks=tuple(s.without_decided(self._decided) for s in complete.snapshots()),
                expected=tuple(sorted(self._markers.items())),
                savepoint=complete.request.savepoint,
                stop=complete.request.kind.stops,
            ),
        )

    def _decision_taken(self, checkpoint: CheckpointId, now_ms: int) -> tuple[Action, ...]:
        deciding = self._deciding
        invariant(deciding is not None and deciding.checkpoint == checkpoint, "what was asked is decided")
        assert deciding is not None
        self._deciding = None
        self._publishing = DecidedCheckpoint(
            checkpoint=checkpoint,
            request=deciding.request,
            snapshots=tuple(s.without_decided(self._decided) for s in deciding.snapshots()),
            markers=self._markers,
            deadline_ms=now_ms + self._policy.publish_timeout_ms,
        )
        self._decided = checkpoint
        publications = self._publishing.publications
        order = CheckpointDecided(attempt=self._attempt, checkpoint=checkpoint, publications=publications)
        return (Broadcast(order=order), *self._record_if_out())

    # --- publishing

    def _publication_done(self, event: PublicationDone) -> tuple[Action, ...]:
        publishing = self._publishing
        if publishing is None or publishing.checkpoint != event.checkpoint:
            return (Ignored(event=event, why="not publishing"),)
        if not publishing.done(event.publisher, event.marker):
            return (Ignored(event=event, why="published already"),)
        self._markers[event.publisher] = event.marker
        return self._record_if_out()

    def _record_if_out(self) -> tuple[Action, ...]:
        out = self._publishing is not None and self._publishing.out_now()
        return (RecordPublished(checkpoint=self._decided),) if out else ()

    def _publication_unanswered(self, event: PublicationUnanswered, now_ms: int) -> tuple[Action, ...]:
        publishing = self._publishing
        if publishing is None or publishing.checkpoint != event.checkpoint:
            return (Ignored(event=event, why="not publishing"),)
        if event.publisher not in publishing.missing:
            return (Ignored(event=event, why="published already"),)
        if now_ms >= publishing.deadline_ms:
            return self._fail(publishing.overdue(event.reason))
        again = (publishing.missing[event.publisher],)
        order = CheckpointDecided(attempt=self._attempt, checkpoint=event.checkpoint, publications=again)
        return (Broadcast(order=order),)

    def _recorded(self, checkpoint: CheckpointId, now_ms: int) -> tuple[Action, ...]:
        publishing = self._publishing
        if publishing is None or publishing.checkpoint != checkpoint:
            return (Ignored(event=PublishedRecorded(checkpoint=checkpoint), why="not publishing"),)
        self._publishing = None
        self._failures.succeeded()
        self._pacing.ended(now_ms)
        order = CheckpointCompleted(attempt=self._attempt, checkpoint=checkpoint)
        actions: tuple[Action, ...] = (Broadcast(order=order), Retain(checkpoint=checkpoint))
        request = publishing.request
        if request.savepoint:
            deadline_ms = now_ms + self._policy.copy_timeout_ms
            self._copies.begin(SavepointCopy(checkpoint=checkpoint, request=request, deadline_ms=deadline_ms))
            actions += (CopySavepoint(checkpoint=checkpoint, request=request),)
        else:
            actions += self._answer(request, checkpoint)
        return actions + self._decide(now_ms)

    def _savepoint_copied(self, event: SavepointCopied) -> tuple[Action, ...]:
        copy = self._copies.end(event.request)
        if copy is None:
            return (Ignored(event=event, why="answered already"),)
        return self._answer(copy.request, copy.checkpoint, refused=event.failure)

    def _answer(self, request: Request, checkpoint: CheckpointId, refused: str = "") -> tuple[Action, ...]:
        """A checkpoint is decided: a stop can only finish (R24), even when the copy of its savepoint failed;
        that refusal names the checkpoint."""
        actions: tuple[Action, ...] = ()
        if request.number != CLOCK:
            path = "" if refused else request.savepoint
            actions = (Answer(number=request.number, checkpoint=checkpoint, path=path, refused=refused),)
        if request.kind.stops:
            actions += self._end(finished=request.kind is CheckpointKind.LAST)
        return actions

    # --- ends

    def _end(self, *, finished: bool) -> tuple[Action, ...]:
        return (*self._refuse_all("the job has ended"), EndJob(finished=finished))

    def _fail(self, reason: str) -> tuple[Action, ...]:
        return (*self._refuse_all(reason), FailAttempt(reason=reason))

    def _refuse_all(self, reason: str) -> tuple[Action, ...]:
        """The attempt is over: whoever still waits is told, once."""
        self._over = True
        under_way = (self._pending, self._complete, self._deciding, self._publishing)
        others = [place.request for place in under_way if place is not None]
        return self._queue.refuse_all(reason, (*others, *self._copies.requests()))

    def _deadlines(self, now_ms: int) -> tuple[Action, ...]:
        if self._pending is not None and now_ms >= self._pending.expires_ms:
            missing = ", ".join(str(subtask) for subtask in self._pending.missing)
            return self._give_up(f"it took longer than its time-out; waiting for {missing}", now_ms)
        if self._deciding is not None and now_ms >= self._decision_deadline_ms:
            late = (
                f"the decision log did not answer about checkpoint {self._deciding.checkpoint} in time (R6)"
            )
            return self._fail(late)
        if self._publishing is not None and now_ms >= self._publishing.deadline_ms:
            return self._fail(self._publishing.overdue("no answer"))
        if (overdue := self._copies.overdue(now_ms)) is not None:
            self._copies.end(overdue.request)
            return self._answer(overdue.request, overdue.checkpoint, refused="copying it took too long")
        if (start_ms := self._subtasks.deadline_ms()) is not None and now_ms >= start_ms:
            return self._fail(f"these subtasks did not start in time: {self._subtasks.late()}")
        return ()
