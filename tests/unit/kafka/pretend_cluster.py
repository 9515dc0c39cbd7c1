"""A cluster in memory for tests of what stands above the seam: scripted messages, groups that may be stale.

Not the simulated broker: it holds no transactions and no time. Each test sets it up for one situation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectors.kafka.cluster import (
    DeliveryFailure,
    GroupOffset,
    LogEnd,
    OffsetAt,
    Partition,
    TopicDescription,
)
from processor.errors import Retriable, Unavailable
from processor.records.rows import RowBlock
from tests.unit.operators.kit import SetClock


@dataclass(frozen=True)
class Error:
    called: str

    def name(self) -> str:
        return self.called

    def str(self) -> str:
        return f"pretended {self.called}"


@dataclass(frozen=True)
class Record:
    """A message as the client gives it."""

    at: Partition
    number: int
    data: bytes | None = b""
    named: bytes | None = None
    marks: tuple[tuple[str, bytes | None], ...] | None = None
    time: tuple[int, int] = (1, 1_000)
    epoch: int | None = 3
    failed: Error | None = None

    def error(self) -> Error | None:
        return self.failed

    def topic(self) -> str:
        return self.at.topic

    def partition(self) -> int:
        return self.at.number

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes | None:
        return self.named

    def value(self) -> bytes | None:
        return self.data

    def headers(self) -> Any:
        return None if self.marks is None else list(self.marks)

    def timestamp(self) -> tuple[int, int]:
        return self.time

    def leader_epoch(self) -> int | None:
        return self.epoch


class PretendConsumer:
    def __init__(self) -> None:
        self.coming: list[list[Record]] = []
        self.calls: list[tuple[str, Any]] = []

    def assign(self, starts: Mapping[Partition, tuple[int, int]]) -> None:
        self.calls.append(("assign", dict(starts)))

    def unassign(self, partitions: Sequence[Partition]) -> None:
        self.calls.append(("unassign", list(partitions)))

    def pause(self, partitions: Sequence[Partition]) -> None:
        self.calls.append(("pause", list(partitions)))

    def resume(self, partitions: Sequence[Partition]) -> None:
        self.calls.append(("resume", list(partitions)))

    def consume(self, records_max: int, wait_ms: int) -> Sequence[Any]:
        return self.coming.pop(0) if self.coming else []

    def close(self) -> None:
        self.calls.append(("close", None))


class PretendGroup:
    """``stale_reads`` answers come from before the last commits, as of a coordinator that slept."""

    def __init__(self) -> None:
        self.stored: dict[Partition, GroupOffset] = {}
        self.remembered: dict[Partition, GroupOffset] = {}
        self.stale_reads = 0
        self.silent_reads = 0
        self.requests: list[Sequence[Partition]] = []

    def identity(self) -> object:
        return "group"

    def begin_commit(self, offsets: Mapping[Partition, GroupOffset]) -> None:
        self.stored.update(offsets)

    def read(
        self, partitions: Sequence[Partition], timeout_ms: int
    ) -> Mapping[Partition, GroupOffset | None]:
        self.requests.append(partitions)
        if self.silent_reads:
            self.silent_reads -= 1
            raise Unavailable("a marker is pending")
        source = self.stored
        if self.stale_reads:
            self.stale_reads -= 1
            source = self.remembered
        return {at: source.get(at) for at in partitions}

    def close(self) -> None: ...


@dataclass
class PretendProducer:
    """Fails as it is told; what it committed is kept in order."""

    cluster: PretendCluster
    fail_initialise: BaseException | None = None
    failed: list[DeliveryFailure] = field(default_factory=list)
    left_after_flush: int = 0
    fail_produce_at: int | None = None
    fail_offsets: BaseException | None = None
    fail_commit: BaseException | None = None
    flushed: bool = False
    blocks: list[RowBlock] = field(default_factory=list)
    offsets: dict[Partition, GroupOffset] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def initialise(self, timeout_ms: int) -> None:
        self.calls.append(f"initialise {timeout_ms}")
        if self.fail_initialise is not None:
            raise self.fail_initialise

    def begin(self) -> None:
        self.calls.append("begin")

    def produce(self, block: RowBlock, timeout_ms: int) -> None:
        if self.fail_produce_at == len(self.blocks):
            raise Retriable("the transaction is in error")
        self.blocks.append(block)

    def send_offsets(self, offsets: Mapping[Partition, GroupOffset], group: object, timeout_ms: int) -> None:
        if self.fail_offsets is not None:
            raise self.fail_offsets
        self.offsets.update(offsets)

    def flush(self, timeout_ms: int) -> int:
        self.flushed = True
        self.cluster.clock.now_ms += timeout_ms if self.left_after_flush else 0
        return self.left_after_flush

    def failures(self) -> Sequence[DeliveryFailure]:
        return self.failed if self.flushed else []

    def commit(self, timeout_ms: int) -> None:
        self.calls.append("commit")
        if self.fail_commit is not None:
            raise self.fail_commit
        self.cluster.offsets_of_group.stored.update(self.offsets)
        self.cluster.committed.extend(self.blocks)

    def abandon(self) -> None:
        self.calls.append("abandon")


class PretendCluster:
    def __init__(self) -> None:
        self.clock = SetClock(1_000_000)
        self.reading = PretendConsumer()
        self.offsets_of_group = PretendGroup()
        self.producers: list[PretendProducer] = []
        self.next_producers: list[PretendProducer] = []
        self.committed: list[RowBlock] = []
        self.topics: dict[str, TopicDescription] = {}
        self.configs: dict[str, Mapping[str, str] | None] = {}
        self.ranges: dict[Partition, tuple[int, int]] = {}
        self.epochs: dict[Partition, int] = {}
        self.nonces = 0

    @property
    def name(self) -> str:
        return "main"

    def cluster_id(self) -> str:
        return "cluster-1"

    def topic_names(self) -> frozenset[str]:
        return frozenset(self.topics)

    def describe(self, topics: Sequence[str]) -> Mapping[str, TopicDescription]:
        return {topic: self.topics[topic] for topic in topics if topic in self.topics}

    def topic_config(self, topic: str) -> Mapping[str, str] | None:
        return self.configs.get(topic)

    def broker_config(self) -> Mapping[str, str] | None:
        return None

    def create_topic(self, topic: str, partitions: int) -> None:
        self.topics[topic] = TopicDescription(topic_id=f"id of {topic}", partitions=partitions, may=None)

    def offsets(self, partitions: Sequence[Partition], at: OffsetAt) -> Mapping[Partition, int]:
        return {each: self.ranges[each][0 if at is OffsetAt.EARLIEST else 1] for each in partitions}

    def ends(self, partitions: Sequence[Partition], *, committed: bool) -> Mapping[Partition, LogEnd]:
        return {
            each: LogEnd(self.ranges.get(each, (0, 0))[1], self.epochs.get(each, 0)) for each in partitions
        }

    def offsets_from(self, partitions: Sequence[Partition], time_ms: int) -> Mapping[Partition, int | None]:
        return dict.fromkeys(partitions)

    def consumer(self, group: str) -> PretendConsumer:
        return self.reading

    def group(self, group: str, *, waits: bool = True) -> PretendGroup:
        return self.offsets_of_group

    def producer(
        self, transactional_id: str, *, transaction_timeout_ms: int, batch_bytes_max: int
    ) -> PretendProducer:
        producer = self.next_producers.pop(0) if self.next_producers else PretendProducer(self)
        self.producers.append(producer)
        return producer

    def forget_group(self, group: str) -> None: ...

    def pause(self, wait_ms: int) -> None:
        self.clock.now_ms += wait_ms

    def nonce(self) -> str:
        self.nonces += 1
        return f"nonce-{self.nonces}"

    def close(self) -> None: ...


def records(at: Partition, first: int, datas: Iterable[bytes | None]) -> list[Record]:
    """Consecutive records of one partition."""
    return [Record(at, first + n, data) for n, data in enumerate(datas)]


def end_of(at: Partition, offset: int) -> Record:
    return Record(at, offset, failed=Error("_PARTITION_EOF"))
