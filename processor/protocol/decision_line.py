"""From complete to completed, one after another (A14, R6, R13).

    complete → deciding → publishing → completed

Complete checkpoints wait in the order of their ids. One is decided at a time, and only when the one before is
published everywhere and recorded; that wait is no part of a checkpoint's time-out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from processor.ids import Attempt, CheckpointId, Marker, PublisherId
from processor.invariant import invariant
from processor.protocol.checkpoint_policy import CheckpointPolicy
from processor.protocol.checkpoint_status import CheckpointStatus
from processor.protocol.coordinator_messages import (
    Action,
    Broadcast,
    Decide,
    Ignored,
    PublishedRecorded,
    RecordPublished,
)
from processor.protocol.decided_checkpoint import DecidedCheckpoint
from processor.protocol.messages import (
    CheckpointDecided,
    CheckpointKind,
    PublicationDone,
    PublicationUnanswered,
)
from processor.protocol.pending_checkpoint import PendingCheckpoint


class DecisionLine:
    """Which checkpoint is decided, which is on its way out, and what is known to be out."""

    def __init__(
        self,
        attempt: Attempt,
        decided: CheckpointId,
        markers: Mapping[PublisherId, Marker],
        policy: CheckpointPolicy,
    ) -> None:
        self.decided = decided
        """The newest decided checkpoint."""
        self.markers = dict(markers)
        """What is known to be out, by identity."""
        self._attempt = attempt
        self._policy = policy
        self._complete: deque[PendingCheckpoint] = deque()
        self._deciding: PendingCheckpoint | None = None
        self._decision_deadline_ms = 0
        self._publishing: DecidedCheckpoint | None = None

    # --- what is where

    def undecided(self) -> int:
        """How many are complete or being decided."""
        return len(self._complete) + (self._deciding is not None)

    def holds(self, checkpoint: CheckpointId) -> bool:
        """Whether it is complete, and not decided yet."""
        return any(place.checkpoint == checkpoint for place in self._waiting())

    def waiting_for(self) -> tuple[PublisherId, ...]:
        """Identities whose publishing holds up the next decision."""
        return tuple(sorted(self._publishing.missing)) if self._publishing else ()

    def publishing(self, checkpoint: CheckpointId) -> DecidedCheckpoint | None:
        """The one on its way out, if it is this one."""
        publishing = self._publishing
        return publishing if publishing is not None and publishing.checkpoint == checkpoint else None

    def under_way(self) -> tuple[DecidedCheckpoint | PendingCheckpoint, ...]:
        """All that are in the line, oldest first."""
        return (*(() if self._publishing is None else (self._publishing,)), *self._waiting())

    def next_ms(self) -> int | None:
        """When a deadline passes."""
        times = []
        if self._deciding is not None:
            times.append(self._decision_deadline_ms)
        if self._publishing is not None:
            times.append(self._publishing.deadline_ms)
        return min(times, default=None)

    def overdue(self, now_ms: int) -> str | None:
        """Why the attempt has to fail, if a deadline has passed (R25)."""
        if self._deciding is not None and now_ms >= self._decision_deadline_ms:
            return (
                f"the decision log did not answer about checkpoint {self._deciding.checkpoint} in time (R6)"
            )
        if self._publishing is not None and now_ms >= self._publishing.deadline_ms:
            return self._publishing.overdue("no answer")
        return None

    # --- on the way

    def complete(self, pending: PendingCheckpoint) -> None:
        """It has all its acknowledgements."""
        invariant(not self._complete or self._complete[-1].checkpoint < pending.checkpoint, "in order of ids")
        self._complete.append(pending)

    def decide(self, now_ms: int, collected: Iterable[PendingCheckpoint]) -> tuple[Action, ...]:
        """R13: the next one, when the one before is published everywhere. ``collected``: those that are not
        complete yet."""
        if not self._complete or self._deciding is not None or self._publishing is not None:
            return ()
        complete = self._deciding = self._complete.popleft()
        complete.state.to(CheckpointStatus.DECIDING)
        self._decision_deadline_ms = now_ms + self._policy.decision_timeout_ms
        later = [pending.base for pending in (*self._complete, *collected)]
        return (
            Decide(
                checkpoint=complete.checkpoint,
                parent=self.decided,
                subtasks=tuple(s.without_decided(self.decided) for s in complete.snapshots()),
                expected=tuple(sorted(self.markers.items())),
                participants=complete.participants,
                needed_from=min(later, default=self.decided),
                savepoint=complete.request.savepoint,
                native=complete.request.native,
                stop=complete.request.kind.ends_job,
                drained=complete.request.kind is CheckpointKind.DRAIN,
            ),
        )

    def taken(self, checkpoint: CheckpointId, now_ms: int) -> tuple[Action, ...]:
        """The entry holds its place: everybody is told, and publishing begins."""
        deciding = self._deciding
        invariant(deciding is not None and deciding.checkpoint == checkpoint, "what was asked is decided")
        assert deciding is not None
        self._deciding = None
        self._publishing = DecidedCheckpoint(
            checkpoint=checkpoint,
            request=deciding.request,
            state=deciding.state,
            snapshots=tuple(s.without_decided(self.decided) for s in deciding.snapshots()),
            markers=self.markers,
            deadline_ms=now_ms + self._policy.publish_timeout_ms,
        )
        self.decided = checkpoint
        publications = self._publishing.publications
        order = CheckpointDecided(attempt=self._attempt, checkpoint=checkpoint, publications=publications)
        return (Broadcast(order=order), *self._record_if_out())

    def done(self, event: PublicationDone) -> tuple[Action, ...]:
        """An identity has published everything of its own."""
        publishing = self.publishing(event.checkpoint)
        if publishing is None:
            return (Ignored(event=event, why="not publishing"),)
        if not publishing.done(event.publisher, event.marker):
            return (Ignored(event=event, why="published already"),)
        self.markers[event.publisher] = event.marker
        return self._record_if_out()

    def unanswered(self, event: PublicationUnanswered, now_ms: int) -> tuple[Action, ...] | str:
        """Publish again; or why the attempt has to fail (R25)."""
        publishing = self.publishing(event.checkpoint)
        if publishing is None:
            return (Ignored(event=event, why="not publishing"),)
        if event.publisher not in publishing.missing:
            return (Ignored(event=event, why="published already"),)
        if now_ms >= publishing.deadline_ms:
            return publishing.overdue(event.reason)
        again = (publishing.missing[event.publisher],)
        order = CheckpointDecided(attempt=self._attempt, checkpoint=event.checkpoint, publications=again)
        return (Broadcast(order=order),)

    def recorded(self, event: PublishedRecorded) -> DecidedCheckpoint | None:
        """It is published and recorded, and leaves the line; None when it had left before."""
        publishing = self.publishing(event.checkpoint)
        if publishing is not None:
            self._publishing = None
            publishing.state.to(CheckpointStatus.COMPLETED)
        return publishing

    def _record_if_out(self) -> tuple[Action, ...]:
        out = self._publishing is not None and self._publishing.out_now()
        return (RecordPublished(checkpoint=self.decided),) if out else ()

    def _waiting(self) -> tuple[PendingCheckpoint, ...]:
        return (*(() if self._deciding is None else (self._deciding,)), *self._complete)
