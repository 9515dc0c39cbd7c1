"""Where a source begins, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from processor.errors import JobError


@dataclass(frozen=True, slots=True)
class Start:
    """Where a job without a checkpoint begins to read; afterwards its checkpoints say.

    Use one of Earliest, Latest, FromTime, FromGroup, FromOffsets. Partitions found later begin at their
    earliest record whatever the start, so that nothing written to them is missed (case 33).
    """


@dataclass(frozen=True, slots=True)
class Earliest(Start):
    """At the first record that is kept."""


@dataclass(frozen=True, slots=True)
class Latest(Start):
    """At what will be readable next when the job starts for the first time; resolved once (R4).

    Records of transactions that are still open then are read once they are committed.
    """


@dataclass(frozen=True, slots=True)
class FromTime(Start):
    """At the first record that is not older than ``at``, by the timestamps Kafka keeps; else as Latest."""

    at: datetime

    def __post_init__(self) -> None:
        _aware(self.at, "FromTime")

    @property
    def time_ms(self) -> int:
        return _milliseconds(self.at)


@dataclass(frozen=True, slots=True)
class FromGroup(Start):
    """At the offsets that a consumer group has committed, to follow on another program.

    A partition for which it committed none begins as ``otherwise`` says.
    """

    group: str
    otherwise: Earliest | Latest = field(default_factory=Earliest)


@dataclass(frozen=True, slots=True)
class FromOffsets(Start):
    """At offsets given by (topic, partition); partitions that are not named begin as ``otherwise`` says."""

    offsets: Mapping[tuple[str, int], int]
    otherwise: Earliest | Latest = field(default_factory=Earliest)

    def __post_init__(self) -> None:
        _natural(self.offsets, "FromOffsets")


@dataclass(frozen=True, slots=True)
class Until:
    """Where a bounded source ends, resolved once when the job first starts.

    Use one of UntilEnd, UntilOffsets, UntilTime. A bounded source looks for no new partitions.
    """


@dataclass(frozen=True, slots=True)
class UntilEnd(Until):
    """At the end as it is when the job first starts.

    Transactions that are open then belong to it: the source ends when they are committed or aborted.
    """


@dataclass(frozen=True, slots=True)
class UntilOffsets(Until):
    """Before the offsets given by (topic, partition); partitions that are not named end as by UntilEnd."""

    offsets: Mapping[tuple[str, int], int]

    def __post_init__(self) -> None:
        _natural(self.offsets, "UntilOffsets")


@dataclass(frozen=True, slots=True)
class UntilTime(Until):
    """Before the first record that is not older than ``at``; where there is none yet, as by UntilEnd."""

    at: datetime

    def __post_init__(self) -> None:
        _aware(self.at, "UntilTime")

    @property
    def time_ms(self) -> int:
        return _milliseconds(self.at)


def _aware(at: datetime, what: str) -> None:
    if at.tzinfo is None:
        raise JobError(
            f"{what}({at!r}) is a datetime without a time zone.", remedy="Give it one, such as datetime.UTC."
        )


def _natural(offsets: Mapping[tuple[str, int], int], what: str) -> None:
    for (topic, partition), offset in offsets.items():
        if offset < 0 or partition < 0:
            raise JobError(
                f"{what} names partition {partition} of topic '{topic}' at offset {offset}.",
                remedy="Partitions and offsets are counted from 0.",
            )


def _milliseconds(at: datetime) -> int:
    """Exact: a float of seconds would be off by a millisecond now and then."""
    elapsed = at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000 + elapsed.microseconds // 1_000
