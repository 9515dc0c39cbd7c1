"""The names of things: what identifies a job, an attempt, a checkpoint, a subtask, a split, a publisher.

Everything here is a value: hashable, comparable, printable, and the same in every process and version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NewType
from urllib.parse import quote

JobName = NewType("JobName", str)
StepName = NewType("StepName", str)
"""The name an author gave a step. State, outboxes and errors hang on it."""

Attempt = NewType("Attempt", int)
"""One deployment of a job. Numbers only grow; a new attempt fences all older ones (R1)."""

WorkerId = NewType("WorkerId", int)
"""One of the processes that run a job's subtasks, from 0; the same number in every attempt."""

CheckpointId = NewType("CheckpointId", int)
"""Grows over all attempts of a log. One that was never decided may come again: messages and files name
(attempt, checkpoint)."""

NO_CHECKPOINT = CheckpointId(0)
"""The parent of a log's first checkpoint."""

Incarnation = NewType("Incarnation", str)
"""Random id minted by the first entry of a decision log; every marker carries it (R2)."""

Place = NewType("Place", int)
"""The number of an entry in the decision log; places are taken in order, without gaps, from 1."""

SplitId = NewType("SplitId", str)
"""A part of a source, such as a Kafka partition, in the source's own spelling (``topic/3``)."""

MAX_PARALLELISM_DEFAULT = 128
"""Key groups of a job that does not say otherwise. Fixed for the life of a job's state."""

MAX_PARALLELISM_LIMIT = 32_768


def escape_name(name: str) -> str:
    """A name made safe as part of a file name or of an identity, reversibly and without collisions.

    Dots and slashes are escaped too, so that job ``a`` sink ``b.c`` and job ``a.b`` sink ``c`` differ (R2).
    """
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E")


@dataclass(frozen=True, slots=True, order=True)
class SubtaskId:
    """One of the parallel copies of a chain; a chain is named after its first step."""

    chain: StepName
    index: int

    def __str__(self) -> str:
        return f"{self.chain}[{self.index}]"


@dataclass(frozen=True, slots=True, order=True)
class PublisherId:
    """Who publishes: (job, sink, subtask). The same in every attempt and incarnation (R10)."""

    job: JobName
    sink: StepName
    subtask: int

    def __str__(self) -> str:
        """The transactional id and the group of the marker are this one string."""
        return f"{escape_name(self.job)}.{escape_name(self.sink)}.{self.subtask}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What the outside system stores together with the rows of a transaction (R11, R15).

    ``attempt`` is the attempt that *published*, ``rows`` how many rows of the checkpoint's outboxes of this
    identity are out, this transaction's included.
    """

    incarnation: Incarnation
    attempt: Attempt
    checkpoint: CheckpointId
    rows: int

    def __str__(self) -> str:
        return (
            f"checkpoint {self.checkpoint} with {self.rows} rows by attempt {self.attempt} "
            f"of incarnation {self.incarnation}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The place of the next record of a split, with what is needed to recognise the split again."""

    next: int
    """Offset of the next record to read."""
    end: int | None = None
    """A bounded split ends before this offset; None reads for ever."""
    identity: str = ""
    """Identity of the split beyond its name (Kafka's topic id): a topic made anew is another topic."""
    leader_epoch: int = -1
    """Kafka's leader epoch of the last record read; -1 when not known."""

    @property
    def at_end(self) -> bool:
        return self.end is not None and self.next >= self.end


@dataclass(frozen=True, slots=True, order=True)
class KeyGroupRange:
    """Key groups ``start <= group < stop``; the unit in which keyed state moves between subtasks."""

    start: int
    stop: int

    def __contains__(self, group: int) -> bool:
        return self.start <= group < self.stop

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.stop))

    def __len__(self) -> int:
        return self.stop - self.start

    def intersects(self, other: KeyGroupRange) -> bool:
        return self.start < other.stop and other.start < self.stop

    def covers(self, other: KeyGroupRange) -> bool:
        return self.start <= other.start and other.stop <= self.stop


def key_groups_of(subtask: int, parallelism: int, max_parallelism: int) -> KeyGroupRange:
    """The contiguous range that subtask ``subtask`` of ``parallelism`` owns.

    Ranges of all subtasks are disjoint and cover every group; ``owner_of`` is the inverse.
    """
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    stop = ((subtask + 1) * max_parallelism + parallelism - 1) // parallelism
    return KeyGroupRange(start, stop)


def owner_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """The subtask whose range holds ``group``."""
    return group * parallelism // max_parallelism


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class EdgeName:
    """An edge between two steps: from an output of one to an input of the other, by what their author named."""

    origin: StepName
    output: str
    target: StepName
    input: int

    def __str__(self) -> str:
        tag = f"'s output '{self.output}'" if self.output else ""
        return f"from step '{self.origin}'{tag} to input {self.input} of step '{self.target}'"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class ChannelId:
    """A channel of an attempt: from a subtask at the one end of an edge to one at the other."""

    edge: int
    """Index of the edge in the plan, which is the same in every worker."""
    producer: int
    consumer: int

    def __str__(self) -> str:
        return f"channel {self.producer} to {self.consumer} of edge {self.edge}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A finished file of a checkpoint: its name under the store's root, its size and its SHA-256."""

    name: str
    bytes: int
    sha256: str
