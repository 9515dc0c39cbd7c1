"""The entries of the decision log, and what a checkpoint consists of.

An entry is the decision (R5): once its place is taken, the checkpoint is decided. Three kinds: a seal (R1), a
rewind (R3), a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFile:
    """A sorted file of a store on disk as it lies there. Checkpoints of the same store share those that did not
    change (A17)."""

    local_name: str
    """What the store calls it. It means something only beside the other files of the same ``StateFile``: another
    copy of the store may give the name to something else (R22)."""
    file: FileRef


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """Keyed state of one step of one subtask, timers included.

    A subtask lists several files of a step in order: the first holds everything, each later one what changed
    after the one before it. Or it lists one with ``database``: a store on disk, in its own files.
    """

    step: StepName
    file: FileRef
    key_groups: KeyGroupRange
    """Every key in the file belongs to this range."""
    states: Mapping[str, str]
    """Declared states by name with the schema of their values as they are in the file (``state.schema_text``)."""
    kept_as: Mapping[str, str] = field(default_factory=dict)
    """What states are called in the file that were renamed since."""
    database: tuple[DatabaseFile, ...] | None = None
    """The store's own files; then ``file`` says what they are, and which belong together. None: ``file`` has the
    entries."""
    table: str = ""
    """Of a canonical savepoint: the only table of the step that is in the file, in Avro. "": all are, in blocks."""

    def files(self) -> tuple[FileRef, ...]:
        """All that a restore reads."""
        return (self.file, *(each.file for each in self.database or ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxFile:
    """Output of one sink subtask from one cut to the next. ``rows`` is never 0: empty outboxes have no file."""

    publisher: PublisherId
    cut: CheckpointId
    """The checkpoint at whose cut it was closed; it is decided by this or a later one (R9)."""
    file: FileRef
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFile:
    """What was on its way to one subtask over one edge when the barriers of the checkpoint overtook it (A10)."""

    edge: EdgeName
    file: FileRef
    key_groups: KeyGroupRange
    """Of the subtask: every key in the file belongs to this range."""
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """Where the source step of one subtask stands."""

    step: StepName
    positions: Mapping[SplitId, Position]
    watermarks: Mapping[SplitId, int] = field(default_factory=dict)
    """Largest event time seen per split: the state of the watermark generators (R27)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedEventTime:
    """Event time that keys of a step had reached; after a restore it goes on from there for them (R27)."""

    step: StepName
    key_groups: KeyGroupRange
    watermark_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskSnapshot:
    """What one subtask contributes to one checkpoint."""

    subtask: SubtaskId
    keyed: tuple[StateFile, ...] = ()
    operators: tuple[StateFile, ...] = ()
    """State of steps that belongs to the subtask and to no key, one file a step; its key groups are all there are."""
    sources: tuple[SourceState, ...] = ()
    outboxes: tuple[OutboxFile, ...] = ()
    """All undecided outboxes of the subtask, oldest first (R9)."""
    channels: tuple[ChannelFile, ...] = ()
    """Records in flight, to be processed before anything new; empty when the subtask was aligned."""
    event_times: tuple[ReachedEventTime, ...] = ()
    """Of keyed steps. Where ranges of a step overlap the latest counts: a subtask that was restored has what its key
    groups brought along beside what it has reached itself."""
    processing_time_ms: int = 0
    """Processing time reached; it never goes back (R28)."""
    finished: bool = False
    """All inputs have ended; nothing follows but what the outboxes hold."""

    def without_decided(self, decided: CheckpointId) -> SubtaskSnapshot:
        """A subtask that missed the news lists outboxes that are decided: they must not be decided twice."""
        if all(outbox.cut > decided for outbox in self.outboxes):
            return self
        return replace(self, outboxes=tuple(o for o in self.outboxes if o.cut > decided))

    def state_files(self) -> tuple[FileRef, ...]:
        """What a restore reads, and nobody else has a use for."""
        held = tuple(file for state in (*self.keyed, *self.operators) for file in state.files())
        return held + tuple(c.file for c in self.channels)

    def files(self) -> tuple[FileRef, ...]:
        return self.state_files() + tuple(o.file for o in self.outboxes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantState:
    """What somebody on the coordinator's side contributes to a checkpoint (A7)."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord:
    """One sink as the seal lists it (R18): where it publishes, under how many identities."""

    sink: StepName
    parallelism: int
    cluster: str
    marker_store: str
    targets: Mapping[str, str]

    def publishers(self, job: JobName) -> tuple[PublisherId, ...]:
        return tuple(PublisherId(job, self.sink, i) for i in range(self.parallelism))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShape:
    """What of a job must fit for its state to be restored."""

    max_parallelism: int
    parallelism: Mapping[StepName, int]
    """Of every chain, by its first step."""
    stateful: Mapping[StepName, Mapping[str, str]]
    """Steps with state and the schema of each state: it is that of all files of the checkpoint."""
    sources: tuple[StepName, ...] = ()
    """Steps that read, whose positions a checkpoint holds; sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The first act of an attempt (R1). The first seal of a log mints the incarnation (R2)."""

    place: Place
    attempt: Attempt
    nonce: str
    incarnation: Incarnation
    job: JobName
    sinks: tuple[SinkRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """The branch changes: what follows descends from ``origin`` (R3)."""

    place: Place
    attempt: Attempt
    nonce: str
    incarnation: Incarnation
    token: str
    origin: str
    """"fresh", or the path of the savepoint or checkpoint directory."""
    parent: CheckpointId
    """The newest checkpoint of the branch left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEntry:
    """A decided checkpoint: its manifest is its decision."""

    place: Place
    attempt: Attempt
    nonce: str
    incarnation: Incarnation
    job: JobName
    checkpoint: CheckpointId
    parent: CheckpointId
    """NO_CHECKPOINT for the first of a branch."""
    taken_ms: int
    """Wall time of the decision, for people only."""
    shape: JobShape
    subtasks: tuple[SubtaskSnapshot, ...]
    expected: tuple[tuple[PublisherId, Marker], ...]
    """For each identity the marker published before this checkpoint (R11)."""
    condemned: tuple[str, ...] = ()
    """Names of files that no kept checkpoint uses; only these may be deleted (R22)."""
    participants: tuple[ParticipantState, ...] = ()
    """By name, of those on the coordinator's side that have something to keep."""
    savepoint: str = ""
    """Directory of a savepoint asked for with this checkpoint."""
    native: bool = False
    """That savepoint is a copy of the backend's own files, and not in the canonical format."""
    stop: bool = False
    """Last of an attempt that was asked to stop (R24)."""
    drained: bool = False
    """Sources ended before it though there may be more to read, and event time is at its end: nothing goes on from
    here (R24)."""

    def as_savepoint(self, subtasks: tuple[SubtaskSnapshot, ...], nonce: str) -> CheckpointEntry:
        """The manifest of a savepoint with what this checkpoint holds, its state in other files: the only entry of a
        log of its own, with nothing to publish and nothing asked for (R23)."""
        return replace(
            self,
            place=Place(1),
            nonce=nonce,
            subtasks=subtasks,
            expected=(),
            condemned=(),
            savepoint="",
            native=False,
            stop=False,
        )

    def outboxes(self) -> Mapping[PublisherId, tuple[OutboxFile, ...]]:
        """Outboxes by identity, in the order in which their rows are numbered."""
        grouped: dict[PublisherId, list[OutboxFile]] = {}
        for subtask in self.subtasks:
            for outbox in subtask.outboxes:
                grouped.setdefault(outbox.publisher, []).append(outbox)
        return {publisher: tuple(files) for publisher, files in sorted(grouped.items())}

    def files(self) -> tuple[FileRef, ...]:
        return tuple(file for subtask in self.subtasks for file in subtask.files())

    @property
    def canonical(self) -> bool:
        """Whether no keyed state is in a backend's own form, so that it may go to any number of key groups."""
        states = (s for subtask in self.subtasks for s in (*subtask.keyed, *subtask.operators))
        return not self.records_in_flight and all(state.table for state in states)

    @property
    def records_in_flight(self) -> int:
        """Read by the positions of the checkpoint, and not processed yet."""
        return sum(channel.records for subtask in self.subtasks for channel in subtask.channels)


Entry = Seal | Rewind | CheckpointEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The note beside the log: everything up to ``checkpoint`` is out (R17). Losing it costs one look."""

    incarnation: Incarnation
    attempt: Attempt
    checkpoint: CheckpointId
    savepoint_settled: bool = False
    """Of a stop: the copy of its savepoint is whole, or whoever asked was told that it could not be written (R24)."""
