"""Where records come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from processor.contracts.clock import Clock
from processor.contracts.policy import Policy
from processor.fault_points import FaultHook, no_faults
from processor.ids import JobName, Position, SplitId, StepName
from processor.records.batch import Batch

V_co = TypeVar("V_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """What the engine tells a source when it is opened."""

    job: JobName
    step: StepName
    settings: Mapping[str, object]
    """The settings sections of connectors by name (``kafka``), already validated by the plugin's model."""
    policy: Policy
    clock: Clock
    count: Callable[[str, int], None]
    """Adds to a counter of the step: ``count("records_skipped", 3)``."""
    faults: FaultHook = field(default=no_faults)


class Enumerator(Protocol):
    """Runs beside the coordinator: finds splits and resolves where a fresh job starts (A7).

    Calls block and are made from a background thread, one at a time.
    """

    def start(self) -> Mapping[SplitId, Position]:
        """All splits there are, each with its resolved start (and end, if the source is bounded).

        Called once in the life of a job's state, before its first checkpoint (R4): "latest" is resolved
        here and nowhere else.
        """
        ...

    def check(self, known: Mapping[SplitId, Position]) -> None:
        """After a restore: are the splits still the ones of the checkpoint? Raises PositionLost by name."""
        ...

    def discover(self, known: Mapping[SplitId, Position]) -> Mapping[SplitId, Position]:
        """Splits that are new beside ``known``; they start at their earliest record (case 33)."""
        ...

    def published(self, positions: Mapping[SplitId, Position]) -> None:
        """A checkpoint with these positions is out: tell lag tools. Never correctness; may fail quietly."""
        ...

    def close(self) -> None: ...


class Reader(Protocol[V_co]):
    """Reads the splits of one subtask. Used by one thread only."""

    def assign(self, splits: Mapping[SplitId, Position]) -> None:
        """Begin to read these splits, beside the ones assigned before."""
        ...

    def pause(self, splits: frozenset[SplitId]) -> None:
        """Exactly these splits are paused from now on; the others run. (For watermark alignment.)"""
        ...

    def poll(self, records_max: int, wait_ms: int) -> Sequence[tuple[SplitId, Batch[V_co]]]:
        """Records that are there, at most ``records_max``; each batch of one split, in order.

        With ``wait_ms`` 0 it never blocks; otherwise it may wait that long for a first record. A split's
        position moves past records that were skipped by policy, and past the ends of partitions.
        Raises PositionLost, BadRecord, Unavailable, ExternalRefusal.
        """
        ...

    def positions(self) -> Mapping[SplitId, Position]:
        """Of every assigned split: the place after the last record that ``poll`` returned."""
        ...

    def close(self) -> None: ...


class Source(Protocol[V_co]):
    """What an author hands to ``job.read``; it holds no connection."""

    @property
    def bounded(self) -> bool:
        """Whether it has an end, also when it has no splits at all."""
        ...

    def value_type(self) -> type[V_co] | None:
        """The type of the values, None when it is not known at run time."""
        ...

    def check(self, context: SourceContext) -> None:
        """Before anything runs: does what it reads exist, may we read it? Raises with name and remedy."""
        ...

    def enumerator(self, context: SourceContext) -> Enumerator: ...

    def reader(self, context: SourceContext) -> Reader[V_co]: ...
