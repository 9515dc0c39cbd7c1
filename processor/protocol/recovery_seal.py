"""The first acts of an attempt: look at the markers without touching them, then seal the log (R1, R2)."""

from __future__ import annotations

from processor.errors import Fenced, LogConflict
from processor.ids import Attempt, PublisherId
from processor.invariant import invariant
from processor.protocol.decisions import LogView
from processor.protocol.entries import Seal
from processor.protocol.recovery_messages import (
    IncarnationMinted,
    LogRead,
    LookAtMarkers,
    MarkersSeen,
    MintIncarnation,
    PlaceLost,
    PlaceTaken,
    ReadLog,
    TakePlace,
)
from processor.protocol.recovery_request import JobIdentity, Recovery, StartRequest, ask

SEAL_TRIES_MAX = 16
"""Attempts that start at the same moment may take each other's place that often before one gives way."""


def seal_log(identity: JobIdentity, request: StartRequest) -> Recovery[tuple[LogRead, Seal]]:
    for _ in range(SEAL_TRIES_MAX):
        # The markers first: an attempt that still runs decides and publishes meanwhile, and a log that was
        # read before its markers would look as if it had lost its end.
        seen = yield from _look(identity)
        read = yield from ask(ReadLog(), LogRead)
        log = read.log
        _compare(seen, identity, request, log)
        _same_places(identity, request, log)
        incarnation = log.incarnation
        if incarnation is None:
            minted = yield from ask(MintIncarnation(), IncarnationMinted)
            incarnation = minted.incarnation
        seal = Seal(
            place=log.next_place,
            attempt=Attempt(log.newest_attempt + 1),
            nonce="",
            incarnation=incarnation,
            job=identity.job,
            sinks=identity.sinks,
        )
        reply = yield TakePlace(entry=seal)
        if isinstance(reply, PlaceTaken):
            return read, seal
        invariant(isinstance(reply, PlaceLost), "a place is taken or lost")
    raise Fenced(f"{SEAL_TRIES_MAX} other attempts of job '{identity.job}' started at the same time")


def _look(identity: JobIdentity) -> Recovery[MarkersSeen]:
    """R2: before anything is taken over, only look."""
    publishers: set[PublisherId] = set()
    for sink in identity.sinks:
        publishers.update(sink.publishers(identity.job))
    return (yield from ask(LookAtMarkers(publishers=tuple(sorted(publishers))), MarkersSeen))


def _compare(seen: MarkersSeen, identity: JobIdentity, request: StartRequest, log: LogView) -> None:
    """R2: what was published is of this log, and the log, read afterwards, knows it."""
    for publisher, marker in sorted(seen.markers.items()):
        if marker is None or (request.take_over is not None and marker.incarnation == request.take_over):
            continue
        if marker.incarnation != log.incarnation:
            here = f"incarnation {log.incarnation}" if log.incarnation else "empty"
            raise LogConflict(
                f"{publisher} has published {marker}, but the decision log of job '{identity.job}' is {here}.",
                remedy="The checkpoint directory was emptied, mistyped or doubled, or the same job runs elsewhere. "
                "Give the right checkpoint.directory; or, to leave that history behind, start with "
                f"--take-over {marker.incarnation}. Copies of a job run under a name of their own.",
            )
        if marker.attempt > log.newest_attempt or marker.checkpoint > log.newest_id:
            raise LogConflict(
                f"{publisher} has published {marker}, but the decision log of job '{identity.job}' ends with "
                f"attempt {log.newest_attempt} and checkpoint {log.newest_id}: the log has lost its end, or is an "
                "older copy.",
                remedy="Restore the newest copy of the checkpoint directory. Going on from this one would publish "
                "twice.",
            )


def _same_places(identity: JobIdentity, request: StartRequest, log: LogView) -> None:
    """R15, R18: a cluster or topic made anew under the old name is another one."""
    before = log.newest_seal()
    if before is None:
        return
    old = {sink.sink: sink for sink in before.sinks}
    for sink in identity.sinks:
        was = old.get(sink.sink)
        if was is None:
            continue
        if was.cluster != sink.cluster:
            raise LogConflict(
                f"sink '{sink.sink}' has published on cluster {was.cluster}; now it is cluster {sink.cluster}: the "
                "cluster was made anew, or the settings lead to another one.",
                remedy="Give the settings of the right cluster; or move the sink by giving its step a new name.",
            )
        if was.marker_store != sink.marker_store:
            raise LogConflict(
                f"sink '{sink.sink}' has published with markers in topic id {was.marker_store}; now the marker topic "
                f"has id {sink.marker_store}: it was made anew, or another one is named, and what was published "
                "can't be known any more.",
                remedy="Name the right one; or see what is decided with 'processor outbox list', and settle it with "
                "'processor outbox publish' (what is decided is sent) or 'processor outbox skip' (it is out "
                "already): the job then goes on with the new one.",
            )
        for topic, topic_id in sorted(sink.targets.items()):
            if was.targets.get(topic, topic_id) != topic_id and not request.accept_duplicates:
                raise LogConflict(
                    f"sink '{sink.sink}': topic '{topic}' was made anew (id {was.targets[topic]}, now {topic_id}): "
                    "what was published into it is gone.",
                    remedy="Start with --accept-duplicates to go on into the new topic.",
                )
