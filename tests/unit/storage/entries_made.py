"""Entries for tests: by hand, and at random."""

from __future__ import annotations

from hypothesis import strategies as st

from processor.ids import (
    Attempt,
    CheckpointId,
    EdgeName,
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
from processor.protocol.entries import (
    ChannelFile,
    CheckpointEntry,
    DatabaseFile,
    JobShape,
    OutboxFile,
    Published,
    ReachedEventTime,
    Rewind,
    Seal,
    SinkRecord,
    SourceState,
    StateFile,
    SubtaskSnapshot,
)

JOB = JobName("counts")
INCARNATION = Incarnation("first")
SINK = PublisherId(JOB, StepName("sink"), 0)


def seal(place: int, attempt: int, nonce: str = "") -> Seal:
    return Seal(
        place=Place(place),
        attempt=Attempt(attempt),
        nonce=nonce or f"seal-{place}-{attempt}",
        incarnation=INCARNATION,
        job=JOB,
        sinks=(),
    )


def rewind(place: int, attempt: int, parent: int = 0) -> Rewind:
    return Rewind(
        place=Place(place),
        attempt=Attempt(attempt),
        nonce=f"rewind-{place}",
        incarnation=INCARNATION,
        token="fresh",
        origin="fresh",
        parent=CheckpointId(parent),
    )


def checkpoint(
    place: int,
    attempt: int,
    number: int,
    *,
    parent: int | None = None,
    states: tuple[str, ...] = (),
    outboxes: tuple[str, ...] = (),
    condemned: tuple[str, ...] = (),
) -> CheckpointEntry:
    return CheckpointEntry(
        place=Place(place),
        attempt=Attempt(attempt),
        nonce=f"checkpoint-{place}-{attempt}",
        incarnation=INCARNATION,
        job=JOB,
        checkpoint=CheckpointId(number),
        parent=CheckpointId(number - 1 if parent is None else parent),
        taken_ms=0,
        shape=JobShape(max_parallelism=16, parallelism={}, stateful={}),
        subtasks=(
            SubtaskSnapshot(
                subtask=SubtaskId(StepName("count"), 0),
                keyed=tuple(
                    StateFile(
                        step=StepName("count"), file=file(n), key_groups=KeyGroupRange(0, 16), states={}
                    )
                    for n in states
                ),
                outboxes=tuple(
                    OutboxFile(publisher=SINK, cut=CheckpointId(number), file=file(n), rows=1)
                    for n in outboxes
                ),
            ),
        ),
        expected=(),
        condemned=condemned,
    )


def file(name: str) -> FileRef:
    return FileRef(name=name, bytes=1, sha256="0" * 64)


def published(number: int) -> Published:
    return Published(incarnation=INCARNATION, attempt=Attempt(1), checkpoint=CheckpointId(number))


# --- at random

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
names = texts.map(StepName)
counts = st.integers(0, 2**63 - 1)
whole = st.integers(-(2**63), 2**63 - 1)
publishers = st.builds(PublisherId, texts.map(JobName), names, counts)
refs = st.builds(FileRef, name=texts, bytes=counts, sha256=texts)
descriptions = st.dictionaries(texts, texts, max_size=2)


def few(of):
    return st.lists(of, max_size=2).map(tuple)


markers = st.builds(
    Marker,
    incarnation=texts.map(Incarnation),
    attempt=counts.map(Attempt),
    checkpoint=counts.map(CheckpointId),
    rows=counts,
)
positions = st.builds(
    Position, next=counts, end=st.one_of(st.none(), counts), identity=texts, leader_epoch=whole
)
sources = st.builds(
    SourceState,
    step=names,
    positions=st.dictionaries(texts.map(SplitId), positions, max_size=2),
    watermarks=st.dictionaries(texts.map(SplitId), whole, max_size=2),
)
states = st.builds(
    StateFile,
    step=names,
    file=refs,
    key_groups=st.builds(KeyGroupRange, counts, counts),
    states=descriptions,
    database=st.one_of(st.none(), few(st.builds(DatabaseFile, local_name=texts, file=refs))),
)
outboxes = st.builds(OutboxFile, publisher=publishers, cut=counts.map(CheckpointId), file=refs, rows=counts)
edges = st.builds(EdgeName, origin=names, output=texts, target=names, input=counts)
channels = st.builds(
    ChannelFile,
    edge=edges,
    file=refs,
    key_groups=st.builds(KeyGroupRange, counts, counts),
    records=counts,
)
subtasks = st.builds(
    SubtaskSnapshot,
    subtask=st.builds(SubtaskId, names, counts),
    keyed=few(states),
    sources=few(sources),
    outboxes=few(outboxes),
    channels=few(channels),
    event_times=few(
        st.builds(
            ReachedEventTime,
            step=names,
            key_groups=st.builds(KeyGroupRange, counts, counts),
            watermark_ms=whole,
        )
    ),
    processing_time_ms=whole,
    finished=st.booleans(),
)
shapes = st.builds(
    JobShape,
    max_parallelism=counts,
    parallelism=st.dictionaries(names, counts, max_size=2),
    stateful=st.dictionaries(names, descriptions, max_size=2),
    sources=few(names),
)
common = {
    "place": counts.map(Place),
    "attempt": counts.map(Attempt),
    "nonce": texts,
    "incarnation": texts.map(Incarnation),
}
sinks = st.builds(
    SinkRecord, sink=names, parallelism=counts, cluster=texts, marker_store=texts, targets=descriptions
)
seals = st.builds(Seal, **common, job=texts.map(JobName), sinks=few(sinks))
rewinds = st.builds(Rewind, **common, token=texts, origin=texts, parent=counts.map(CheckpointId))
checkpoints = st.builds(
    CheckpointEntry,
    **common,
    job=texts.map(JobName),
    checkpoint=counts.map(CheckpointId),
    parent=counts.map(CheckpointId),
    taken_ms=whole,
    shape=shapes,
    subtasks=few(subtasks),
    expected=few(st.tuples(publishers, markers)),
    condemned=few(texts),
    savepoint=texts,
    stop=st.booleans(),
)
entries = st.one_of(seals, rewinds, checkpoints)
notes = st.builds(
    Published,
    incarnation=texts.map(Incarnation),
    attempt=counts.map(Attempt),
    checkpoint=counts.map(CheckpointId),
)
