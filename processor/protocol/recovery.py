"""From whatever the last attempt left behind to a checkpoint that is published, opened and ready to restore.

The order is the rule (R1, R2, R3, R8, R11, R14, R18):

    look → seal → verify the newest decided checkpoint → publish it → (savepoint of a stop) → record it
         → (rewind) → (first checkpoint) → open every identity → restore

A generator: it yields what it wants done and is sent what happened. So it is pure, and anything may happen
between any two of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from processor.errors import DamagedFile, Fenced, JobError, LogConflict
from processor.ids import (
    NO_CHECKPOINT,
    CheckpointId,
    Marker,
    Place,
    PublisherId,
)
from processor.invariant import invariant
from processor.protocol.decisions import LogView, expected_of, is_published, rows_of
from processor.protocol.entries import (
    CheckpointEntry,
    Published,
    Rewind,
    Seal,
)
from processor.protocol.messages import Publication
from processor.protocol.publishing import Wanted
from processor.protocol.recovered import Recovered
from processor.protocol.recovery_messages import (
    CheckFits,
    CopyOrigin,
    FilesVerified,
    FinishSavepoint,
    Fits,
    InspectOrigin,
    LookAtMarkers,
    MarkersSeen,
    MarkersWritten,
    OpenAll,
    Opening,
    OriginFound,
    PlaceLost,
    PlaceTaken,
    PublishAll,
    Record,
    Recorded,
    ResolveStart,
    SavepointFinished,
    SnapshotsReady,
    TakePlace,
    VerifyFiles,
)
from processor.protocol.recovery_request import FRESH, JobIdentity, Recovery, StartRequest, ask
from processor.protocol.recovery_seal import seal_log


def recover(identity: JobIdentity, request: StartRequest) -> Recovery[Recovered]:
    """Run the whole recovery. Raises LogConflict, DamagedFile, Fenced; effects raise what they meet."""
    read, seal = yield from seal_log(identity, request)
    log = LogView(entries=(*read.log.entries, seal))
    sealed = _Sealed(identity=identity, request=request, log=log, seal=seal)
    newest = log.newest()
    published = read.published
    standing: _Standing | None = None
    if newest is not None:
        standing = yield from _settle(sealed, newest, published)
    rewind = yield from _rewind_wanted(sealed, standing)
    if rewind is not None:
        yield from _take(rewind.entry)
        sealed = replace(sealed, log=LogView(entries=(*sealed.log.entries, rewind.entry)))
        standing = None
    if standing is None:
        standing = yield from _first_checkpoint(sealed, rewind)
    yield CheckFits(shape=standing.entry.shape)
    markers = yield from _open(standing)
    log = standing.sealed.log
    return Recovered(
        attempt=seal.attempt,
        incarnation=seal.incarnation,
        next_place=log.next_place,
        entry=standing.entry,
        next_checkpoint=CheckpointId(max(log.newest_id, standing.floor) + 1),
        markers=markers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sealed:
    identity: JobIdentity
    request: StartRequest
    log: LogView
    """The log up to and with what this attempt wrote."""
    seal: Seal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """The checkpoint to restore: all of it is out."""

    sealed: _Sealed
    entry: CheckpointEntry
    floor: CheckpointId = NO_CHECKPOINT
    unreadable: CheckpointEntry | None = None
    """The newer one that can't be read (R8)."""
    damage: str = ""
    """Why it can't be read, with the name of the file."""
    unrecorded: frozenset[PublisherId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RewindTo:
    entry: Rewind
    floor: CheckpointId


# --- settle what is decided


def _settle(sealed: _Sealed, newest: CheckpointEntry, published: Published | None) -> Recovery[_Standing]:
    """Verify, publish and record the newest decided checkpoint; or find the parent to go back to (R8)."""
    missing: tuple[PublisherId, ...] = ()
    if not is_published(newest, published):
        missing = yield from _not_out(newest)
    # Outboxes are deleted once published, so those that are out are not asked for (R7).
    verified = yield from ask(VerifyFiles(entry=_with_outboxes_of(newest, missing)), FilesVerified)
    if verified.damage:
        return (yield from _go_back(sealed, newest, published, verified.damage))
    if missing:
        expected = expected_of(newest)
        files = newest.outboxes()
        publications = tuple(
            Publication(publisher=publisher, outboxes=files[publisher], expected=expected[publisher])
            for publisher in missing
        )
        publish = PublishAll(
            checkpoint=newest.checkpoint,
            publications=publications,
            incarnation=sealed.seal.incarnation,
            attempt=sealed.seal.attempt,
        )
        yield from ask(publish, MarkersWritten)
    unfinished = _savepoint_unfinished(newest, published)
    if unfinished:
        yield from ask(FinishSavepoint(entry=newest), SavepointFinished)
    if unfinished or not is_published(newest, published):
        yield from _record(sealed, newest, savepoint_settled=unfinished)
    return _Standing(sealed=sealed, entry=newest)


def _savepoint_unfinished(newest: CheckpointEntry, published: Published | None) -> bool:
    """Whether the process that decided to stop may have died before its savepoint was whole (R24). Of any other
    checkpoint nobody waits for one any more."""
    settled = (
        published is not None
        and (published.incarnation, published.checkpoint) == (newest.incarnation, newest.checkpoint)
        and published.savepoint_settled
    )
    return newest.stop and bool(newest.savepoint) and not settled


def _not_out(entry: CheckpointEntry) -> Recovery[tuple[PublisherId, ...]]:
    """Identities whose marker does not say that all rows are out: a stale look only names too many (R17)."""
    rows = rows_of(entry)
    seen = yield from ask(LookAtMarkers(publishers=tuple(sorted(rows))), MarkersSeen)
    return tuple(
        publisher
        for publisher, count in sorted(rows.items())
        if (marker := seen.markers.get(publisher)) is None
        or (marker.incarnation, marker.checkpoint, marker.rows)
        != (entry.incarnation, entry.checkpoint, count)
    )


def _record(sealed: _Sealed, entry: CheckpointEntry, *, savepoint_settled: bool = False) -> Recovery[None]:
    note = Published(
        incarnation=sealed.seal.incarnation,
        attempt=sealed.seal.attempt,
        checkpoint=entry.checkpoint,
        savepoint_settled=savepoint_settled,
    )
    yield from ask(Record(published=note), Recorded)


def _go_back(
    sealed: _Sealed, newest: CheckpointEntry, published: Published | None, damage: str
) -> Recovery[_Standing]:
    parent = sealed.log.parent_of(newest)
    if parent is None:
        raise DamagedFile(
            f"checkpoint {newest.checkpoint} can't be read: {damage}; and it has no parent to go back to.",
            remedy="Restore the file, or start from a savepoint with --from.",
        )
    if newest.outboxes() and is_published(newest, published):
        raise DamagedFile(
            f"checkpoint {newest.checkpoint} can't be read: {damage}; and its output is published already, so going "
            f"back to checkpoint {parent.checkpoint} would publish it twice.",
            remedy="Restore the file; or start from a savepoint with --from and --accept-duplicates.",
        )
    verified = yield from ask(VerifyFiles(entry=_with_outboxes_of(parent, ())), FilesVerified)
    if verified.damage:
        raise DamagedFile(
            f"neither checkpoint {newest.checkpoint} ({damage}) nor its parent {parent.checkpoint} "
            f"({verified.damage}) can be read.",
            remedy="Restore the files, or start from a savepoint with --from.",
        )
    return _Standing(
        sealed=sealed,
        entry=parent,
        unreadable=newest,
        damage=damage,
        unrecorded=frozenset(rows_of(newest)),
    )


def _with_outboxes_of(entry: CheckpointEntry, publishers: tuple[PublisherId, ...]) -> CheckpointEntry:
    """The entry with the outboxes of these identities only."""
    return replace(
        entry,
        subtasks=tuple(
            replace(subtask, outboxes=tuple(o for o in subtask.outboxes if o.publisher in publishers))
            for subtask in entry.subtasks
        ),
    )


# --- rewinds and first checkpoints


def _rewind_wanted(sealed: _Sealed, standing: _Standing | None) -> Recovery[_RewindTo | None]:
    """R3: does the request change the branch, or was that done by an earlier start of the same command?"""
    request, log = sealed.request, sealed.log
    if request.origin is None:
        return None
    floor = NO_CHECKPOINT
    token = request.token or FRESH
    origin: OriginFound | None = None
    if request.origin != FRESH:
        origin = yield from ask(InspectOrigin(path=request.origin), OriginFound)
        yield from ask(CheckFits(shape=origin.shape), Fits)
        token = request.token or origin.identity
        floor = origin.checkpoint
    last = log.newest_rewind()
    if last is not None and last.token == token:
        return None
    if origin is not None and origin.drained:
        raise JobError(
            f"checkpoint {origin.checkpoint} in '{request.origin}' was drained: all event-time timers have fired and "
            "event time is at its end, so whatever is read from there on would be late.",
            remedy="Start from a savepoint taken before the drain, or begin anew with --fresh. To stop a job that is "
            "to go on, leave --drain out.",
        )
    _nothing_published_behind(sealed, standing, origin)
    entry = Rewind(
        place=log.next_place,
        attempt=sealed.seal.attempt,
        nonce="",
        incarnation=sealed.seal.incarnation,
        token=token,
        origin=request.origin,
        parent=standing.entry.checkpoint if standing is not None else NO_CHECKPOINT,
    )
    return _RewindTo(entry=entry, floor=floor)


def _nothing_published_behind(
    sealed: _Sealed, standing: _Standing | None, origin: OriginFound | None
) -> None:
    entry = standing.entry if standing is not None else None
    unreadable = standing.unreadable if standing is not None else None
    # A newest checkpoint that can't be read and has no output is replaced by its savepoint without a loss.
    points = [entry, unreadable if unreadable is not None and not unreadable.outboxes() else None]
    same_point = origin is not None and any(
        origin.incarnation == point.incarnation and origin.checkpoint == point.checkpoint
        for point in points
        if point is not None
    )
    # A branch that has only begun has published nothing; the branches that were left may have.
    begun = entry is None or entry.parent == NO_CHECKPOINT
    left = [e for e in sealed.log.entries if isinstance(e, Rewind) and e.parent != NO_CHECKPOINT]
    if sealed.request.accept_duplicates or same_point or (begun and not left):
        return
    # The seal in force while the branch ran is the one before ours.
    seals = [e for e in sealed.log.entries if isinstance(e, Seal) and e.place < sealed.seal.place]
    used = {topic for seal in seals for sink in seal.sinks for topic in sink.targets}
    again = sorted(used & {topic for sink in sealed.identity.sinks for topic in sink.targets})
    if again:
        raise LogConflict(
            f"job '{sealed.identity.job}' has published up to checkpoint {sealed.log.newest_id} into "
            f"{', '.join(again)}; starting from {sealed.request.origin} would publish some of it again.",
            remedy="Map its topics to others (kafka.<cluster>.topic_map), or start with --accept-duplicates.",
        )


def _first_checkpoint(sealed: _Sealed, rewind: _RewindTo | None) -> Recovery[_Standing]:
    """R4: the first checkpoint of a branch, decided before any source emits; it has no output."""
    last = sealed.log.newest_rewind()
    origin = last.origin if last is not None else FRESH
    floor = rewind.floor if rewind is not None else NO_CHECKPOINT
    shape = sealed.identity.shape
    if origin == FRESH:
        ready = yield from ask(ResolveStart(), SnapshotsReady)
    else:
        found = yield from ask(InspectOrigin(path=origin), OriginFound)
        floor, shape = found.checkpoint, found.shape
        ready = yield from ask(CopyOrigin(path=origin, attempt=sealed.seal.attempt), SnapshotsReady)
    first = CheckpointEntry(
        place=sealed.log.next_place,
        attempt=sealed.seal.attempt,
        nonce="",
        incarnation=sealed.seal.incarnation,
        job=sealed.identity.job,
        checkpoint=CheckpointId(max(sealed.log.newest_id, floor) + 1),
        parent=NO_CHECKPOINT,
        taken_ms=0,
        shape=shape,
        subtasks=ready.subtasks,
        expected=(),
        participants=ready.participants,
    )
    # A savepoint is published: it holds nothing to publish (R23).
    entry = _with_outboxes_of(first, ())
    yield from _take(entry)
    log = LogView(entries=(*sealed.log.entries, entry))
    return _Standing(sealed=replace(sealed, log=log), entry=entry, floor=floor)


# --- opening


def _open(standing: _Standing) -> Recovery[dict[PublisherId, Marker]]:
    """R14, R18: every identity since the restored checkpoint, and the new ones.

    Who goes back from an unreadable checkpoint writes what that one expects, under its own attempt: should it be
    readable again before another one is decided, it is published after all (R8, R11).
    """
    sealed = standing.sealed
    job = sealed.identity.job
    publishers = set(sealed.log.publishers_since(_branch_start(standing), job))
    for sink in sealed.identity.sinks:
        publishers.update(sink.publishers(job))
    rows = rows_of(standing.entry)
    unreadable = standing.unreadable.checkpoint if standing.unreadable is not None else None
    kept = expected_of(standing.unreadable) if standing.unreadable is not None else {}
    places = {publisher: (marker.checkpoint, marker.rows) for publisher, marker in kept.items()}
    openings = tuple(
        Opening(
            publisher=publisher,
            wanted=Wanted(
                incarnation=sealed.seal.incarnation,
                attempt=sealed.seal.attempt,
                checkpoint=place[0],
                rows=place[1],
            ),
            unrecorded=publisher in standing.unrecorded,
            newest_id=sealed.log.newest_id,
            accepted=sealed.request.take_over,
            unreadable=unreadable,
            damage=standing.damage,
        )
        for publisher in sorted(publishers)
        for place in (places.get(publisher, (standing.entry.checkpoint, rows.get(publisher, 0))),)
    )
    written = yield from ask(OpenAll(openings=openings), MarkersWritten)
    return dict(written.markers)


def _branch_start(standing: _Standing) -> Place:
    """Where identities are collected from: the restored checkpoint, or, on a new branch, the branch it left,
    whose last attempts may still be asleep."""
    log = standing.sealed.log
    entry = standing.entry
    rewind = log.newest_rewind()
    if rewind is None or entry.parent != NO_CHECKPOINT:
        return entry.place
    left = [e for e in log.checkpoints() if e.place < rewind.place]
    return left[-1].place if left else Place(1)


# --- asking


def _take(entry: Rewind | CheckpointEntry) -> Recovery[None]:
    reply = yield TakePlace(entry=entry)
    if isinstance(reply, PlaceLost):
        raise Fenced(f"a newer attempt has taken place {entry.place} of the decision log")
    invariant(isinstance(reply, PlaceTaken), "a place is taken or lost")
