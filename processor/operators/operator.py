"""THE interface of a step while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from processor.contracts.clock import Clock
from processor.contracts.completion import Completion
from processor.contracts.file_store import FileStore
from processor.contracts.policy import Policy
from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook, no_faults
from processor.ids import CheckpointId, JobName, KeyGroupRange, StepName
from processor.protocol.entries import OutboxFile, ReachedEventTime, StateFile
from processor.records.batch import Batch
from processor.storage.outbox_files import OutboxFiles

In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)
Out_contra = TypeVar("Out_contra", contravariant=True)

MAIN_OUTPUT = ""
"""Tag of a step's main output; side outputs are tagged by their attribute's name."""


class Collector(Protocol[Out_contra]):
    """Takes what an operator emits, batch by batch. Side outputs have collectors of their own."""

    def emit(self, batch: Batch[Out_contra]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSnapshot:
    """What one operator contributes to a checkpoint."""

    keyed: tuple[StateFile, ...] = ()
    operators: tuple[StateFile, ...] = ()
    """State that belongs to the subtask and to no key."""
    outboxes: tuple[OutboxFile, ...] = ()
    """All undecided outboxes, oldest first (R9); only sinks have any."""
    event_times: tuple[ReachedEventTime, ...] = ()
    """Only of keyed steps that are called by event time."""


EMPTY_SNAPSHOT = OperatorSnapshot()


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """State of a step from the checkpoint the attempt starts from, before redistribution.

    ``keyed`` are the files whose key groups meet the subtask's range; records outside the range are left
    out by the reader.
    """

    keyed: tuple[StateFile, ...] = ()
    operators: tuple[StateFile, ...] = ()
    """Of state that belongs to no key the files of every subtask that had the step, in order."""
    watermarks: Mapping[KeyGroupRange, int] = field(default_factory=dict)
    """Event time per range of key groups (R27); lateness uses the larger of current and stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorContext:
    """What a subtask tells its operators when they open."""

    job: JobName
    step: StepName
    subtask_index: int
    parallelism: int
    max_parallelism: int
    key_groups: KeyGroupRange
    backend: StateBackend
    """Makes the keyed state of this step."""
    files: FileStore
    outboxes: OutboxFiles
    file_prefix: str
    """Start of every file name this subtask may create: attempt and subtask; a token is added (R22)."""
    settings: Mapping[str, object]
    """Connectors' settings sections by plugin name."""
    policy: Policy
    clock: Clock
    """Its ``wall_ms`` is the subtask's processing time: at least ``processing_time_ms``, and never going back
    (R28). The subtask keeps the largest value it gave out in its snapshot."""
    token: Callable[[], str]
    """A name nobody else has (contracts/chance)."""
    count: Callable[[str, int], None]
    restored: Restored
    processing_time_ms: int
    """Processing time at the restored cut; never goes back (R28)."""
    outbox_bytes_max: int = 64 * 2**20
    faults: FaultHook = field(default=no_faults)


class Operator(Protocol[In_contra, Out_co]):
    """One step in one subtask; called from one thread only. ``out`` may be used during the call only."""

    def connect(self, sides: Mapping[str, Collector[Any]]) -> None:
        """Collectors of the side outputs that somebody reads, by tag; once, before ``open``."""
        ...

    def open(self, context: OperatorContext) -> None: ...

    def on_batch(self, input: int, batch: Batch[In_contra], out: Collector[Out_co]) -> None: ...

    def on_watermark(self, time_ms: int, out: Collector[Out_co]) -> None:
        """Due timers fire in (time, key) order, before the watermark goes on (case 46)."""
        ...

    def on_processing_time(self, now_ms: int, out: Collector[Out_co]) -> None: ...

    def next_processing_time_ms(self) -> int | None:
        """When ``on_processing_time`` has something to do; None: nothing is waiting for the clock."""
        ...

    def on_end(self, out: Collector[Out_co]) -> None:
        """All inputs have ended; after a last watermark."""
        ...

    def start_anew(self) -> None:
        """The next snapshot lists no file of an earlier one."""
        ...

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        """The synchronous phase: bounded, no I/O."""
        ...

    def decided(self, checkpoint: CheckpointId) -> None:
        """The checkpoint is decided: its outboxes are no longer ours to list."""
        ...

    def completed(self, checkpoint: CheckpointId) -> None:
        """The checkpoint is published everywhere."""
        ...

    def aborted(self, checkpoint: CheckpointId) -> None: ...

    def pressed(self) -> bool:
        """True asks for a checkpoint at once and for the sources to stop until then: an outbox reached its
        bound (R9), or a cache is full of unwritten state."""
        ...

    def close(self) -> None: ...


class BaseOperator(Generic[Out_co]):
    """Defaults of an operator without state, timers or output of its own."""

    def connect(self, sides: Mapping[str, Collector[Any]]) -> None:
        return None

    def open(self, context: OperatorContext) -> None:
        return None

    def on_watermark(self, time_ms: int, out: Collector[Out_co]) -> None:
        return None

    def on_processing_time(self, now_ms: int, out: Collector[Out_co]) -> None:
        return None

    def next_processing_time_ms(self) -> int | None:
        return None

    def on_end(self, out: Collector[Out_co]) -> None:
        return None

    def start_anew(self) -> None:
        return None

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        return NOTHING_TO_WRITE

    def decided(self, checkpoint: CheckpointId) -> None:
        return None

    def completed(self, checkpoint: CheckpointId) -> None:
        return None

    def aborted(self, checkpoint: CheckpointId) -> None:
        return None

    def pressed(self) -> bool:
        return False

    def close(self) -> None:
        return None


class _NothingToWrite:
    def run(self) -> OperatorSnapshot:
        return EMPTY_SNAPSHOT

    def discard(self) -> None:
        return None


NOTHING_TO_WRITE: Completion[OperatorSnapshot] = _NothingToWrite()

AnyOperator = Operator[Any, Any]
