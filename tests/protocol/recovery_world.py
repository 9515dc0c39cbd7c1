"""A small world for recoveries: a log, markers, files and sources in memory, and a hand to disturb them.

It performs what a recovery asks for, by the same pure verdicts as the product, and keeps what is visible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from processor.errors import Fenced, JobError, LogConflict
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
    Position,
    PublisherId,
    SplitId,
    StepName,
    SubtaskId,
)
from processor.protocol.decisions import LogView
from processor.protocol.entries import (
    CheckpointEntry,
    Entry,
    JobShape,
    OutboxFile,
    Published,
    Seal,
    SinkRecord,
    SourceState,
    StateFile,
    SubtaskSnapshot,
)
from processor.protocol.publishing import (
    Send,
    StopLoudly,
    StopQuietly,
    Verdict,
    Wanted,
    judge_opening,
    judge_publication,
)
from processor.protocol.recovered import Recovered
from processor.protocol.recovery import recover
from processor.protocol.recovery_messages import (
    CheckFits,
    CopyOrigin,
    FilesVerified,
    FinishSavepoint,
    Fits,
    IncarnationMinted,
    InspectOrigin,
    LogRead,
    LookAtMarkers,
    MarkersSeen,
    MarkersWritten,
    MintIncarnation,
    OpenAll,
    OriginFound,
    PlaceLost,
    PlaceTaken,
    PublishAll,
    ReadLog,
    Record,
    Recorded,
    RecoveryAction,
    RecoveryReply,
    ResolveStart,
    SavepointFinished,
    SnapshotsReady,
    TakePlace,
    VerifyFiles,
)
from processor.protocol.recovery_request import FRESH, JobIdentity, StartRequest

JOB = JobName("counts")
SINK = StepName("out")
READ = SubtaskId(StepName("read"), 0)
SHAPE = JobShape(max_parallelism=8, parallelism={}, stateful={})
START = SourceState(step=StepName("read"), positions={SplitId("lines/0"): Position(next=7)})
STARTED = SubtaskSnapshot(subtask=READ, sources=(START,))


def publisher(index: int = 0, sink: StepName = SINK) -> PublisherId:
    return PublisherId(JOB, sink, index)


def sink_record(
    parallelism: int = 1,
    *,
    cluster: str = "c1",
    marker_store: str = "m1",
    targets: Mapping[str, str] | None = None,
    sink: StepName = SINK,
) -> SinkRecord:
    return SinkRecord(
        sink=sink,
        parallelism=parallelism,
        cluster=cluster,
        marker_store=marker_store,
        targets=targets or {"counts": "t1"},
    )


@dataclass
class World:
    """What outlives attempts."""

    entries: list[Entry] = field(default_factory=list)
    note: Published | None = None
    markers: dict[PublisherId, Marker] = field(default_factory=dict)
    out: dict[PublisherId, list[tuple[int, int]]] = field(default_factory=dict)
    """Rows that can be read, as (checkpoint, row)."""
    files: set[str] = field(default_factory=set)
    origins: dict[str, OriginFound] = field(default_factory=dict)
    savepoints: list[CheckpointId] = field(default_factory=list)
    """Checkpoints whose savepoint was finished."""
    copied: list[str] = field(default_factory=list)
    resolved: int = 0
    unfit: bool = False
    did: list[RecoveryAction] = field(default_factory=list)
    """Of the newest recovery."""
    before: Callable[[RecoveryAction], None] = lambda action: None
    """Called before each action: where a test lets something happen in between, or ends the attempt."""

    # --- an attempt

    def recover(
        self,
        *,
        parallelism: int = 1,
        origin: str | None = None,
        token: str | None = None,
        take_over: str | None = None,
        accept_duplicates: bool = False,
        sinks: Sequence[SinkRecord] | None = None,
    ) -> Recovered:
        identity = JobIdentity(
            job=JOB,
            shape=SHAPE,
            sinks=tuple(sinks) if sinks is not None else (sink_record(parallelism),),
        )
        request = StartRequest(
            origin=origin,
            token=token,
            take_over=Incarnation(take_over) if take_over else None,
            accept_duplicates=accept_duplicates,
        )
        self.did = []
        steps = recover(identity, request)
        try:
            action = next(steps)
            while True:
                self.before(action)
                self.did.append(action)
                action = steps.send(self.perform(action))
        except StopIteration as end:
            recovered: Recovered = end.value
            return recovered

    def kinds(self) -> list[str]:
        return [type(action).__name__ for action in self.did]

    def perform(self, action: RecoveryAction) -> RecoveryReply:
        match action:
            case ReadLog():
                return LogRead(log=self.log, published=self.note)
            case LookAtMarkers(publishers=publishers):
                return MarkersSeen(markers={p: self.markers.get(p) for p in publishers})
            case MintIncarnation():
                return IncarnationMinted(incarnation=Incarnation("minted"))
            case TakePlace(entry=entry):
                return PlaceTaken() if self.take(entry) else PlaceLost()
            case VerifyFiles(entry=entry):
                missing = [file.name for file in entry.files() if file.name not in self.files]
                return FilesVerified(damage=f"'{missing[0]}' is missing" if missing else "")
            case CheckFits():
                if self.unfit:
                    raise JobError("the state does not fit")
                return Fits()
            case PublishAll():
                return self._publish_all(action)
            case OpenAll(openings=openings):
                written = {opening.publisher: self._open(opening) for opening in openings}
                return MarkersWritten(markers=written)
            case Record(published=published):
                self.note = published
                return Recorded()
            case FinishSavepoint(entry=entry):
                self.savepoints.append(entry.checkpoint)
                return SavepointFinished()
            case InspectOrigin(path=path):
                return self.origins[path]
            case CopyOrigin(path=path):
                self.copied.append(path)
                return SnapshotsReady(subtasks=(STARTED,))
            case ResolveStart():
                self.resolved += 1
                return SnapshotsReady(subtasks=(STARTED,))

    # --- the log

    @property
    def log(self) -> LogView:
        return LogView(entries=tuple(self.entries))

    def take(self, entry: Entry) -> bool:
        if any(there.place == entry.place for there in self.entries):
            return False
        self.entries.append(entry)
        return True

    def sealed(self, attempt: Attempt) -> bool:
        return self.log.sealed(attempt)

    def seal(self) -> Seal:
        """Another attempt seals the log."""
        newest = self.log.newest_seal()
        seal = Seal(
            place=self.log.next_place,
            attempt=Attempt(self.log.newest_attempt + 1),
            nonce="",
            incarnation=self.log.incarnation or Incarnation("minted"),
            job=JOB,
            sinks=newest.sinks if newest else (sink_record(),),
        )
        assert self.take(seal)
        return seal

    def decide(
        self,
        recovered: Recovered,
        checkpoint: int | None = None,
        *,
        rows: Mapping[PublisherId, int] | None = None,
        parent: CheckpointEntry | None = None,
        stop: bool = False,
        savepoint: str = "",
    ) -> CheckpointEntry:
        """The attempt decides a checkpoint; nothing of it is published yet."""
        before = parent or self.log.newest()
        assert before is not None
        number = CheckpointId(checkpoint or max(self.log.newest_id, recovered.next_checkpoint - 1) + 1)
        outboxes = tuple(
            OutboxFile(
                publisher=p,
                cut=number,
                file=file_ref(f"{recovered.attempt}/{p}-{number}.outbox"),
                rows=count,
            )
            for p, count in sorted((rows or {}).items())
        )
        state = StateFile(
            step=StepName("count"),
            file=file_ref(f"{recovered.attempt}/state-{number}"),
            key_groups=KeyGroupRange(0, 8),
            states={},
        )
        entry = CheckpointEntry(
            place=self.log.next_place,
            attempt=recovered.attempt,
            nonce="",
            incarnation=recovered.incarnation,
            job=JOB,
            checkpoint=number,
            parent=before.checkpoint,
            taken_ms=0,
            shape=SHAPE,
            subtasks=(replace(STARTED, keyed=(state,), outboxes=outboxes),),
            expected=tuple(sorted(self.markers.items())),
            stop=stop,
            savepoint=savepoint,
        )
        assert self.take(entry)
        self.files.update(file.name for file in entry.files())
        return entry

    # --- the outside system

    def publish(
        self, entry: CheckpointEntry, attempt: Attempt, *only: PublisherId, rows: int | None = None
    ) -> None:
        """An attempt publishes what is decided, as it would while running; ``rows``: and dies half-way."""
        expected = dict(entry.expected)
        for identity, files in entry.outboxes().items():
            if only and identity not in only:
                continue
            wanted = Wanted(
                incarnation=entry.incarnation,
                attempt=attempt,
                checkpoint=entry.checkpoint,
                rows=sum(box.rows for box in files),
            )
            self._publish(identity, wanted, expected[identity], rows)

    def _publish_all(self, action: PublishAll) -> MarkersWritten:
        for publication in action.publications:
            wanted = Wanted(
                incarnation=action.incarnation,
                attempt=action.attempt,
                checkpoint=action.checkpoint,
                rows=publication.rows,
            )
            self._publish(publication.publisher, wanted, publication.expected, None)
        return MarkersWritten(markers={p.publisher: self.markers[p.publisher] for p in action.publications})

    def _publish(self, identity: PublisherId, wanted: Wanted, expected: Marker, rows: int | None) -> None:
        verdict = judge_publication(
            self.markers.get(identity), wanted=wanted, expected=expected, sealed=self.sealed
        )
        refuse(verdict, identity)
        if isinstance(verdict, Send):
            until = wanted.rows if rows is None else rows
            sent = [(int(wanted.checkpoint), row) for row in range(verdict.from_row, until)]
            self.out.setdefault(identity, []).extend(sent)
            self.markers[identity] = wanted.marker(until)

    def _open(self, opening: Any) -> Marker:
        verdict = judge_opening(
            self.markers.get(opening.publisher),
            opening=opening.wanted,
            sealed=self.sealed,
            unrecorded=opening.unrecorded,
            newest_id=opening.newest_id,
            accepted=opening.accepted,
            unreadable=opening.unreadable,
        )
        refuse(verdict, opening.publisher)
        marker: Marker = opening.wanted.marker(opening.wanted.rows)
        self.markers[opening.publisher] = marker
        return marker

    def record(self, entry: CheckpointEntry) -> None:
        self.note = Published(
            incarnation=entry.incarnation, attempt=entry.attempt, checkpoint=entry.checkpoint
        )

    def damage(self, entry: CheckpointEntry) -> None:
        """Its state can't be read any more."""
        self.files -= {state.file.name for subtask in entry.subtasks for state in subtask.keyed}

    def forget_outboxes(self, entry: CheckpointEntry) -> None:
        """Outboxes are deleted once published (R7)."""
        self.files -= {box.file.name for subtask in entry.subtasks for box in subtask.outboxes}

    def savepoint(self, path: str, entry: CheckpointEntry) -> None:
        self.origins[path] = OriginFound(
            identity=f"{entry.incarnation}-{entry.checkpoint}",
            incarnation=entry.incarnation,
            checkpoint=entry.checkpoint,
            shape=SHAPE,
            drained=entry.drained,
        )


def refuse(verdict: Verdict, identity: PublisherId) -> None:
    match verdict:
        case StopLoudly(reason=reason):
            raise LogConflict(f"{identity}: {reason}")
        case StopQuietly(newer=newer):
            raise Fenced(f"attempt {newer} has taken over {identity}")
        case _:
            return None


def file_ref(name: str) -> FileRef:
    return FileRef(name=name, bytes=1, sha256="0" * 64)


__all__ = ["FRESH", "JOB", "NO_CHECKPOINT", "Place", "World", "publisher", "sink_record"]
