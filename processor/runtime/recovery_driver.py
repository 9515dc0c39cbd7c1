"""Performs what protocol/recovery asks for, one action after another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.errors import DamagedFile, ExternalRefusal, HeldUp, SettingsError, Unavailable
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import Attempt, Incarnation, Marker, PublisherId, StepName
from processor.invariant import invariant
from processor.plan.compatibility import check_restore
from processor.plan.execution import ExecutionPlan
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry, Entry, Seal
from processor.protocol.messages import Publication
from processor.protocol.publishing import Wanted
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
from processor.protocol.recovery_request import JobIdentity, StartRequest
from processor.runtime.claimed_origin import ClaimedOrigin, claim_origin
from processor.runtime.discovery import Discovery
from processor.runtime.entry_writer import EntryWriter
from processor.runtime.origin import Origin, open_origin, write_savepoint
from processor.runtime.publishers import Publishers
from processor.runtime.renaming import Renaming, renamed_shape
from processor.runtime.savepoint_progress import SavepointProgress
from processor.storage.decision_log import DecisionLog, Taken
from processor.storage.directory import JobStore
from processor.storage.retention import refuse_condemned
from processor.task.publication import PublishTools, open_identity, publish
from processor.telemetry.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryParts:
    """What a recovery acts on."""

    store: JobStore
    log: DecisionLog
    entries: EntryWriter
    plan: ExecutionPlan
    publishers: Publishers
    publish_tools: PublishTools
    discovery: Discovery
    clock: Clock
    chance: Chance
    faults: FaultHook
    say: Log
    dropped: frozenset[StepName]
    """Steps whose state may be forgotten, if the job has them no more."""
    claim: str | None
    """The path of the origin whose files are to be taken over."""
    renamed: tuple[Renaming, ...]


class RecoveryDriver:
    def __init__(self, parts: RecoveryParts) -> None:
        self._parts = parts
        self._origins: dict[str, Origin | ClaimedOrigin] = {}
        self._view = LogView(entries=())
        self.sealed: Attempt | None = None
        """The attempt, once its seal has its place."""

    def run(self, identity: JobIdentity, request: StartRequest) -> Recovered:
        """The whole recovery; blocks until it is done. Raises what stops it."""
        recovery = recover(identity, request)
        try:
            action = next(recovery)
            while True:
                action = recovery.send(self._perform(action))
        except StopIteration as end:
            recovered = end.value
            invariant(isinstance(recovered, Recovered), "a recovery ends with what it recovered")
            assert isinstance(recovered, Recovered)
            self._release()
            return recovered

    def _perform(self, action: RecoveryAction) -> RecoveryReply:
        match action:
            case ReadLog():
                return self._read_log()
            case LookAtMarkers(publishers=publishers):
                return MarkersSeen(markers={p: self._parts.publishers.of(p).look() for p in publishers})
            case MintIncarnation():
                return IncarnationMinted(incarnation=Incarnation(self._parts.chance.token()))
            case TakePlace(entry=entry):
                return self._take(entry)
            case VerifyFiles(entry=entry):
                return self._verify(entry)
            case CheckFits(shape=shape):
                was = renamed_shape(shape, self._parts.renamed)
                check_restore(self._parts.plan.shape, was, dropped=self._parts.dropped)
                return Fits()
            case PublishAll():
                return self._publish_all(action)
            case OpenAll():
                return self._open_all(action)
            case Record(published=published):
                self._parts.faults(FaultPoint.PUBLISHED_NOT_RECORDED)
                self._parts.log.record_published(published)
                self._parts.faults(FaultPoint.RECOVERY_AFTER_PUBLISHING)
                return Recorded()
            case FinishSavepoint(entry=entry):
                return self._finish_savepoint(entry)
            case InspectOrigin(path=path):
                return self._origin(path).found
            case CopyOrigin(path=path, attempt=attempt):
                return self._copy(path, attempt)
            case ResolveStart():
                return SnapshotsReady(subtasks=self._parts.discovery.first_snapshots())
            case _:
                assert_never(action)

    def _read_log(self) -> LogRead:
        log = self._view = self._parts.log.read_all()
        for entry in log.entries:
            if isinstance(entry, Seal):
                self._parts.publishers.remember(entry.sinks)
        return LogRead(log=log, published=self._parts.log.published())

    def _take(self, entry: Entry) -> PlaceTaken | PlaceLost:
        if not isinstance(self._parts.entries.take(entry), Taken):
            return PlaceLost()
        if isinstance(entry, Seal):
            self.sealed = entry.attempt
            self._parts.say.info("sealed the decision log", attempt=entry.attempt, place=entry.place)
            self._parts.faults(FaultPoint.RECOVERY_SEALED)
        return PlaceTaken()

    def _verify(self, entry: CheckpointEntry) -> FilesVerified:
        refuse_condemned(self._view, entry)
        try:
            for ref in entry.files():
                self._parts.store.files.verify(ref)
        except DamagedFile as damage:
            self._parts.say.warning("checkpoint can't be read", checkpoint=entry.checkpoint, error=damage)
            return FilesVerified(damage=damage.message)
        return FilesVerified()

    def _publish_all(self, action: PublishAll) -> MarkersWritten:
        self._parts.say.info(
            "publishing what was decided",
            checkpoint=action.checkpoint,
            rows=sum(publication.rows for publication in action.publications),
        )
        self._parts.faults(FaultPoint.RECOVERY_BEFORE_PUBLISHING)
        markers: dict[PublisherId, Marker] = {}
        waiting, gives_way = action.publications, True
        while waiting:
            held_up: list[Publication] = []
            for publication in waiting:
                try:
                    markers[publication.publisher] = self._publish(action, publication, gives_way=gives_way)
                except HeldUp:
                    held_up.append(publication)
                    continue
                if len(markers) < len(action.publications):
                    self._parts.faults(FaultPoint.SOME_SINKS_PUBLISHED)
            gives_way = len(held_up) < len(waiting)  # when nobody got on, each waits its full time
            waiting = tuple(held_up)
        return MarkersWritten(markers=markers)

    def _publish(self, action: PublishAll, publication: Publication, *, gives_way: bool) -> Marker:
        wanted = Wanted(
            incarnation=action.incarnation,
            attempt=action.attempt,
            checkpoint=action.checkpoint,
            rows=publication.rows,
        )
        publisher = self._parts.publishers.of(publication.publisher)
        tools = replace(self._parts.publish_tools, gives_way=gives_way)
        return publish(publisher, publication, wanted, tools)

    def _open_all(self, action: OpenAll) -> MarkersWritten:
        markers: dict[PublisherId, Marker] = {}
        for opening in action.openings:
            publisher = self._parts.publishers.of(opening.publisher)
            markers[opening.publisher] = open_identity(publisher, opening, self._parts.publish_tools)
            self._parts.faults(FaultPoint.RECOVERY_OPENING)
        return MarkersWritten(markers=markers)

    def _finish_savepoint(self, entry: CheckpointEntry) -> SavepointFinished:
        parts = self._parts
        say = parts.say.bind(checkpoint=entry.checkpoint, savepoint=entry.savepoint)
        try:
            write_savepoint(
                entry,
                parts.store,
                entry.savepoint,
                job=parts.plan.job,
                token=parts.chance.token,
                faults=parts.faults,
                native=entry.native,
                progress=SavepointProgress(say, parts.clock),
                begun=True,
            )
            say.info("the savepoint of the stop before is whole")
        except (SettingsError, ExternalRefusal, Unavailable, DamagedFile) as error:
            say.warning("the savepoint of the stop before could not be written", error=error)
        return SavepointFinished()

    def _copy(self, path: str, attempt: Attempt) -> SnapshotsReady:
        parts, origin = self._parts, self._origin(path)
        say = parts.say.bind(attempt=attempt, origin=path)
        progress = SavepointProgress(say, parts.clock, "taking over the state it starts from")
        copied = origin.restore_into(parts.store.files, attempt, parts.chance.token, progress)
        return SnapshotsReady(subtasks=copied, participants=origin.entry.participants)

    def _origin(self, path: str) -> Origin | ClaimedOrigin:
        if path not in self._origins:
            store, token = self._parts.store, self._parts.chance.token
            groups = self._parts.plan.max_parallelism
            if path == self._parts.claim:
                ours = self._view.incarnation
                found = claim_origin(path, store, ours=ours, key_groups=groups, token=token)
                self._parts.say.info("sealed the log of the checkpoints that are claimed", origin=path)
                self._origins[path] = found
            else:
                self._origins[path] = open_origin(path, store, key_groups=groups, token=token)
        return self._origins[path]

    def _release(self) -> None:
        """What was claimed is listed in a decided checkpoint of this job by now, under names of its own. Not when the
        newest rewind was to something else, whatever it was called (``--request``)."""
        rewind = self._parts.log.read_all().newest_rewind() if self._origins else None
        for path, origin in self._origins.items():
            if isinstance(origin, ClaimedOrigin) and rewind is not None and rewind.origin == path:
                try:
                    removed = origin.release()
                except Unavailable as error:  # garbage, which the same command line removes the next time
                    self._parts.say.warning("could not remove what was claimed", origin=path, error=error)
                else:
                    self._parts.say.info("removed what was claimed", origin=path, files=removed)
