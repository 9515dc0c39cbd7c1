"""A real cluster, through librdkafka.

The only files that import confluent_kafka are this one and its parts ``client_*.py``; the rest of the
connector sees ``cluster.py``. The development broker's helpers stand apart.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, Final, TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
)

from connectors.kafka.client_failures import CLIENT_LOG, ClientFailures
from connectors.kafka.client_groups import ConfluentGroup
from connectors.kafka.client_producer import ConfluentProducer
from connectors.kafka.client_reader import ConfluentReader
from connectors.kafka.cluster import (
    UNKNOWN_EPOCH,
    LogEnd,
    OffsetAt,
    OffsetsOfGroup,
    Partition,
    RecordConsumer,
    TopicDescription,
    TransactionalProducer,
)
from connectors.kafka.settings import ClusterSettings
from processor.errors import Unavailable

T = TypeVar("T")

ANSWER_SLACK_S: Final = 5.0
"""Beyond the request's own time-out: the client library answers by then, or is broken."""

READABLE_TOPIC_TIMEOUT_MS: Final = 10_000
"""How long a topic just made may take to be there for every broker."""

READABLE_TOPIC_POLL_MS: Final = 50

NONCE_BYTES: Final = 16

_DENIED: Final = frozenset({"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"})
_MISSING: Final = frozenset({"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "TOPIC_EXCEPTION"})


class ConfluentCluster:
    """See ``cluster.Cluster``. Connects when first used."""

    def __init__(self, name: str, settings: ClusterSettings) -> None:
        self._name = name
        self._settings = settings
        self._errors = ClientFailures(name)
        self._properties = {
            "logger": CLIENT_LOG,
            "error_cb": self._errors.heard,
            **settings.client_properties(name),
        }
        self._timeout_s = settings.request_timeout / 1_000
        self._lock = threading.Lock()
        self._admin_client: AdminClient | None = None

    @property
    def name(self) -> str:
        return self._name

    def cluster_id(self) -> str:
        return str(self._metadata("asking for the cluster's id").cluster_id)

    def topic_names(self) -> frozenset[str]:
        return frozenset(self._metadata("listing topics").topics)

    def describe(self, topics: Sequence[str]) -> Mapping[str, TopicDescription]:
        if not topics:
            return {}
        asked = self._admin().describe_topics(
            TopicCollection(list(topics)),
            include_authorized_operations=True,
            request_timeout=self._timeout_s,
        )
        described: dict[str, TopicDescription] = {}
        for topic, future in asked.items():
            try:
                found = self._answer(future, f"describing topic '{topic}'")
            except KafkaException as failed:
                if failed.args[0].name() in _MISSING:
                    continue
                raise self._errors.error(failed.args[0], f"describing topic '{topic}'") from failed
            operations = found.authorized_operations
            described[topic] = TopicDescription(
                topic_id=str(found.topic_id),
                partitions=len(found.partitions),
                may=None if operations is None else frozenset(operation.name for operation in operations),
            )
        return described

    def topic_config(self, topic: str) -> Mapping[str, str] | None:
        return self._config(ConfigResource(ConfigResource.Type.TOPIC, topic))

    def broker_config(self) -> Mapping[str, str] | None:
        brokers = self._metadata("asking for the brokers").brokers
        return self._config(ConfigResource(ConfigResource.Type.BROKER, str(min(brokers))))

    def create_topic(self, topic: str, partitions: int) -> None:
        doing = f"making topic '{topic}'"
        new = NewTopic(topic, num_partitions=partitions, replication_factor=-1)
        made = self._admin().create_topics([new], request_timeout=self._timeout_s)[topic]
        try:
            self._answer(made, doing)
        except KafkaException as failed:
            if failed.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise self._errors.error(failed.args[0], doing) from failed
        self._wait_known(topic)

    def offsets(self, partitions: Sequence[Partition], at: OffsetAt) -> Mapping[Partition, int]:
        if at is not OffsetAt.EARLIEST:
            ends = self.ends(partitions, committed=at is OffsetAt.COMMITTED_END)
            return {partition: end.offset for partition, end in ends.items()}
        spec: Any = OffsetSpec
        listed = self._listed(partitions, spec.earliest(), IsolationLevel.READ_UNCOMMITTED)
        return {partition: found.offset for partition, found in listed.items()}

    def ends(self, partitions: Sequence[Partition], *, committed: bool) -> Mapping[Partition, LogEnd]:
        spec: Any = OffsetSpec
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        listed = self._listed(partitions, spec.latest(), isolation)
        return {
            partition: LogEnd(
                found.offset, UNKNOWN_EPOCH if found.leader_epoch is None else found.leader_epoch
            )
            for partition, found in listed.items()
        }

    def offsets_from(self, partitions: Sequence[Partition], time_ms: int) -> Mapping[Partition, int | None]:
        listed = self._listed(partitions, OffsetSpec.for_timestamp(time_ms), IsolationLevel.READ_UNCOMMITTED)
        return {partition: found.offset if found.offset >= 0 else None for partition, found in listed.items()}

    def consumer(self, group: str) -> RecordConsumer:
        return ConfluentReader(self._errors, self._properties, self._settings, group)

    def group(self, group: str, *, waits: bool = True) -> OffsetsOfGroup:
        return ConfluentGroup(self._errors, self._properties, self._settings, group, waits=waits)

    def producer(
        self, transactional_id: str, *, transaction_timeout_ms: int, batch_bytes_max: int
    ) -> TransactionalProducer:
        return ConfluentProducer(
            self._errors,
            self._properties,
            self._settings,
            transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            batch_bytes_max=batch_bytes_max,
        )

    def forget_group(self, group: str) -> None:
        doing = f"deleting group '{group}'"
        asked = self._admin().delete_consumer_groups([group], request_timeout=self._timeout_s)
        with self._errors.within(doing):
            self._answer(asked[group], doing)

    def pause(self, wait_ms: int) -> None:
        threading.Event().wait(wait_ms / 1_000)

    def nonce(self) -> str:
        return secrets.token_hex(NONCE_BYTES)

    def close(self) -> None:
        with self._lock:
            self._admin_client = None

    def _admin(self) -> AdminClient:
        with self._lock:
            if self._admin_client is None:
                self._admin_client = AdminClient(
                    {**self._properties, "socket.timeout.ms": self._settings.request_timeout}
                )
            self._admin_client.poll(0)  # hands on what the client wants to log
            return self._admin_client

    def _metadata(self, doing: str) -> Any:
        with self._errors.within(doing):
            try:
                return self._admin().list_topics(timeout=self._timeout_s)
            except KafkaException:
                self._admin()  # it may have heard why
                raise

    def _answer(self, future: Future[T], doing: str) -> T:
        """Raises KafkaException as it is, for callers that forgive some."""
        try:
            return future.result(self._timeout_s + ANSWER_SLACK_S)
        except KafkaException:
            self._admin()  # it may have heard why
            raise
        except NotInTime as late:
            raise Unavailable(
                f"Kafka cluster '{self._name}' did not answer within {self._timeout_s:.1f} s while {doing}.",
                remedy="Look at the brokers, or raise the cluster's request_timeout.",
            ) from late

    def _config(self, resource: ConfigResource) -> Mapping[str, str] | None:
        doing = f"asking for the configuration of {resource.restype.name.lower()} '{resource.name}'"
        asked = self._admin().describe_configs([resource], request_timeout=self._timeout_s)
        try:
            entries: Mapping[str, Any] = self._answer(asked[resource], doing)
        except KafkaException as failed:
            if failed.args[0].name() in _DENIED:
                return None
            raise self._errors.error(failed.args[0], doing) from failed
        return {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}

    def _listed(
        self, partitions: Sequence[Partition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> Mapping[Partition, Any]:
        if not partitions:
            return {}
        asked = self._admin().list_offsets(
            {TopicPartition(each.topic, each.number): spec for each in partitions},
            isolation_level=isolation,
            request_timeout=self._timeout_s,
        )
        found: dict[Partition, Any] = {}
        for where, future in asked.items():
            doing = f"asking for offsets of {where.topic}/{where.partition}"
            with self._errors.within(doing):
                found[Partition(where.topic, where.partition)] = self._answer(future, doing)
        return found

    def _wait_known(self, topic: str) -> None:
        """A topic is made by the controller; brokers hear of it a moment later."""
        for _ in range(READABLE_TOPIC_TIMEOUT_MS // READABLE_TOPIC_POLL_MS):
            if topic in self.describe([topic]):
                return
            self.pause(READABLE_TOPIC_POLL_MS)
        raise Unavailable(
            f"topic '{topic}' was made on Kafka cluster '{self._name}', but is not there after "
            f"{READABLE_TOPIC_TIMEOUT_MS / 1_000:.0f} s.",
            remedy="Try again; look at the brokers if it stays so.",
        )
