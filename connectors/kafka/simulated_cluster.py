"""The second implementation of the seam ``cluster.py``: a client of a Kafka that is simulated in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from connectors.kafka.cluster import (
    LogEnd,
    OffsetAt,
    OffsetsOfGroup,
    Partition,
    RecordConsumer,
    TopicDescription,
)
from connectors.kafka.cluster import TransactionalProducer as Producer
from connectors.kafka.settings import ClusterSettings
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_client import SimulatedClient
from connectors.kafka.simulated_group import SimulatedGroup
from connectors.kafka.simulated_log import PartitionLog
from connectors.kafka.simulated_producer import SimulatedProducer
from connectors.kafka.simulated_reader import SimulatedReader
from connectors.kafka.simulated_refusal import BrokerRefusal
from connectors.kafka.simulated_world import BrokerWorld

T = TypeVar("T")

LEADERLESS_RETRY: Final[Mapping[str, int]] = MappingProxyType({"LEADER_NOT_AVAILABLE": 100})


class SimulatedCluster:
    """See ``cluster.Cluster``. ``client`` is the number by which the world knows who asks."""

    def __init__(
        self,
        broker: SimulatedBroker,
        world: BrokerWorld,
        settings: ClusterSettings,
        client: int,
        *,
        name: str = "main",
    ) -> None:
        self._broker = broker
        self._world = world
        self._settings = settings
        self._name = name
        self._client = SimulatedClient(world, client, name)

    @property
    def name(self) -> str:
        return self._name

    def cluster_id(self) -> str:
        return self._ask("Metadata", lambda: self._broker.cluster_id, "asking for the cluster's id")

    def topic_names(self) -> frozenset[str]:
        return self._ask("Metadata", lambda: frozenset(self._broker.topics.names()), "listing topics")

    def describe(self, topics: Sequence[str]) -> Mapping[str, TopicDescription]:
        def described() -> Mapping[str, TopicDescription]:
            found = [topic for name in topics if (topic := self._broker.topics.find(name)) is not None]
            return {
                topic.name: TopicDescription(
                    topic_id=topic.topic_id, partitions=len(topic.logs), may=topic.may()
                )
                for topic in found
            }

        if not topics:
            return {}
        return self._ask(
            f"DescribeTopicPartitions {' '.join(topics)}", described, f"describing topic '{topics[0]}'"
        )

    def topic_config(self, topic: str) -> Mapping[str, str] | None:
        return self._ask(
            f"DescribeConfigs {topic}",
            lambda: dict(self._broker.topics.get(topic).config),
            f"asking for the configuration of topic '{topic}'",
        )

    def broker_config(self) -> Mapping[str, str] | None:
        return self._ask(
            "DescribeConfigs broker",
            lambda: dict(self._broker.config),
            "asking for the configuration of broker '1'",
        )

    def create_topic(self, topic: str, partitions: int) -> None:
        def made() -> None:
            try:
                self._broker.create_topic(topic, partitions)
            except BrokerRefusal as refused:
                if refused.name != "TOPIC_ALREADY_EXISTS":
                    raise

        self._ask(f"CreateTopics {topic}", made, f"making topic '{topic}'", changes=True)

    def offsets(self, partitions: Sequence[Partition], at: OffsetAt) -> Mapping[Partition, int]:
        def offset(log: PartitionLog) -> int:
            match at:
                case OffsetAt.EARLIEST:
                    return log.low
                case OffsetAt.COMMITTED_END:
                    return log.stable_end
                case OffsetAt.END:
                    return log.end

        return self._listed(partitions, offset)

    def ends(self, partitions: Sequence[Partition], *, committed: bool) -> Mapping[Partition, LogEnd]:
        return self._listed(
            partitions, lambda log: LogEnd(log.stable_end if committed else log.end, log.leader_epoch)
        )

    def offsets_from(self, partitions: Sequence[Partition], time_ms: int) -> Mapping[Partition, int | None]:
        return self._listed(partitions, lambda log: log.first_from(time_ms))

    def consumer(self, group: str) -> RecordConsumer:
        return SimulatedReader(self._broker, self._client)

    def group(self, group: str, *, waits: bool = True) -> OffsetsOfGroup:
        return SimulatedGroup(self._broker, self._client, group, waits=waits)

    def producer(
        self, transactional_id: str, *, transaction_timeout_ms: int, batch_bytes_max: int
    ) -> Producer:
        return SimulatedProducer(
            self._broker,
            self._client,
            transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            batch_bytes_max=min(self._settings.producer.batch_size, batch_bytes_max),
        )

    def forget_group(self, group: str) -> None:
        self._ask(
            f"DeleteGroups {group}",
            lambda: self._broker.groups.delete(group),
            f"deleting group '{group}'",
            changes=True,
        )

    def pause(self, wait_ms: int) -> None:
        self._world.wait(wait_ms)

    def nonce(self) -> str:
        return self._world.nonce()

    def close(self) -> None:
        """Nothing is held."""

    def _listed(
        self, partitions: Sequence[Partition], offset: Callable[[PartitionLog], T]
    ) -> Mapping[Partition, T]:
        def listed() -> Mapping[Partition, T]:
            found: dict[Partition, T] = {}
            for at in partitions:
                if not self._broker.topics.has(at):
                    raise BrokerRefusal("_NOENT", f"nobody leads {at}")
                log = self._broker.log(at)
                log.check_leader()
                found[at] = offset(log)
            return found

        if not partitions:
            return {}
        asked = " ".join(map(str, partitions))
        return self._ask(f"ListOffsets {asked}", listed, f"asking for offsets of {partitions[0]}")

    def _ask(self, request: str, act: Callable[[], T], doing: str, *, changes: bool = False) -> T:
        try:
            return self._client.ask(
                request,
                act,
                self._settings.request_timeout,
                doing=doing,
                changes=changes,
                retry=LEADERLESS_RETRY,
            )
        except BrokerRefusal as refused:
            raise self._client.error(refused.name, refused.text, doing) from refused
