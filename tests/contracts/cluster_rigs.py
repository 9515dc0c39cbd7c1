"""A real Kafka and a simulated one, with the same handles for what clients cannot do themselves."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from connectors.kafka.cluster import (
    Cluster,
    GroupOffset,
    Message,
    Partition,
    RecordConsumer,
    TransactionalProducer,
)
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_cluster import SimulatedCluster
from connectors.kafka.simulated_settings import SimulatedKafkaSettings
from connectors.kafka.simulated_world import CalmWorld
from processor.contracts.clock import Clock
from processor.errors import ProcessorError
from processor.records.rows import RowBlock
from processor.runtime.system import SystemClock
from tests.contracts.kafka_disturbance import outside
from tests.topics import create_topic
from tests.waiting import wait_until

T = TypeVar("T")

TIMEOUT_MS = 20_000
"""Of calls that succeed: long, so that a slow machine fails no test."""

WAIT_S = 60.0

SLOW_MARKER_MS = 40

NAME_OF_ERROR = re.compile(r"\((_?[A-Z]+(?:_[A-Z]+)*)\)\.")


class Place(Protocol):
    """A Kafka, real or simulated."""

    clock: Clock

    def settings(self, **cluster: Any) -> KafkaSettings: ...

    def topic(self, name: str = "t", *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Makes a topic of a new name."""
        ...

    def remake(self, topic: str) -> None:
        """Deletes a topic and makes it again, with one partition."""
        ...

    def add_partitions(self, topic: str, partitions: int) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def delete_records(self, at: Partition, before: int) -> None: ...

    def write(
        self, at: Partition, values: Sequence[bytes | None], timestamps: Sequence[int] | None = None
    ) -> None:
        """Another program writes, without a transaction."""
        ...

    def until(self, predicate: Callable[[], T], what: str) -> T:
        """Time passes until the predicate is true."""
        ...

    def state(self, transactional_id: str) -> tuple[str, int, int]:
        """State, producer id and epoch as the coordinator knows them."""
        ...

    def end_from_outside(self, transactional_id: str, *, commit: bool) -> None:
        """In the name of the present producer; returns when it is ended."""
        ...

    def now_ms(self) -> int: ...


class RealPlace:
    """See ``Place``."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.clock: Clock = SystemClock()

    @property
    def _admin(self) -> AdminClient:
        """Not kept: it would look for its broker after the tests."""
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def settings(self, **cluster: Any) -> KafkaSettings:
        return KafkaSettings.model_validate({"main": {"bootstrap_servers": self.bootstrap, **cluster}})

    def topic(self, name: str = "t", *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        return create_topic(self.bootstrap, name, partitions=partitions, config=config)

    def remake(self, topic: str) -> None:
        self.delete_topic(topic)
        admin = self._admin

        def made() -> bool:
            refused = admin.create_topics([NewTopic(topic, 1, 1)])[topic].exception(30)
            if refused is not None and "TOPIC_ALREADY_EXISTS" not in str(refused):
                raise refused
            return refused is None

        wait_until(made, WAIT_S, f"{topic} is made again")
        wait_until(
            lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 1,
            WAIT_S,
            f"{topic} is there again",
        )

    def add_partitions(self, topic: str, partitions: int) -> None:
        admin = self._admin
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        wait_until(
            lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == partitions,
            WAIT_S,
            "the partitions are there",
        )

    def delete_topic(self, topic: str) -> None:
        admin = self._admin
        admin.delete_topics([topic])[topic].result(30)

    def delete_records(self, at: Partition, before: int) -> None:
        admin = self._admin
        (deleted,) = admin.delete_records([TopicPartition(at.topic, at.number, before)]).values()
        deleted.result(30)

    def write(
        self, at: Partition, values: Sequence[bytes | None], timestamps: Sequence[int] | None = None
    ) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for index, value in enumerate(values):
            time_ms = 0 if timestamps is None else timestamps[index]
            producer.produce(at.topic, value, partition=at.number, timestamp=time_ms)
        assert producer.flush(30) == 0

    def until(self, predicate: Callable[[], T], what: str) -> T:
        return wait_until(predicate, WAIT_S, what)

    def state(self, transactional_id: str) -> tuple[str, int, int]:
        with outside(self.bootstrap) as outsider:
            found = outsider.state(transactional_id)
            return found.state.value, found.producer_id, found.producer_epoch

    def end_from_outside(self, transactional_id: str, *, commit: bool) -> None:
        with outside(self.bootstrap) as outsider:
            assert outsider.end(transactional_id, commit=commit) == 0
            wait_until(
                lambda: str(outsider.state(transactional_id).state.value).startswith("Complete"),
                WAIT_S,
                "all partitions have heard of it",  # until then they still take rows, to abort them
            )

    def now_ms(self) -> int:
        return self.clock.wall_ms()


class SlowMarkers(CalmWorld):
    """Commits reach every other partition late (R17)."""

    def __init__(self, start_ms: int) -> None:
        super().__init__(start_ms)
        self._asked = 0

    def visible_after_ms(self, partition: str) -> int:
        self._asked += 1
        return SLOW_MARKER_MS * (self._asked % 2)


class SimulatedBootstrap(str):
    """Stands for a simulated Kafka where tests name a real one by its address."""

    place: SimulatedPlace


class SimulatedPlace:
    """See ``Place``."""

    def __init__(self, world: CalmWorld) -> None:
        self.world = world
        self.bootstrap = SimulatedBootstrap("simulated:1")
        self.bootstrap.place = self
        self.clock: Clock = world
        self.broker = SimulatedBroker(world)
        self._clients = 0

    def settings(self, **cluster: Any) -> KafkaSettings:
        def opened(name: str, settings: Any) -> Cluster:
            self._clients += 1
            return SimulatedCluster(self.broker, self.world, settings, self._clients, name=name)

        section = {"main": {"bootstrap_servers": "simulated:1", **cluster}}
        return SimulatedKafkaSettings.opening(opened, section)

    def topic(self, name: str = "t", *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        unique = f"{name}-{uuid.uuid4().hex[:12]}"
        self.broker.create_topic(unique, partitions, config)
        return unique

    def remake(self, topic: str) -> None:
        self.broker.delete_topic(topic)
        self.broker.create_topic(topic, 1)

    def add_partitions(self, topic: str, partitions: int) -> None:
        self.broker.add_partitions(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        self.broker.delete_topic(topic)

    def delete_records(self, at: Partition, before: int) -> None:
        self.broker.delete_records(at, before)

    def write(
        self, at: Partition, values: Sequence[bytes | None], timestamps: Sequence[int] | None = None
    ) -> None:
        self.broker.append(at, values, timestamps=timestamps)

    def until(self, predicate: Callable[[], T], what: str) -> T:
        for _ in range(100_000):
            answer = predicate()
            if answer:
                return answer
            self.world.wait(20)
        raise AssertionError(f"simulated time passed in vain until {what}")

    def state(self, transactional_id: str) -> tuple[str, int, int]:
        found = self.broker.transactions.find(transactional_id)
        assert found is not None
        return found.state.name.title().replace("_", ""), found.producer_id, found.epoch

    def end_from_outside(self, transactional_id: str, *, commit: bool) -> None:
        self.broker.transactions.end_from_outside(transactional_id, commit=commit)
        self.until(lambda: self.state(transactional_id)[0].startswith("Complete"), "it is ended")

    def now_ms(self) -> int:
        return self.world.now_ms()


def open_place(kind: str, bootstrap: Callable[[], str]) -> RealPlace | SimulatedPlace:
    """``kind``: kafka, simulated or slow-markers; ``bootstrap`` starts the real one."""
    if kind == "kafka":
        return RealPlace(bootstrap())
    start_ms = SystemClock().wall_ms()
    return SimulatedPlace(SlowMarkers(start_ms) if kind == "slow-markers" else CalmWorld(start_ms))


def place_of(bootstrap: str) -> RealPlace | SimulatedPlace:
    """The Kafka that has this address."""
    return bootstrap.place if isinstance(bootstrap, SimulatedBootstrap) else RealPlace(bootstrap)


class Lab:
    """What a contract test works with: one cluster, and short names for what tests do often."""

    def __init__(self, place: Place, **settings: Any) -> None:
        self.place = place
        self.settings = place.settings(**settings)
        self.cluster = self.settings.open("main")
        self.markers = place.topic("markers", partitions=3)
        self.marker_at = Partition(self.markers, 0)
        self.nonce_at = Partition(self.markers, 1)
        self._opened: list[Any] = []

    def id(self) -> str:
        return f"id-{uuid.uuid4().hex[:12]}"

    def topic(self, **how: Any) -> str:
        return self.place.topic(**how)

    def producer(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        producer = self.cluster.producer(
            transactional_id, transaction_timeout_ms=timeout_ms, batch_bytes_max=1_000_000
        )
        self._opened.append(producer)
        return producer

    def ready(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        producer = self.producer(transactional_id, timeout_ms)
        producer.initialise(TIMEOUT_MS)
        return producer

    def begun(self, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        producer = self.ready(transactional_id, timeout_ms)
        producer.begin()
        return producer

    def sent(
        self, transactional_id: str, topic: str, *values: bytes, timeout_ms: int = 60_000
    ) -> TransactionalProducer:
        """A producer with an open transaction that has stored these values in partition 0."""
        producer = self.begun(transactional_id, timeout_ms)
        producer.produce(rows(topic, *values, partition=0), TIMEOUT_MS)
        assert producer.flush(TIMEOUT_MS) == 0
        assert not producer.failures()
        return producer

    def committed(self, transactional_id: str, topic: str, *values: bytes) -> None:
        producer = self.sent(transactional_id, topic, *values)
        producer.commit(TIMEOUT_MS)

    def group(self, name: str, *, waits: bool = True) -> Any:
        group = self.cluster.group(name, waits=waits)
        self._opened.append(group)
        return group

    def reader(self, topic: str, start: int = 0, *, partition: int = 0, epoch: int = -1) -> RecordConsumer:
        reader = self.cluster.consumer("contract")
        self._opened.append(reader)
        reader.assign({Partition(topic, partition): (start, epoch)})
        return reader

    def read_to_end(self, reader: RecordConsumer, end: int, *, partition: int | None = None) -> list[Message]:
        """Records until the end of the partition (of any, without ``partition``) is told at ``end``."""
        messages: list[Message] = []

        def reached() -> bool:
            for message in reader.consume(1_000, 50):
                error = message.error()
                if error is None:
                    messages.append(message)
                else:
                    assert error.name() == "_PARTITION_EOF", error.str()
                    if message.offset() == end and partition in (None, message.partition()):
                        return True
            return False

        self.place.until(reached, f"the end is told at {end}; read {[m.value() for m in messages]}")
        return messages

    def values(self, topic: str, end: int, partition: int = 0) -> list[bytes | None]:
        reader = self.cluster.consumer("contract")
        reader.assign({Partition(topic, partition): (0, -1)})
        found = [message.value() for message in self.read_to_end(reader, end)]
        reader.close()
        return found

    def next_event(self, reader: RecordConsumer) -> tuple[str, int | None]:
        """Name and offset of the next event that is not a record."""

        def event() -> tuple[str, int | None] | None:
            for message in reader.consume(1_000, 50):
                error = message.error()
                if error is not None:
                    return error.name(), message.offset()
            return None

        found = self.place.until(event, "something is told")
        assert found is not None
        return found

    def nothing_comes(self, reader: RecordConsumer) -> None:
        assert list(reader.consume(1_000, 500)) == []

    def close(self) -> None:
        for each in self._opened:
            (each.abandon if hasattr(each, "abandon") else each.close)()
        self.cluster.close()


def rows(topic: str, *values: bytes | None, partition: int | None = None, **columns: Any) -> RowBlock:
    if partition is not None:
        columns["partitions"] = [partition] * len(values)
    return RowBlock(topic=topic, values=list(values), **columns)


def stored(offset: int, metadata: str = "") -> GroupOffset:
    return GroupOffset(offset=offset, metadata=metadata)


def refusal(call: Callable[[], object]) -> tuple[str, str]:
    """The engine's error that a call raises, and Kafka's name of it as the message says it."""
    try:
        call()
    except ProcessorError as failed:
        found = NAME_OF_ERROR.search(failed.message)
        return type(failed).__name__, found.group(1) if found else failed.message
    raise AssertionError("it was not refused")
