"""A coordinator to talk to: events in, actions out, and what its two subtasks would say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from processor.ids import (
    NO_CHECKPOINT,
    Attempt,
    CheckpointId,
    FileRef,
    Incarnation,
    JobName,
    KeyGroupRange,
    Marker,
    Place,
    PublisherId,
    StepName,
    SubtaskId,
)
from processor.protocol.checkpoint_policy import CheckpointPolicy
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.coordinator import Coordinator
from processor.protocol.coordinator_messages import (
    Action,
    AskParticipants,
    Broadcast,
    Decide,
    DecisionTaken,
    Event,
    ParticipantsReady,
    PublishedRecorded,
    Requested,
    TellParticipants,
    Tick,
)
from processor.protocol.entries import (
    CheckpointEntry,
    JobShape,
    OutboxFile,
    ParticipantState,
    StateFile,
    SubtaskSnapshot,
)
from processor.protocol.messages import (
    Acknowledged,
    AllRunning,
    CheckpointDecided,
    CheckpointKind,
    InjectBarrier,
    PublicationDone,
    SubtaskRunning,
)
from processor.protocol.pacing import PacingPolicy
from processor.protocol.pending_checkpoint import Request
from processor.protocol.recovered import Recovered

ATTEMPT = Attempt(3)
INCARNATION = Incarnation("first")
JOB = JobName("counts")
RESTORED = CheckpointId(10)
SUBTASKS = (SubtaskId(StepName("read"), 0), SubtaskId(StepName("write"), 0))
READ, WRITE = SUBTASKS
SINK = PublisherId(JOB, StepName("write"), 0)

INTERVAL_MS = 1_000
TIMEOUT_MS = 500
DECISION_TIMEOUT_MS = 300
PUBLISH_TIMEOUT_MS = 700
START_TIMEOUT_MS = 2_000
COPY_TIMEOUT_MS = 900

A = TypeVar("A")


def marker(checkpoint: int, rows: int, attempt: int = ATTEMPT) -> Marker:
    return Marker(
        incarnation=INCARNATION,
        attempt=Attempt(attempt),
        checkpoint=CheckpointId(checkpoint),
        rows=rows,
    )


def file(name: str) -> FileRef:
    return FileRef(name=name, bytes=1, sha256="0" * 64)


def outbox(cut: int, rows: int = 2, publisher: PublisherId = SINK) -> OutboxFile:
    return OutboxFile(
        publisher=publisher, cut=CheckpointId(cut), file=file(f"{publisher}-{cut}.outbox"), rows=rows
    )


def state(name: str) -> StateFile:
    return StateFile(step=StepName("read"), file=file(name), key_groups=KeyGroupRange(0, 8), states={})


def recovered(publishers: Sequence[PublisherId] = (SINK,)) -> Recovered:
    entry = CheckpointEntry(
        place=Place(4),
        attempt=ATTEMPT,
        nonce="n",
        incarnation=INCARNATION,
        job=JOB,
        checkpoint=RESTORED,
        parent=NO_CHECKPOINT,
        taken_ms=0,
        shape=JobShape(max_parallelism=8, parallelism={}, stateful={}),
        subtasks=(),
        expected=(),
    )
    return Recovered(
        attempt=ATTEMPT,
        incarnation=INCARNATION,
        next_place=Place(5),
        entry=entry,
        next_checkpoint=CheckpointId(RESTORED + 1),
        markers={publisher: marker(RESTORED, 0) for publisher in publishers},
    )


class Rig:
    """Keeps the time, remembers what was said, and answers like a well-behaved world when asked to."""

    def __init__(
        self,
        *,
        tolerated: int = 2,
        min_pause_ms: int = 0,
        subtasks: Sequence[SubtaskId] = SUBTASKS,
        publishers: Sequence[PublisherId] = (SINK,),
        running: bool = True,
        concurrent: int = 1,
        timeout_ms: int = TIMEOUT_MS,
        backlog_interval_ms: int = 0,
        participants: Callable[[CheckpointId], tuple[ParticipantState, ...] | None] = lambda checkpoint: (),
    ) -> None:
        """``participants``: what those on the coordinator's side answer at once; None: they do not."""
        self.participants = participants
        self.statistics = CheckpointStatistics()
        self.subtasks = tuple(subtasks)
        self.now_ms = 50_000
        self.said: list[Action] = []
        self.told: list[TellParticipants] = []
        self.coordinator = Coordinator(
            attempt=ATTEMPT,
            subtasks=frozenset(subtasks),
            recovered=recovered(publishers),
            policy=CheckpointPolicy(
                pacing=PacingPolicy(
                    interval_ms=INTERVAL_MS,
                    min_pause_ms=min_pause_ms,
                    initial_delay_ms=INTERVAL_MS,
                    interval_during_backlog_ms=backlog_interval_ms,
                ),
                timeout_ms=timeout_ms,
                decision_timeout_ms=DECISION_TIMEOUT_MS,
                publish_timeout_ms=PUBLISH_TIMEOUT_MS,
                tolerated_failures=tolerated,
                max_concurrent=concurrent,
                start_timeout_ms=START_TIMEOUT_MS,
                copy_timeout_ms=COPY_TIMEOUT_MS,
            ),
            statistics=self.statistics,
        )
        if running:
            for subtask in self.subtasks:
                self.do(SubtaskRunning(attempt=ATTEMPT, subtask=subtask))

    def do(self, event: Event) -> tuple[Action, ...]:
        """What the coordinator wants done; what it asks and tells on its own side is answered here."""
        done: list[Action] = []
        for action in self.coordinator.handle(event, self.now_ms):
            match action:
                case AskParticipants(checkpoint=checkpoint):
                    if (states := self.participants(checkpoint)) is not None:
                        done += self.do(ParticipantsReady(checkpoint=checkpoint, states=states))
                        continue
                    done.append(action)
                case TellParticipants():
                    self.told.append(action)
                    continue
                case Broadcast(order=AllRunning()):
                    continue
                case _:
                    done.append(action)
            self.said.append(action)
        return tuple(done)

    def after(self, passed_ms: int) -> tuple[Action, ...]:
        self.now_ms += passed_ms
        return self.do(Tick())

    def ask(
        self, kind: CheckpointKind = CheckpointKind.MANUAL, number: int = 1, savepoint: str = ""
    ) -> tuple[Action, ...]:
        return self.do(Requested(request=Request(kind=kind, number=number, savepoint=savepoint)))

    def start(
        self, kind: CheckpointKind = CheckpointKind.MANUAL, number: int = 1, savepoint: str = ""
    ) -> CheckpointId:
        """Ask for a checkpoint that starts at once; its id."""
        (inject,) = orders(self.ask(kind, number, savepoint), InjectBarrier)
        return inject.checkpoint

    def acknowledge(
        self,
        checkpoint: CheckpointId,
        subtask: SubtaskId,
        *,
        outboxes: Sequence[OutboxFile] = (),
        states: Sequence[StateFile] = (),
        attempt: Attempt = ATTEMPT,
    ) -> tuple[Action, ...]:
        snapshot = SubtaskSnapshot(subtask=subtask, keyed=tuple(states), outboxes=tuple(outboxes))
        return self.do(Acknowledged(attempt=attempt, checkpoint=checkpoint, snapshot=snapshot))

    def acknowledge_all(self, checkpoint: CheckpointId, *boxes: OutboxFile) -> tuple[Action, ...]:
        """Every subtask acknowledges, the writing one with its outboxes; what the last one led to."""
        actions: tuple[Action, ...] = ()
        for subtask in self.subtasks:
            actions = self.acknowledge(checkpoint, subtask, outboxes=boxes if subtask == WRITE else ())
        return actions

    def decided(self, checkpoint: CheckpointId, *boxes: OutboxFile) -> CheckpointDecided:
        """Bring a started checkpoint to its decision; the order that tells everybody."""
        assert some(self.acknowledge_all(checkpoint, *boxes), Decide)
        (order,) = orders(self.do(DecisionTaken(checkpoint=checkpoint)), CheckpointDecided)
        return order

    def publish(self, order: CheckpointDecided) -> tuple[Action, ...]:
        actions: tuple[Action, ...] = ()
        for publication in order.publications:
            actions = self.do(
                PublicationDone(
                    attempt=ATTEMPT,
                    checkpoint=order.checkpoint,
                    publisher=publication.publisher,
                    marker=marker(order.checkpoint, publication.rows),
                )
            )
        return actions

    def complete(self, checkpoint: CheckpointId, *boxes: OutboxFile) -> tuple[Action, ...]:
        """Bring a started checkpoint to its end; what the last event led to."""
        self.publish(self.decided(checkpoint, *boxes))
        return self.do(PublishedRecorded(checkpoint=checkpoint))


def some(actions: Sequence[Action], kind: type[A]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def orders(actions: Sequence[Action], kind: type[A]) -> list[A]:
    sent: list[Any] = [action.order for action in actions if isinstance(action, Broadcast)]
    return [order for order in sent if isinstance(order, kind)]
