"""Performs what the coordinator decides, and feeds back what happened. Nothing else performs actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.contracts.executor import Executor
from processor.contracts.job_control import Outcome
from processor.errors import AttemptFailed, Fenced, Unavailable
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import JobName
from processor.protocol.coordinator import Coordinator
from processor.protocol.coordinator_messages import (
    Action,
    Answer,
    AskParticipants,
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
    TellParticipants,
    Tick,
)
from processor.protocol.entries import CheckpointEntry, JobShape, Published
from processor.protocol.marker_refresh import MarkerRefresh
from processor.protocol.messages import (
    Acknowledged,
    CheckpointKind,
    Order,
    PublicationDone,
    RefreshMarkers,
    Report,
)
from processor.protocol.pending_checkpoint import Request
from processor.protocol.recovered import Recovered
from processor.runtime.entry_writer import EntryWriter
from processor.runtime.origin import write_savepoint
from processor.runtime.participants import Participants
from processor.runtime.savepoint_progress import SavepointProgress
from processor.storage.decision_log import DecisionLog, Lost, Taken
from processor.storage.directory import JobStore
from processor.storage.retention import Retention
from processor.telemetry.log import Log

LOG_LANE = "decision log"
SAVEPOINT_LANE = "savepoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverParts:
    """What the driver acts on."""

    job: JobName
    shape: JobShape
    store: JobStore
    log: DecisionLog
    entries: EntryWriter
    retention: Retention
    executor: Executor
    clock: Clock
    chance: Chance
    faults: FaultHook
    send: Callable[[Order], None]
    """Carries an order to every worker."""
    participants: Participants
    completed: Callable[[CheckpointEntry], None]
    """A checkpoint is published and recorded."""
    marker_refresh_ms: int
    say: Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt came to its end without an error."""

    finished: bool


class Driver:
    """Drives one attempt's coordinator, in the thread that runs the attempt."""

    def __init__(self, coordinator: Coordinator, recovered: Recovered, parts: DriverParts) -> None:
        self._coordinator = coordinator
        self._parts = parts
        self._incarnation = recovered.incarnation
        self._attempt = recovered.attempt
        self._next_place = recovered.next_place
        self._decided = recovered.entry
        self._published = recovered.entry
        self._note = Published(
            incarnation=recovered.incarnation,
            attempt=recovered.attempt,
            checkpoint=recovered.entry.checkpoint,
        )
        self._refresh = MarkerRefresh(parts.marker_refresh_ms)
        self._refresh.opened(recovered.markers, parts.clock.monotonic_ms())
        self._answers: dict[int, Callable[[Outcome], None]] = {}
        self._requests = 0
        self._copies = 0
        """Savepoints being copied."""
        self.ended: Ended | None = None
        self.failure: BaseException | None = None
        self.ignored = 0
        self.checkpoints = 0

    @property
    def published(self) -> CheckpointEntry:
        """The newest published checkpoint."""
        return self._published

    def handle(self, event: Event) -> None:
        """Let the coordinator decide about an event, and do it."""
        for action in self._coordinator.handle(event, self._parts.clock.monotonic_ms()):
            self._perform(action)

    def tick(self, now_ms: int) -> None:
        """Time has passed: deadlines, the pace of checkpoints, markers of idle identities."""
        self.handle(Tick())
        due = self._refresh.take_due(now_ms)
        if due:
            # One that is about to publish is not idle: its marker is changing.
            publishing = self._coordinator.waiting_for()
            known = self._coordinator.markers
            markers = tuple((identity, known[identity]) for identity in due if identity not in publishing)
            self._parts.send(RefreshMarkers(attempt=self._attempt, markers=markers))

    def report(self, report: Report) -> None:
        """A worker's report."""
        if isinstance(report, PublicationDone):
            self._refresh.wrote(report.publisher, self._parts.clock.monotonic_ms())
        if isinstance(report, PublicationDone) and len(self._coordinator.waiting_for()) > 1:
            self._parts.faults(FaultPoint.SOME_SINKS_PUBLISHED)
        if isinstance(report, Acknowledged):
            self._parts.say.debug(
                "acknowledged",
                checkpoint=report.checkpoint,
                subtask=report.snapshot.subtask,
                cut_ms=report.metrics.synchronous_ms,
                written_ms=report.metrics.asynchronous_ms,
                bytes=report.metrics.bytes,
            )
        self.handle(report)

    def request(
        self, kind: CheckpointKind, savepoint: str, answer: Callable[[Outcome], None], *, native: bool = False
    ) -> None:
        """Ask for a checkpoint by hand; ``answer`` is called once."""
        self._requests += 1
        number = self._requests
        self._answers[number] = answer
        self.handle(Requested(request=Request(kind=kind, number=number, savepoint=savepoint, native=native)))

    def fail(self, error: BaseException) -> None:
        """Background work failed in a way that ends the attempt; the first error counts."""
        if self.failure is None:
            self.failure = error

    def close(self) -> None:
        """The attempt is over: answer everybody who still waits."""
        for action in self._coordinator.close(self._parts.clock.monotonic_ms()):
            self._perform(action)
        for answer in self._answers.values():
            answer(Outcome(refused="the attempt ended before the checkpoint was completed"))
        self._answers.clear()

    def _perform(self, action: Action) -> None:
        match action:
            case Broadcast(order=order):
                self._parts.send(order)
            case AskParticipants(checkpoint=checkpoint):
                self._parts.participants.take(checkpoint, self.handle)
            case TellParticipants(checkpoint=checkpoint, completed=completed):
                self._parts.participants.tell(checkpoint, completed=completed)
            case Decide():
                self._decide(action)
            case RecordPublished():
                self._record(action)
            case Retain():
                self._retain()
            case Condemn(files=files):
                names = tuple(file.name for file in files)
                self._background(LOG_LANE, lambda: self._parts.retention.give_up(names), lambda _: None)
            case CopySavepoint():
                self._copy_savepoint(action)
            case Answer(number=number, checkpoint=checkpoint, path=path, refused=refused):
                answer = self._answers.pop(number, None)
                if answer is not None:
                    answer(Outcome(checkpoint=checkpoint, path=path, refused=refused))
            case EndJob(finished=finished):
                self.ended = Ended(finished=finished)
            case FailAttempt(reason=reason):
                self.fail(AttemptFailed(reason))
            case FencedByLog(checkpoint=checkpoint, by=by):
                self.fail(Fenced(f"checkpoint {checkpoint} could not be decided: its place holds {by}"))
            case Ignored(event=event, why=why):
                self.ignored += 1
                self._parts.say.debug("ignored a message", message=type(event).__name__, why=why)
            case _:
                assert_never(action)

    def _decide(self, action: Decide) -> None:
        self._parts.faults(FaultPoint.ALL_ACKNOWLEDGED)
        entry = CheckpointEntry(
            place=self._next_place,
            attempt=self._attempt,
            nonce="",
            incarnation=self._incarnation,
            job=self._parts.job,
            checkpoint=action.checkpoint,
            parent=action.parent,
            taken_ms=0,
            shape=self._parts.shape,
            subtasks=action.subtasks,
            expected=action.expected,
            participants=action.participants,
            savepoint=action.savepoint,
            native=action.native,
            stop=action.stop,
            drained=action.drained,
        )
        note = self._note

        def work() -> tuple[CheckpointEntry, Taken | Lost]:
            complete = self._parts.retention.complete(entry, note, needed_from=action.needed_from)
            whole = self._parts.entries.sign(complete)
            outcome = self._parts.entries.take(whole)
            if isinstance(outcome, Taken):
                self._parts.retention.decided(whole)
                self._parts.faults(FaultPoint.ENTRY_TAKEN_NOT_TOLD)
            return whole, outcome

        def done(result: tuple[CheckpointEntry, Taken | Lost]) -> None:
            whole, outcome = result
            match outcome:
                case Taken():
                    self._next_place = type(whole.place)(whole.place + 1)
                    self._decided = whole
                    self.handle(DecisionTaken(checkpoint=whole.checkpoint))
                case Lost(by=by):
                    kind = type(by).__name__.lower()
                    self.handle(
                        DecisionLost(checkpoint=whole.checkpoint, by=f"a {kind} of attempt {by.attempt}")
                    )
                case _:
                    assert_never(outcome)

        def failed(error: BaseException) -> None:
            if isinstance(error, Unavailable):
                self.handle(DecisionUnknown(checkpoint=entry.checkpoint, reason=str(error)))
            else:
                self.fail(error)

        self._parts.executor.submit(LOG_LANE, work, done, failed)

    def _record(self, action: RecordPublished) -> None:
        note = Published(incarnation=self._incarnation, attempt=self._attempt, checkpoint=action.checkpoint)
        entry = self._decided

        def work() -> None:
            self._parts.faults(FaultPoint.PUBLISHED_NOT_RECORDED)
            if entry.outboxes():  # what has no rows counts as published without a note (R4)
                self._parts.log.record_published(note)

        def done(_: None) -> None:
            self._note = note
            self.checkpoints += 1
            self._published = entry
            self._parts.completed(entry)
            self.handle(PublishedRecorded(checkpoint=action.checkpoint))

        self._background(LOG_LANE, work, done)

    def _retain(self) -> None:
        if self._copies:  # they read files that newer checkpoints have condemned by now
            return

        def failed(error: BaseException) -> None:
            if not isinstance(error, Unavailable):
                self.fail(error)
                return
            # Garbage at worst: the next checkpoint tries again.
            self._parts.say.warning("could not delete old checkpoints", error=error)

        self._parts.executor.submit(LOG_LANE, self._parts.retention.forget, lambda _: None, failed)

    def _copy_savepoint(self, action: CopySavepoint) -> None:
        path = action.request.savepoint
        entry = self._published
        say = self._parts.say.bind(checkpoint=entry.checkpoint, savepoint=path)

        def work() -> None:
            write_savepoint(
                entry,
                self._parts.store,
                path,
                job=self._parts.job,
                token=self._parts.chance.token,
                faults=self._parts.faults,
                native=action.request.native,
                progress=SavepointProgress(say, self._parts.clock),
            )

        def copied(failure: str) -> None:
            self._copies -= 1
            self._retain()
            told = SavepointCopied(checkpoint=action.checkpoint, request=action.request, failure=failure)
            if action.request.kind.stops:
                self._settle_savepoint(told)
            else:
                self.handle(told)

        self._copies += 1
        self._parts.executor.submit(
            SAVEPOINT_LANE, work, lambda _: copied(""), lambda error: copied(str(error) or repr(error))
        )

    def _settle_savepoint(self, told: SavepointCopied) -> None:
        """Note that no later attempt has to write it (R24), then tell."""
        note = replace(self._note, savepoint_settled=True)

        def not_noted(error: BaseException) -> None:
            # It costs the next attempt one look into the savepoint.
            self._parts.say.warning("could not note that the savepoint is settled", error=error)
            self.handle(told)

        self._parts.executor.submit(
            LOG_LANE,
            lambda: self._parts.log.record_published(note),
            lambda _: self.handle(told),
            not_noted,
        )

    def _background(self, lane: str, work: Callable[[], None], done: Callable[[None], None]) -> None:
        self._parts.executor.submit(lane, work, done, self.fail)
