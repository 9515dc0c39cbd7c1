"""What source, sink and publisher need from a Kafka cluster, and nothing more.

This is the seam below the connector. ``client.py`` is the real implementation; a simulated broker is another,
and production code runs on it unchanged. Implementations raise errors of ``processor.errors`` only, by the
table in ``errors.py``; every call that talks to brokers is bounded by a time-out of the cluster's settings or
by the one it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from processor.ids import SplitId
from processor.records.rows import RowBlock

UNKNOWN_EPOCH = -1
"""Leader epoch of a record or position for which none is known."""


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """One partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


def split_of(partition: Partition) -> SplitId:
    """The engine's name of a partition; topic names hold no slash, so it can be taken apart again."""
    return SplitId(f"{partition.topic}/{partition.number}")


def partition_of(split: SplitId) -> Partition:
    """Inverse of ``split_of``."""
    topic, _, number = split.rpartition("/")
    return Partition(topic, int(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic as the brokers describe it."""

    topic_id: str
    """A topic deleted and made again has the same name and another id."""
    partitions: int
    may: frozenset[str] | None
    """What this principal may do with it (``READ``, ``WRITE``, …); None when the brokers do not say."""


class OffsetAt(Enum):
    """Which offset of a partition is asked for."""

    EARLIEST = auto()
    """The first record that is kept: the low watermark."""
    COMMITTED_END = auto()
    """The last stable offset: what a read_committed reader can reach now."""
    END = auto()
    """The high watermark: after everything written, of open transactions too."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """How far a partition goes, and under which leader."""

    offset: int
    leader_epoch: int
    """Grows with every new leader, and when a partition loses its leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """What a consumer group stores for a partition."""

    offset: int
    metadata: str = ""


class MessageError(Protocol):
    """Why a message is no record."""

    def name(self) -> str: ...

    def str(self) -> str: ...


class Message(Protocol):
    """A record, or an event of its partition when ``error()`` is not None (end of partition, trouble)."""

    def error(self) -> MessageError | None: ...

    def topic(self) -> str | None: ...

    def partition(self) -> int | None: ...

    def offset(self) -> int | None: ...

    def key(self) -> bytes | None: ...

    def value(self) -> bytes | None: ...

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None: ...

    def timestamp(self) -> tuple[int, int]:
        """Kind (0: it has none) and milliseconds."""
        ...

    def leader_epoch(self) -> int | None: ...


class RecordConsumer(Protocol):
    """Reads partitions that it is told to read, committed records only. Used by one thread."""

    def assign(self, starts: Mapping[Partition, tuple[int, int]]) -> None:
        """Read these partitions too, each from (offset, leader epoch of the record before)."""
        ...

    def unassign(self, partitions: Sequence[Partition]) -> None: ...

    def pause(self, partitions: Sequence[Partition]) -> None: ...

    def resume(self, partitions: Sequence[Partition]) -> None:
        """Goes on after the last record that ``consume`` returned."""
        ...

    def consume(self, records_max: int, wait_ms: int) -> Sequence[Message]:
        """What is there; with ``wait_ms`` 0 never blocks, else waits so long for a first message.

        Messages of one partition are in order. An offset that is out of range is a message with the error
        ``_AUTO_OFFSET_RESET``, the end of a partition one with ``_PARTITION_EOF``: its offset is the next
        position, which moves past control records and compacted ones too.
        """
        ...

    def close(self) -> None: ...


class OffsetsOfGroup(Protocol):
    """Offsets of one consumer group in which nobody subscribes. Used by one thread."""

    def identity(self) -> object:
        """What ``TransactionalProducer.send_offsets`` wants to know of the group."""
        ...

    def begin_commit(self, offsets: Mapping[Partition, GroupOffset]) -> None:
        """Begin a plain commit; its failure is raised by the next ``read`` or never."""
        ...

    def read(
        self, partitions: Sequence[Partition], timeout_ms: int
    ) -> Mapping[Partition, GroupOffset | None]:
        """What the group stores for all of these, in one request, which is sent after earlier commits.

        While a transaction that would change one of them is open, there is no answer: Unavailable.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFailure:
    """A row that was not stored."""

    name: str
    text: str
    topic: str
    key: bytes | None
    value: bytes | None


class TransactionalProducer(Protocol):
    """One producer for one transaction (R12). Used by one thread."""

    def initialise(self, timeout_ms: int) -> None:
        """Shut out every earlier producer of the transactional id, and end what it left open."""
        ...

    def begin(self) -> None: ...

    def produce(self, block: RowBlock, timeout_ms: int) -> None:
        """Hand all rows over, in order; waits while the client's buffer is full.

        Raises PublishRefused with the index within the block, Retriable when the buffer stayed full.
        """
        ...

    def send_offsets(
        self, offsets: Mapping[Partition, GroupOffset], group: object, timeout_ms: int
    ) -> None: ...

    def flush(self, timeout_ms: int) -> int:
        """Wait until every row is stored or has failed; returns how many are still on the way."""
        ...

    def failures(self) -> Sequence[DeliveryFailure]:
        """All that failed so far (R19: a flush that returns 0 is not success)."""
        ...

    def commit(self, timeout_ms: int) -> None:
        """Retriable and Unavailable leave open whether the transaction is committed."""
        ...

    def abandon(self) -> None:
        """End the transaction if it is open, as far as that is quickly done, and drop the producer."""
        ...


class Cluster(Protocol):
    """One Kafka cluster, as one job sees it. Calls may come from several threads."""

    @property
    def name(self) -> str:
        """Its name in the settings."""
        ...

    def cluster_id(self) -> str: ...

    def topic_names(self) -> frozenset[str]: ...

    def describe(self, topics: Sequence[str]) -> Mapping[str, TopicDescription]:
        """Topics by name; those that do not exist are left out."""
        ...

    def topic_config(self, topic: str) -> Mapping[str, str] | None:
        """The topic's configuration; None when this principal may not see it."""
        ...

    def broker_config(self) -> Mapping[str, str] | None:
        """The configuration of one broker; None when this principal may not see it."""
        ...

    def create_topic(self, topic: str, partitions: int) -> None:
        """Make a topic with the brokers' own replication factor; that it is there already is no error."""
        ...

    def offsets(self, partitions: Sequence[Partition], at: OffsetAt) -> Mapping[Partition, int]: ...

    def ends(self, partitions: Sequence[Partition], *, committed: bool) -> Mapping[Partition, LogEnd]:
        """``OffsetAt.COMMITTED_END`` or ``OffsetAt.END``, and who leads. Unavailable or Retriable while
        nobody leads one."""
        ...

    def offsets_from(self, partitions: Sequence[Partition], time_ms: int) -> Mapping[Partition, int | None]:
        """The first offset whose record is not older than ``time_ms``; None where there is none."""
        ...

    def consumer(self, group: str) -> RecordConsumer:
        """``group`` only names the reader to the brokers: it stores and subscribes to nothing."""
        ...

    def group(self, group: str, *, waits: bool = True) -> OffsetsOfGroup:
        """``waits``: a read waits for open transactions that would change what is read. Without it the
        answer is what was committed last."""
        ...

    def producer(
        self, transactional_id: str, *, transaction_timeout_ms: int, batch_bytes_max: int
    ) -> TransactionalProducer: ...

    def forget_group(self, group: str) -> None:
        """Delete a group that was made for a trial."""
        ...

    def pause(self, wait_ms: int) -> None:
        """Wait between two questions; simulated time passes in a simulated cluster."""
        ...

    def nonce(self) -> str:
        """A text nobody else has; a simulated cluster draws it from its seed."""
        ...

    def close(self) -> None: ...
