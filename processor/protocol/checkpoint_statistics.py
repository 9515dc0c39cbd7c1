"""What became of a job's checkpoints: counts, a bounded history, each with what its subtasks said (A18).

Outlives attempts; every coordinator writes into the same. What is kept of a checkpoint is frozen once it is over,
and no reader waits: from another thread, ``picture`` copies what is there.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from processor.ids import Attempt, CheckpointId, SubtaskId
from processor.protocol.checkpoint_status import CheckpointStatus
from processor.protocol.failure_manager import GivenUp
from processor.protocol.messages import Acknowledged, AcknowledgementMetrics, CheckpointKind
from processor.protocol.pending_checkpoint import PendingCheckpoint

HISTORY_MAX = 100
"""Checkpoints that are remembered, beside the newest of each kind of end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskPart:
    """One subtask's part in one checkpoint."""

    subtask: SubtaskId
    acknowledged_ms: int
    """Since the trigger, when the acknowledgement was here."""
    finished: bool
    metrics: AcknowledgementMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """One checkpoint. Times ``…_ms`` that are spans count from its trigger; None: it did not come to that."""

    checkpoint: CheckpointId
    attempt: Attempt
    kind: CheckpointKind
    savepoint: str
    status: CheckpointStatus
    triggered_ms: int
    """Monotonic."""
    subtasks: int
    """How many must acknowledge."""
    ended_subtasks: int
    """Of those, how many had no more input."""
    barriers_ms: int | None = None
    """Everybody on the coordinator's side had taken part, and barriers went out."""
    complete_ms: int | None = None
    """The last acknowledgement came."""
    decided_ms: int | None = None
    published_ms: int | None = None
    over_ms: int | None = None
    why: GivenUp | None = None
    reason: str = ""
    """Why it was given up or left, for people."""
    state_bytes: int = 0
    new_state_bytes: int = 0
    overtaken: int = 0
    """Subtasks that did not wait until it was aligned (A10)."""
    channel_records: int = 0
    """In flight, and part of it."""
    channel_bytes: int = 0
    outbox_bytes: int = 0
    files: int = 0
    parts: tuple[SubtaskPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredFrom:
    """Where an attempt began."""

    attempt: Attempt
    checkpoint: CheckpointId
    at_ms: int
    """Monotonic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of this process, over all its attempts."""

    triggered: int = 0
    decided: int = 0
    published: int = 0
    given_up: Mapping[str, int] = field(default_factory=dict)
    """By reason."""
    left: int = 0
    """The attempt ended while they were under way."""
    refused: int = 0
    """Requests that did not become a checkpoint."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Late, doubled and unknown messages, by what was wrong with them (A15)."""
    restored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsPicture:
    """Everything at one moment; newest first."""

    counts: Counts
    under_way: tuple[CheckpointRecord, ...]
    history: tuple[CheckpointRecord, ...]
    published: CheckpointRecord | None
    savepoint: CheckpointRecord | None
    """The newest published one that a savepoint was asked for with."""
    failed: CheckpointRecord | None
    """The newest that was given up, but for being overtaken."""
    restored: RestoredFrom | None

    def of(self, checkpoint: CheckpointId) -> CheckpointRecord | None:
        """The newest of that number that is remembered."""
        newest = (self.published, self.savepoint, self.failed)
        for record in (*self.under_way, *self.history, *newest):
            if record is not None and record.checkpoint == checkpoint:
                return record
        return None


class CheckpointStatistics:
    """Written by coordinators, one at a time, in the job's thread."""

    def __init__(self) -> None:
        self._triggered = self._decided = self._published = 0
        self._left = self._refused = self._restores = 0
        self._given_up: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self._under_way: dict[CheckpointId, CheckpointRecord] = {}
        self._parts: dict[CheckpointId, dict[SubtaskId, SubtaskPart]] = {}
        self._history: deque[CheckpointRecord] = deque(maxlen=HISTORY_MAX)
        self._newest_published: CheckpointRecord | None = None
        self._newest_savepoint: CheckpointRecord | None = None
        self._newest_failed: CheckpointRecord | None = None
        self._restored: RestoredFrom | None = None

    # --- a checkpoint's way

    def restored(self, attempt: Attempt, checkpoint: CheckpointId, now_ms: int) -> None:
        """An attempt begins."""
        self._restores += 1
        self._restored = RestoredFrom(attempt=attempt, checkpoint=checkpoint, at_ms=now_ms)

    def triggered(self, attempt: Attempt, pending: PendingCheckpoint, now_ms: int) -> None:
        self._triggered += 1
        self._parts[pending.checkpoint] = {}
        self._under_way[pending.checkpoint] = CheckpointRecord(
            checkpoint=pending.checkpoint,
            attempt=attempt,
            kind=pending.request.kind,
            savepoint=pending.request.savepoint,
            status=pending.state.status,
            triggered_ms=now_ms,
            subtasks=len(pending.plan.must_acknowledge),
            ended_subtasks=len(pending.plan.ended),
        )

    def injected(self, checkpoint: CheckpointId, now_ms: int) -> None:
        """Its barriers are out."""
        record = self._under_way[checkpoint]
        self._under_way[checkpoint] = replace(
            record, status=CheckpointStatus.PENDING, barriers_ms=now_ms - record.triggered_ms
        )

    def acknowledged(self, event: Acknowledged, now_ms: int) -> None:
        """A subtask's first acknowledgement."""
        record = self._under_way[event.checkpoint]
        self._parts[event.checkpoint][event.snapshot.subtask] = SubtaskPart(
            subtask=event.snapshot.subtask,
            acknowledged_ms=now_ms - record.triggered_ms,
            finished=event.snapshot.finished,
            metrics=event.metrics,
        )

    def complete(self, checkpoint: CheckpointId, now_ms: int) -> None:
        record = self._under_way[checkpoint]
        self._under_way[checkpoint] = replace(
            record, status=CheckpointStatus.COMPLETE, complete_ms=now_ms - record.triggered_ms
        )

    def deciding(self, checkpoint: CheckpointId) -> None:
        self._under_way[checkpoint] = replace(self._under_way[checkpoint], status=CheckpointStatus.DECIDING)

    def decided(self, checkpoint: CheckpointId, now_ms: int) -> None:
        self._decided += 1
        record = self._under_way[checkpoint]
        self._under_way[checkpoint] = replace(
            record, status=CheckpointStatus.PUBLISHING, decided_ms=now_ms - record.triggered_ms
        )

    def published(self, checkpoint: CheckpointId, now_ms: int) -> None:
        """And recorded: it is completed."""
        self._published += 1
        span_ms = now_ms - self._under_way[checkpoint].triggered_ms
        record = self._over(checkpoint, now_ms, CheckpointStatus.COMPLETED, published_ms=span_ms)
        self._newest_published = record
        if record.savepoint:
            self._newest_savepoint = record

    def given_up(self, checkpoint: CheckpointId, why: GivenUp, reason: str, now_ms: int) -> None:
        self._given_up[why.value] += 1
        record = self._over(checkpoint, now_ms, CheckpointStatus.GIVEN_UP, why=why, reason=reason)
        if why.counts:
            self._newest_failed = record

    def left(self, reason: str, now_ms: int) -> None:
        """The attempt is over, with everything that was under way."""
        for checkpoint in list(self._under_way):
            self._left += 1
            self._over(checkpoint, now_ms, CheckpointStatus.LEFT, reason=reason)

    # --- what became of nothing

    def refused(self) -> None:
        self._refused += 1

    def ignored(self, why: str) -> None:
        self._ignored[why] += 1

    # --- reading

    def picture(self) -> StatisticsPicture:
        """May be called from any thread: each part is copied in one step of the interpreter."""
        under_way = tuple(self._under_way.values())
        return StatisticsPicture(
            counts=Counts(
                triggered=self._triggered,
                decided=self._decided,
                published=self._published,
                given_up=dict(self._given_up),
                left=self._left,
                refused=self._refused,
                ignored=dict(self._ignored),
                restored=self._restores,
            ),
            under_way=tuple(self._with_parts(record) for record in reversed(under_way)),
            history=tuple(self._history)[::-1],
            published=self._newest_published,
            savepoint=self._newest_savepoint,
            failed=self._newest_failed,
            restored=self._restored,
        )

    def _over(
        self,
        checkpoint: CheckpointId,
        now_ms: int,
        status: CheckpointStatus,
        *,
        published_ms: int | None = None,
        why: GivenUp | None = None,
        reason: str = "",
    ) -> CheckpointRecord:
        """It has come to its end: the first and only time."""
        whole = self._with_parts(self._under_way[checkpoint])
        record = replace(
            whole,
            status=status,
            over_ms=now_ms - whole.triggered_ms,
            published_ms=published_ms,
            why=why,
            reason=reason,
        )
        self._history.append(record)
        del self._under_way[checkpoint], self._parts[checkpoint]
        return record

    def _with_parts(self, record: CheckpointRecord) -> CheckpointRecord:
        said = self._parts.get(record.checkpoint)
        parts = () if said is None else tuple(said.values())
        metrics = [part.metrics for part in parts]
        return replace(
            record,
            state_bytes=sum(metric.state_bytes for metric in metrics),
            new_state_bytes=sum(metric.new_state_bytes for metric in metrics),
            overtaken=sum(metric.overtaken for metric in metrics),
            channel_records=sum(metric.channel_records for metric in metrics),
            channel_bytes=sum(metric.channel_bytes for metric in metrics),
            outbox_bytes=sum(metric.outbox_bytes for metric in metrics),
            files=sum(metric.files for metric in metrics),
            parts=tuple(sorted(parts, key=lambda part: part.subtask)),
        )
