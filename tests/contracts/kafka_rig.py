"""What the contract tests of the Kafka connector are made with: contexts, codecs, readers of their own."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from connectors.kafka.bounds import Start, Until
from connectors.kafka.cluster import Partition
from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from processor.contracts.policy import Fail, Policy
from processor.contracts.sink import Publisher, SinkContext
from processor.contracts.source import Reader, SourceContext
from processor.errors import Retriable
from processor.fault_points import FaultHook, no_faults
from processor.ids import (
    Attempt,
    CheckpointId,
    Incarnation,
    JobName,
    Marker,
    Position,
    PublisherId,
    SplitId,
    StepName,
)
from processor.records.batch import Batch
from processor.records.rows import RowBlock
from tests.contracts.cluster_rigs import SimulatedPlace, place_of

INCARNATION = Incarnation("4f1c")
DEADLINE_S = 60.0
TAKE_OVERS_MAX = 30


class Bytes:
    """Values as they are."""

    def decode(self, data: bytes, /) -> bytes:
        return data

    def encode(self, value: bytes, /) -> bytes:
        return value


class Number:
    """Decimal numbers; everything else cannot be decoded."""

    def value_type(self) -> type[int]:
        return int

    def decode(self, data: bytes, /) -> int:
        return int(data)

    def encode(self, value: int, /) -> bytes:
        return b"%d" % value


class Rig:
    """A job named by chance on one Kafka: its settings, contexts, publishers and readers."""

    def __init__(self, bootstrap: str, *, job: str | None = None, **cluster: Any) -> None:
        self.bootstrap = bootstrap
        self.job = JobName(job or f"job-{uuid.uuid4().hex[:10]}")
        self.place = place_of(bootstrap)
        self.settings = self.place.settings(**cluster)
        self.counted: Counter[str] = Counter()

    def count(self, name: str, by: int) -> None:
        self.counted[name] += by

    def sink_context(self, *, policy: Policy | None = None, faults: FaultHook = no_faults) -> SinkContext:
        return SinkContext(
            job=self.job,
            step=StepName("out"),
            settings={"kafka": self.settings},
            policy=policy or Fail(),
            clock=self.place.clock,
            count=self.count,
            faults=faults,
        )

    def source_context(self, *, policy: Policy | None = None) -> SourceContext:
        return SourceContext(
            job=self.job,
            step=StepName("in"),
            settings={"kafka": self.settings},
            policy=policy or Fail(),
            clock=self.place.clock,
            count=self.count,
        )

    def identity(self, subtask: int = 0) -> PublisherId:
        return PublisherId(self.job, StepName("out"), subtask)

    def publisher(self, topic: str, *, faults: FaultHook = no_faults, subtask: int = 0) -> Publisher:
        sink: KafkaSink[bytes] = KafkaSink(topic, Bytes())
        sink.check(self.sink_context())
        return sink.publisher(self.sink_context(faults=faults), self.identity(subtask))

    def producer(self, **properties: Any) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, **properties})

    def write(self, topic: str, rows: Iterable[tuple[int, bytes | None]]) -> None:
        """(partition, value) written without a transaction."""
        if isinstance(self.place, SimulatedPlace):
            for partition, value in rows:
                self.place.write(Partition(topic, partition), [value])
            return
        producer = self.producer()
        for partition, value in rows:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(DEADLINE_S) == 0


def taken_over(publisher: Publisher) -> Marker | None:
    """Takes over as the engine does it: again while a broker that has just started still loads what its coordinators
    know, or nobody leads a partition."""
    for _ in range(TAKE_OVERS_MAX):
        try:
            return publisher.take_over()
        except Retriable:
            continue
    raise AssertionError(f"not taken over in {TAKE_OVERS_MAX} tries")


def marker(checkpoint: int, rows: int, attempt: int = 1) -> Marker:
    return Marker(
        incarnation=INCARNATION,
        attempt=Attempt(attempt),
        checkpoint=CheckpointId(checkpoint),
        rows=rows,
    )


def block(topic: str, values: Sequence[bytes | None], **columns: Any) -> RowBlock:
    return RowBlock(topic=topic, values=values, **columns)


def read_committed(bootstrap: str, topic: str, partitions: int = 1) -> list[Any]:
    """All committed records of a topic, partition after partition: a plain client, nothing of ours."""
    place = place_of(bootstrap)
    if isinstance(place, SimulatedPlace):
        return [record for log in place.broker.committed(topic) for record in log]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    records: list[Any] = []
    ended: set[int] = set()
    deadline = time.monotonic() + DEADLINE_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"{topic} was not read to its end"
        for message in consumer.consume(1_000, 0.05):
            error = message.error()
            if error is None:
                records.append(message)
            else:
                assert error.name() == "_PARTITION_EOF", error
                ended.add(message.partition() or 0)
    consumer.close()
    records.sort(key=lambda record: (record.partition(), record.offset()))
    return records


def values(records: Iterable[Any]) -> list[Any]:
    return [record.value() for record in records]


class Reading:
    """A source opened as the engine opens it: start positions from the enumerator, then polled."""

    def __init__(
        self,
        rig: Rig,
        source: KafkaSource[Any],
        *,
        policy: Policy | None = None,
        positions: dict[SplitId, Position] | None = None,
    ) -> None:
        self.context = rig.source_context(policy=policy)
        self.enumerator = source.enumerator(self.context)
        self.reader: Reader[Any] = source.reader(self.context)
        self.batches: list[tuple[SplitId, Batch[Any]]] = []
        self.reader.assign(self.enumerator.start() if positions is None else positions)

    def poll_until(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not done():
            assert time.monotonic() < deadline, f"waited in vain until {what}; have {self.values()!r:.500}"
            self.batches.extend(self.reader.poll(1_000, 50))

    def to_end(self) -> Reading:
        """Until every split of a bounded source has ended."""
        self.poll_until(
            lambda: all(position.at_end for position in self.reader.positions().values()), "all splits ended"
        )
        return self

    def until_records(self, count: int) -> Reading:
        self.poll_until(lambda: len(self.values()) >= count, f"{count} records are read")
        return self

    def values(self) -> list[Any]:
        return [value for _, batch in self.batches for value in batch.values]

    def close(self) -> None:
        self.reader.close()
        self.enumerator.close()


def numbers(
    topics: Any, *, start: Start | None = None, until: Until | None = None, **more: Any
) -> KafkaSource[int]:
    return KafkaSource(topics, Number(), start=start, until=until, **more)
