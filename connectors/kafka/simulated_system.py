"""All Kafka clusters of a simulation: what the simulation of the engine asks a plugin for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from re import Pattern
from typing import Final

from connectors.kafka.cluster import Cluster, Partition, partition_of, split_of
from connectors.kafka.settings import ClusterSettings, KafkaSettings
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_cluster import SimulatedCluster
from connectors.kafka.simulated_settings import SimulatedKafkaSettings
from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from processor.contracts.simulated import OutsideWorld
from processor.contracts.topic_reader import RawHeaders, TopicChunk
from processor.errors import ExternalRefusal, Unavailable
from processor.ids import SplitId

CHUNK_RECORDS_MAX: Final = 10_000


class SimulatedKafka:
    """See ``processor.contracts.simulated.SimulatedSystem``. Every cluster of the settings is a broker."""

    def __init__(self, world: OutsideWorld, section: object) -> None:
        given = section if isinstance(section, KafkaSettings) else KafkaSettings.model_validate(section or {})
        self._world = world
        self._clients = 0
        self.settings = SimulatedKafkaSettings.opening(self._open, given)
        self._brokers = {
            name: SimulatedBroker(world, cluster_id=f"simulated-{name}") for name in given.clusters()
        }

    def broker(self, cluster: str = "main") -> SimulatedBroker:
        """To do there what operators do."""
        return self._brokers[cluster]

    def serves(self, endpoint: object) -> bool:
        return isinstance(endpoint, KafkaSource | KafkaSink)

    def prepare(self, endpoint: object, parts: int) -> None:
        broker = self._broker_of(endpoint)
        for topic in self._topics(endpoint):
            if broker.topics.find(topic) is None:
                broker.create_topic(topic, parts)

    def append(
        self,
        source: object,
        part: int,
        *,
        key: bytes | None,
        value: bytes | None,
        time_ms: int | None = None,
        headers: RawHeaders = (),
    ) -> None:
        broker, partitions = self._broker_of(source), self._partitions(source)
        if part >= len(partitions):
            broker.add_partitions(partitions[-1].topic, partitions[-1].number + 2 + part - len(partitions))
            partitions = self._partitions(source)
        broker.append(
            partitions[part],
            [value],
            keys=None if key is None else [key],
            timestamps=None if time_ms is None else [time_ms],
            headers=[tuple(headers)] if headers else None,
        )

    def ends(self, source: object) -> Mapping[SplitId, int]:
        broker = self._broker_of(source)
        return {split_of(at): broker.log(at).end for at in self._partitions(source)}

    def reader(self, endpoint: object) -> SimulatedTopicReader:
        return SimulatedTopicReader(self._broker_of(endpoint))

    def _open(self, name: str, settings: ClusterSettings) -> Cluster:
        self._clients += 1
        return SimulatedCluster(self._brokers[name], self._world, settings, self._clients, name=name)

    def _broker_of(self, endpoint: object) -> SimulatedBroker:
        return self._brokers[_of_kafka(endpoint)._cluster]

    def _partitions(self, endpoint: object) -> list[Partition]:
        topics = self._broker_of(endpoint).topics
        return [
            Partition(name, number)
            for name in self._topics(endpoint)
            for number in range(len(topics.get(name).logs))
        ]

    def _topics(self, endpoint: object) -> list[str]:
        """Names as the cluster has them, in the order of the job."""
        found = _of_kafka(endpoint)
        settings = self.settings.cluster(found._cluster)
        if isinstance(found, KafkaSink):
            return [settings.real_topic(found._topic)]
        topics = found._topics
        if isinstance(topics, Pattern):
            return [name for name in self._brokers[found._cluster].topics.names() if topics.fullmatch(name)]
        return [settings.real_topic(name) for name in ([topics] if isinstance(topics, str) else topics)]


class SimulatedTopicReader:
    """See ``processor.contracts.topic_reader.TopicReader``. It looks into the logs: no request, no fault."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self._broker = broker

    def splits(self, target: str) -> tuple[SplitId, ...]:
        topic = self._broker.topics.find(target)
        if topic is None:
            raise ExternalRefusal(f"topic '{target}' is not there.", remedy="Make it before it is read.")
        return tuple(sorted(split_of(log.at) for log in topic.logs))

    def starts(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {split: self._broker.log(partition_of(split)).low for split in splits}

    def committed_ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {split: self._broker.log(partition_of(split)).stable_end for split in splits}

    def ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {split: self._broker.log(partition_of(split)).end for split in splits}

    def read(
        self, ends: Mapping[SplitId, int], starts: Mapping[SplitId, int] | None = None
    ) -> Iterator[TopicChunk]:
        for split, end in ends.items():
            log = self._broker.log(partition_of(split))
            if end > log.stable_end:
                raise Unavailable(
                    f"partition {split} can be read to offset {log.stable_end}, not to {end}.",
                    remedy="A transaction is open there.",
                )
            position = max(log.low, (starts or {}).get(split, 0))
            while position < end:
                records, position = log.read(position, min(CHUNK_RECORDS_MAX, end - position))
                records = [record for record in records if record.offset() < end]
                if records:
                    yield TopicChunk(
                        split=split,
                        offsets=[record.offset() for record in records],
                        keys=[record.key() for record in records],
                        values=[record.value() for record in records],
                        headers=[record.headers() for record in records],
                        timestamps=[record.timestamp()[1] for record in records],
                    )

    def close(self) -> None:
        """Nothing is held."""


def _of_kafka(endpoint: object) -> KafkaSource[object] | KafkaSink[object]:
    if isinstance(endpoint, KafkaSource | KafkaSink):
        return endpoint
    raise TypeError(f"{endpoint!r:.100} is neither a KafkaSource nor a KafkaSink")
