"""Where results go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from processor.contracts.clock import Clock
from processor.contracts.policy import Policy
from processor.fault_points import FaultHook, no_faults
from processor.ids import JobName, Marker, PublisherId, StepName
from processor.records.batch import Batch
from processor.records.rows import RowBlock

V_contra = TypeVar("V_contra", contravariant=True)


class Guarantee(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    IDEMPOTENT = "idempotent"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """What the engine tells a sink when it is opened."""

    job: JobName
    step: StepName
    settings: Mapping[str, object]
    policy: Policy
    clock: Clock
    count: Callable[[str, int], None]
    faults: FaultHook = field(default=no_faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPlace:
    """Where a sink's rows and markers are, by identities that a re-made topic or cluster does not share.

    Written into every seal; a difference stops the job loudly (R15, R18).
    """

    cluster: str
    """Identity of the outside system (Kafka's cluster id)."""
    marker_store: str
    """Identity of what keeps the markers (topic id of the marker topic)."""
    targets: Mapping[str, str]
    """Each topic (after mapping) with its topic id."""


class RowEncoder(Protocol[V_contra]):
    """Turns batches into rows. One per sink subtask, used by one thread."""

    def encode(self, batch: Batch[V_contra]) -> Sequence[RowBlock]:
        """Rows of the batch, in order; every row was checked for what the outside system would refuse for
        ever (R30). Rows that fail the check go by the policy: BadRecord with step and place, or counted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """Bounds of one transaction; a larger outbox goes out in several (R16)."""

    rows_max: int
    bytes_max: int


class Publisher(Protocol):
    """Publishes for one identity; usable in any process, after any crash. Used by one thread at a time."""

    @property
    def limits(self) -> TransactionLimits: ...

    def look(self) -> Marker | None:
        """The marker, read without shutting anybody out (R2); may be stale."""
        ...

    def take_over(self) -> Marker | None:
        """Shut out every earlier publisher of this identity, end what they left open, then read the marker,
        proved fresh (R11, R15). Raises Retriable (try again), Unavailable, ExternalRefusal."""
        ...

    def send(self, marker: Marker, rows: Iterable[RowBlock]) -> None:
        """One transaction with the rows and the marker, all or nothing; ``rows`` may be empty (opening).

        ``rows`` can be gone through more than once, and makes its blocks each time: who keeps them needs the
        memory of a whole checkpoint's output.
        Only after ``take_over``, once per ``take_over``. Raises Retriable when the outcome is not known or
        the transaction was refused as a whole; TooLarge when fewer rows should be tried; PublishRefused
        with the number of the row within ``rows`` for one that is refused for good.
        """
        ...

    def wait_visible(self, timeout_ms: int) -> bool:
        """Wait until what was sent can be read (R17). False when it could not be seen in time."""
        ...

    def close(self) -> None: ...


class Sink(Protocol[V_contra]):
    """What an author hands to ``write``; it holds no connection."""

    @property
    def guarantee(self) -> Guarantee: ...

    def accepts(self, value: V_contra, /) -> None:
        """Never called: it tells type checkers which values the sink takes."""
        ...

    def check(self, context: SinkContext) -> SinkPlace:
        """Before anything runs: target there, rights, limits, time-outs (R31). Raises with name and remedy."""
        ...

    def encoder(self, context: SinkContext) -> RowEncoder[V_contra]: ...

    def publisher(self, context: SinkContext, identity: PublisherId) -> Publisher: ...


AnySink = Sink[Any]
