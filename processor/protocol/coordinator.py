"""Decides about the checkpoints of one attempt: when one starts, when it is decided, published, over (A1-A16).

    requested → preparing → pending → complete → deciding → publishing → completed
                    └───────────┴── given up: abort told to all, files condemned

Several may be between their trigger and their decision (``triggering``, ``collection``); from there on they go one
after another (``decision_line``, R13). Late, doubled and unknown messages are results.
"""

from __future__ import annotations

from typing import assert_never

from processor.ids import Attempt, CheckpointId, Marker, PublisherId, SubtaskId
from processor.invariant import invariant
from processor.protocol.checkpoint_policy import CheckpointPolicy
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.checkpoint_status import CheckpointStatus
from processor.protocol.collection import Collection, Dropped
from processor.protocol.coordinator_messages import (
    Action,
    Answer,
    AskParticipants,
    Broadcast,
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
    ParticipantFailed,
    ParticipantsReady,
    PublishedRecorded,
    Requested,
    Retain,
    SavepointCopied,
    TellParticipants,
    Tick,
)
from processor.protocol.decision_line import DecisionLine
from processor.protocol.failure_manager import FailureManager, GivenUp
from processor.protocol.messages import (
    Acknowledged,
    AllRunning,
    CheckpointCompleted,
    CheckpointKind,
    Declined,
    HoldSources,
    InjectBarrier,
    PublicationDone,
    PublicationUnanswered,
    ResumeSources,
    SubtaskEnded,
    SubtaskPressed,
    SubtaskReads,
    SubtaskRunning,
)
from processor.protocol.pending_checkpoint import Collected, PendingCheckpoint, Request
from processor.protocol.recovered import Recovered
from processor.protocol.request_queue import CLOCK, answers
from processor.protocol.savepoint_copies import SavepointCopies, SavepointCopy
from processor.protocol.triggering import Triggering


class Coordinator:
    """One attempt's coordinator; ``handle`` is its only entry."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        subtasks: frozenset[SubtaskId],
        recovered: Recovered,
        policy: CheckpointPolicy,
        statistics: CheckpointStatistics,
    ) -> None:
        """``statistics`` may have been written by attempts before."""
        self._attempt = attempt
        self._policy = policy
        self._statistics = statistics
        self._triggering = Triggering(subtasks, recovered.next_checkpoint, policy)
        self._collection = Collection(attempt)
        self._line = DecisionLine(attempt, recovered.checkpoint, recovered.markers, policy)
        self._failures = FailureManager(policy.tolerated_failures)
        self._copies = SavepointCopies()
        self._over = False

    @property
    def decided(self) -> CheckpointId:
        """The newest decided checkpoint."""
        return self._line.decided

    @property
    def markers(self) -> dict[PublisherId, Marker]:
        """What is known to be out, by identity."""
        return dict(self._line.markers)

    def waiting_for(self) -> tuple[PublisherId, ...]:
        """Identities whose publishing holds up the next decision (R13)."""
        return self._line.waiting_for()

    def next_ms(self) -> int | None:
        """When the next Tick is needed at the latest."""
        parts = (self._triggering, self._collection, self._line, self._copies)
        times = [part.next_ms() for part in parts]
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def handle(self, event: Event, now_ms: int) -> tuple[Action, ...]:
        """What to do about an event; ``now_ms`` is monotonic."""
        actions = self._handled(event, now_ms)
        for action in actions:
            if isinstance(action, Ignored):
                self._statistics.ignored(action.why)
            elif isinstance(action, Answer) and action.refused:
                self._statistics.refused()
        return actions

    def _handled(self, event: Event, now_ms: int) -> tuple[Action, ...]:
        if self._over:
            return (Ignored(event=event, why="the attempt is over"),)
        if getattr(event, "attempt", self._attempt) != self._attempt:
            return (Ignored(event=event, why="another attempt"),)
        self._triggering.subtasks.heard(now_ms)
        actions = self._dispatch(event, now_ms)
        return actions + self._trigger(now_ms)

    def _dispatch(self, event: Event, now_ms: int) -> tuple[Action, ...]:
        match event:
            case Tick():
                return self._deadlines(now_ms)
            case SubtaskRunning():
                return self._subtask_running(event, now_ms)
            case SubtaskEnded(subtask=subtask):
                self._triggering.ended(subtask, now_ms)
                return ()
            case SubtaskPressed(subtask=subtask):
                self._triggering.pacing.press()
                until = self._triggering.next_checkpoint
                return (Broadcast(order=HoldSources(attempt=self._attempt, subtask=subtask, until=until)),)
            case SubtaskReads(subtask=subtask, backlog=backlog):
                self._triggering.reads(subtask, backlog=backlog)
                return ()
            case Requested(request=request):
                return self._triggering.request(request)
            case ParticipantsReady():
                return self._prepared(event, now_ms)
            case ParticipantFailed(checkpoint=checkpoint, reason=reason):
                return self._stopped_short(event, checkpoint, GivenUp.PARTICIPANT_FAILED, reason, now_ms)
            case Acknowledged():
                return self._acknowledged(event, now_ms)
            case Declined(checkpoint=checkpoint, subtask=subtask):
                reason = f"subtask {subtask} declined: {event.reason}"
                return self._stopped_short(event, checkpoint, GivenUp.DECLINED, reason, now_ms)
            case DecisionTaken(checkpoint=checkpoint):
                actions = self._line.taken(checkpoint, now_ms)
                self._statistics.decided(checkpoint, now_ms)
                return actions
            case DecisionLost(checkpoint=checkpoint, by=by):
                invariant(self._line.holds(checkpoint), "a lost place was asked for")
                refusals = self._refuse_all("a newer attempt of the job runs", now_ms)
                return (*refusals, FencedByLog(checkpoint=checkpoint, by=by))
            case DecisionUnknown(checkpoint=checkpoint, reason=reason):
                why = f"it is not known whether checkpoint {checkpoint} was decided: {reason}"
                return self._fail(why, now_ms)
            case PublicationDone():
                return self._line.done(event)
            case PublicationUnanswered():
                again = self._line.unanswered(event, now_ms)
                return self._fail(again, now_ms) if isinstance(again, str) else again
            case PublishedRecorded():
                return self._recorded(event, now_ms)
            case SavepointCopied():
                return self._savepoint_copied(event, now_ms)
            case _:
                assert_never(event)

    # --- starting

    def _subtask_running(self, event: SubtaskRunning, now_ms: int) -> tuple[Action, ...]:
        actions: tuple[Action, ...] = ()
        if not self._triggering.runs(event.subtask, now_ms):
            actions = (Ignored(event=event, why="runs already"),)
        if self._triggering.subtasks.running:  # also when it is said again: the answer may have been lost
            actions += (Broadcast(order=AllRunning(attempt=self._attempt)),)
        return actions

    def _trigger(self, now_ms: int) -> tuple[Action, ...]:
        """Start the next checkpoint if one is wanted and there is room."""
        if self._over or self._collection.preparing:
            return ()
        under_way = len(self._collection) + self._line.undecided()
        pending = self._triggering.next(now_ms, under_way=under_way, base=self._line.decided)
        if pending is None:
            return ()
        self._collection.begin(pending)
        self._statistics.triggered(self._attempt, pending, now_ms)
        return (AskParticipants(checkpoint=pending.checkpoint),)

    def _prepared(self, event: ParticipantsReady, now_ms: int) -> tuple[Action, ...]:
        pending = self._collection.of(event.checkpoint)
        if pending is None or pending.state.status is not CheckpointStatus.PREPARING:
            return (Ignored(event=event, why="not preparing"),)
        pending.prepared(event.states)
        self._statistics.injected(pending.checkpoint, now_ms)
        order = InjectBarrier(
            attempt=self._attempt,
            checkpoint=pending.checkpoint,
            kind=pending.request.kind,
            decided=pending.base,
        )
        return (Broadcast(order=order),)

    # --- collecting

    def _acknowledged(self, event: Acknowledged, now_ms: int) -> tuple[Action, ...]:
        pending = self._collection.of(event.checkpoint)
        if pending is None or pending.state.status is not CheckpointStatus.PENDING:
            return (Ignored(event=event, why=self._where(event.checkpoint)), *self._collection.late(event))
        result = pending.collect(event)
        subtask = event.snapshot.subtask
        if result in (Collected.DOUBLE, Collected.UNKNOWN_SUBTASK):
            return (Ignored(event=event, why=result.value),)
        self._statistics.acknowledged(event, now_ms)
        self._triggering.reads(subtask, backlog=event.backlog)
        if event.snapshot.finished:
            # It says so itself once, which may be lost: without this the job would never end.
            self._triggering.ended(subtask, now_ms)
        if result is Collected.OUTDATED:
            reason = f"subtask {subtask} has not heard of checkpoint {pending.base}"
            return self._give_up(pending, GivenUp.OUTDATED, reason, now_ms)
        if result is Collected.COUNTED:
            return ()
        self._statistics.complete(pending.checkpoint, now_ms)
        actions = self._dropped(self._collection.complete(pending), now_ms)
        self._line.complete(pending)
        return actions + self._decide(now_ms)

    def _where(self, checkpoint: CheckpointId) -> str:
        if checkpoint <= self._line.decided:
            return "decided already"
        return "complete already" if self._line.holds(checkpoint) else "given up already"

    def _stopped_short(
        self, event: Event, checkpoint: CheckpointId, why: GivenUp, reason: str, now_ms: int
    ) -> tuple[Action, ...]:
        pending = self._collection.of(checkpoint)
        if pending is None:
            return (Ignored(event=event, why="not pending"),)
        return self._give_up(pending, why, reason, now_ms)

    def _give_up(
        self, pending: PendingCheckpoint, why: GivenUp, reason: str, now_ms: int
    ) -> tuple[Action, ...]:
        drains = pending.request.kind is CheckpointKind.DRAIN
        begun = pending.state.status is CheckpointStatus.PENDING
        if drains and begun:
            reason = f"the drain failed, and the job goes on from checkpoint {self._line.decided}: {reason}"
        actions = self._dropped(self._collection.give_up(pending, why, reason), now_ms)
        if drains and begun:  # sources have ended, and timers have fired before their time (R24)
            actions += self._fail(reason, now_ms)
        elif self._failures.failed(why):
            text = f"checkpoint {pending.checkpoint} failed, the last of too many ({self._failures.text()})"
            actions += self._fail(f"{text}: {reason}", now_ms)
        return actions

    def _dropped(self, dropped: tuple[Dropped, ...], now_ms: int) -> tuple[Action, ...]:
        """Tell about checkpoints that were given up; what was asked for and overtaken is asked for again."""
        actions: tuple[Action, ...] = ()
        for one in dropped:
            checkpoint, request = one.pending.checkpoint, one.pending.request
            self._statistics.given_up(checkpoint, one.why, one.reason, now_ms)
            actions += one.actions
            stopped = self._triggering.given_up(checkpoint, now_ms)
            if stopped and request.kind is not CheckpointKind.DRAIN:
                actions += (Broadcast(order=ResumeSources(attempt=self._attempt, checkpoint=checkpoint)),)
            if one.why is GivenUp.SUBSUMED:
                self._triggering.again(request)
            else:
                actions += answers(request, refused=one.reason)
        return actions

    # --- deciding and publishing

    def _decide(self, now_ms: int) -> tuple[Action, ...]:
        actions = self._line.decide(now_ms, self._collection.all())
        for action in actions:
            if isinstance(action, Decide):
                self._statistics.deciding(action.checkpoint)
        return actions

    def _recorded(self, event: PublishedRecorded, now_ms: int) -> tuple[Action, ...]:
        published = self._line.recorded(event)
        if published is None:
            return (Ignored(event=event, why="not publishing"),)
        checkpoint, request = published.checkpoint, published.request
        self._statistics.published(checkpoint, now_ms)
        self._failures.succeeded()
        self._triggering.pacing.ended(now_ms)
        order = CheckpointCompleted(attempt=self._attempt, checkpoint=checkpoint)
        actions: tuple[Action, ...] = (
            Broadcast(order=order),
            TellParticipants(checkpoint=checkpoint, completed=True),
            Retain(checkpoint=checkpoint),
        )
        if request.savepoint:
            deadline_ms = now_ms + self._policy.copy_timeout_ms
            self._copies.begin(SavepointCopy(checkpoint=checkpoint, request=request, deadline_ms=deadline_ms))
            actions += (CopySavepoint(checkpoint=checkpoint, request=request),)
        else:
            actions += self._answer(request, checkpoint, now_ms)
        return actions if self._over else actions + self._decide(now_ms)

    def _savepoint_copied(self, event: SavepointCopied, now_ms: int) -> tuple[Action, ...]:
        copy = self._copies.end(event.request)
        if copy is None:
            return (Ignored(event=event, why="answered already"),)
        return self._answer(copy.request, copy.checkpoint, now_ms, refused=event.failure)

    def _answer(
        self, request: Request, checkpoint: CheckpointId, now_ms: int, refused: str = ""
    ) -> tuple[Action, ...]:
        """A checkpoint is decided: a stop can only finish (R24), even when the copy of its savepoint failed;
        that refusal names the checkpoint."""
        actions: tuple[Action, ...] = ()
        if request.number != CLOCK:
            path = "" if refused else request.savepoint
            actions = (Answer(number=request.number, checkpoint=checkpoint, path=path, refused=refused),)
        if request.kind.stops:
            end = EndJob(finished=request.kind.ends_input)
            actions += (*self._refuse_all("the job has ended", now_ms), end)
        return actions

    # --- ends

    def close(self, now_ms: int) -> tuple[Action, ...]:
        """The attempt was ended by somebody else, if it was not over."""
        if self._over:
            return ()
        return self._refuse_all("the attempt ended before the checkpoint was completed", now_ms)

    def _fail(self, reason: str, now_ms: int) -> tuple[Action, ...]:
        return (*self._refuse_all(reason, now_ms), FailAttempt(reason=reason))

    def _refuse_all(self, reason: str, now_ms: int) -> tuple[Action, ...]:
        """The attempt is over: whoever still waits is told, once."""
        self._over = True
        under_way = (*self._collection.all(), *self._line.under_way())
        for place in under_way:
            place.state.to(CheckpointStatus.LEFT)
        self._statistics.left(reason, now_ms)
        others = (*(place.request for place in under_way), *self._copies.requests())
        return self._triggering.refuse_all(reason, others)

    def _deadlines(self, now_ms: int) -> tuple[Action, ...]:
        if (expired := self._collection.expired(now_ms)) is not None:
            return self._expired(expired, now_ms)
        if (late := self._line.overdue(now_ms)) is not None:
            return self._fail(late, now_ms)
        if (overdue := self._copies.overdue(now_ms)) is not None:
            self._copies.end(overdue.request)
            return self._answer(
                overdue.request, overdue.checkpoint, now_ms, refused="copying it took too long"
            )
        start_ms = self._triggering.subtasks.deadline_ms()
        if start_ms is not None and now_ms >= start_ms:
            late = f"these subtasks did not start in time: {self._triggering.subtasks.late()}"
            return self._fail(late, now_ms)
        return ()

    def _expired(self, pending: PendingCheckpoint, now_ms: int) -> tuple[Action, ...]:
        if pending.state.status is CheckpointStatus.PREPARING:
            reason = "its time-out passed before everybody beside the coordinator had taken part"
            return self._give_up(pending, GivenUp.NOT_PREPARED, reason, now_ms)
        missing = ", ".join(str(subtask) for subtask in pending.missing)
        reason = f"it took longer than its time-out; waiting for {missing}"
        return self._give_up(pending, GivenUp.EXPIRED, reason, now_ms)
