"""A topic as a sink."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from connectors.kafka.cluster import Cluster, TopicDescription
from connectors.kafka.described import described
from connectors.kafka.known_topics import describe_when_known
from connectors.kafka.marker_store import MARKER_PARTITIONS
from connectors.kafka.publisher import KafkaPublisher
from connectors.kafka.row_encoder import Columns, KafkaRowEncoder
from connectors.kafka.settings import LEGAL_TOPIC, ClusterSettings, kafka_settings
from connectors.kafka.topic_limits import TopicLimits
from processor.contracts.codec import Encoder
from processor.contracts.sink import Guarantee, Publisher, RowEncoder, SinkContext, SinkPlace
from processor.errors import ExternalRefusal, JobError, SettingsError, Unavailable, Where
from processor.ids import PublisherId
from processor.records.batch import Key
from processor.settings.units import duration_text

LOG: Final = logging.getLogger("connectors.kafka.sink")

V_contra = TypeVar("V_contra", contravariant=True)
T = TypeVar("T")

VERIFIES_TRANSACTIONS: Final = "transaction.partition.verification.enable"
"""Broker setting since Kafka 3.6: rows of a transaction that its coordinator does not know are refused."""


class KafkaSink(Generic[V_contra]):
    """Writes one topic, exactly once: rows go out in Kafka transactions, once their checkpoint is decided.

    ``value`` encodes values; None is written as a tombstone, and the encoder does not see it. ``key`` makes
    the key of a value; without it the stream's key is written, and Kafka's own key in a pass-through.
    ``headers`` and ``timestamp`` (milliseconds or datetime) likewise: without them the record's own are kept.
    ``partition`` chooses the partition; without it, or where it returns None, Kafka's own partitioner for
    Java does (murmur2 of the key), so that outputs are co-partitioned with other programs' topics.
    ``cluster`` names a cluster of the settings.

    Kafka keeps no record of the first millisecond of 1970 through this client: it is written one later.
    """

    def __init__(
        self,
        topic: str,
        value: Encoder[V_contra],
        *,
        key: Callable[[V_contra], Key | None] | None = None,
        headers: Callable[[V_contra], Sequence[tuple[str, bytes | None]]] | None = None,
        timestamp: Callable[[V_contra], int | datetime] | None = None,
        partition: Callable[[V_contra], int | None] | None = None,
        cluster: str = "main",
    ) -> None:
        if not LEGAL_TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise JobError(
                f"'{topic}' cannot be the name of a topic.",
                remedy="Use letters, digits, '.', '_' and '-', at most 249.",
            )
        self._topic = topic
        self._encoder = value
        self._columns = Columns(
            value=value.encode, key=key, headers=headers, timestamp=timestamp, partition=partition
        )
        self._cluster = cluster

    @classmethod
    def with_tombstones(
        cls,
        topic: str,
        value: Encoder[T],
        *,
        key: Callable[[T | None], Key | None] | None = None,
        headers: Callable[[T | None], Sequence[tuple[str, bytes | None]]] | None = None,
        timestamp: Callable[[T | None], int | datetime] | None = None,
        partition: Callable[[T | None], int | None] | None = None,
        cluster: str = "main",
    ) -> KafkaSink[T | None]:
        """A sink of ``V | None`` for an encoder of V: None deletes the key's value in a compacted topic."""
        encoder: Any = value  # it is never given None
        return KafkaSink(
            topic,
            encoder,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
            cluster=cluster,
        )

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.EXACTLY_ONCE

    def value_type(self) -> Any:
        """What the format writes, and None, for a tombstone; None alone when the format does not say."""
        ask = getattr(self._encoder, "value_type", None)  # a format of the author's own may lack it
        kind = None if ask is None else ask()
        return None if kind is None else kind | None

    def accepts(self, value: V_contra, /) -> None:
        """Never called: it tells type checkers which values the sink takes."""

    def check(self, context: SinkContext) -> SinkPlace:
        settings = self._settings(context)
        where = Where(step=context.step)
        cluster = self._open(context)
        try:
            topic = settings.real_topic(self._topic)
            found = describe_when_known(cluster, [topic]).get(topic)
            if found is None:
                mapped = "" if topic == self._topic else f" (by topic_map for '{self._topic}')"
                raise ExternalRefusal(
                    f"topic '{topic}'{mapped} does not exist on Kafka cluster '{cluster.name}'.",
                    remedy="Make it, with as many partitions as the output shall have, or correct its name.",
                    where=where,
                )
            _check_right(found, "WRITE", topic, cluster, where)
            if cluster.topic_config(topic) is None:
                LOG.warning(
                    "step '%s' may not see the configuration of topic '%s': rows are checked against Kafka's "
                    "default limits (grant DescribeConfigs)",
                    context.step,
                    topic,
                )
            _check_brokers(cluster, settings, where)
            markers = _marker_topic(cluster, settings, where)
            return SinkPlace(
                cluster=cluster.cluster_id(), marker_store=markers.topic_id, targets={topic: found.topic_id}
            )
        finally:
            cluster.close()

    def encoder(self, context: SinkContext) -> RowEncoder[V_contra]:
        topic = self._settings(context).real_topic(self._topic)
        cluster = self._open(context)
        try:
            found = cluster.describe([topic]).get(topic)
            partitions = 0 if found is None else found.partitions
            limits = TopicLimits.of(cluster.topic_config(topic), partitions)
        finally:
            cluster.close()
        return KafkaRowEncoder(context, self._columns, topic=topic, limits=limits)

    def publisher(self, context: SinkContext, identity: PublisherId) -> Publisher:
        settings = self._settings(context)
        return KafkaPublisher(
            lambda: self._open(context),
            settings,
            context.clock,
            identity,
            topics=[settings.real_topic(self._topic)],
            faults=context.faults,
        )

    def __repr__(self) -> str:
        cluster = None if self._cluster == "main" else self._cluster
        return described("KafkaSink", self._topic, self._encoder, cluster=cluster)

    def _settings(self, context: SinkContext) -> ClusterSettings:
        return kafka_settings(context.settings).cluster(self._cluster)

    def _open(self, context: SinkContext) -> Cluster:
        return kafka_settings(context.settings).open(self._cluster)


def _check_brokers(cluster: Cluster, settings: ClusterSettings, where: Where) -> None:
    """Version and transaction time-out, as far as they can be seen (R31, case 13)."""
    config = cluster.broker_config()
    if config is None:
        LOG.warning(
            "the brokers' configuration may not be seen on Kafka cluster '%s': version and transaction "
            "time-out are not checked (grant DescribeConfigs on the cluster)",
            cluster.name,
        )
        return
    if VERIFIES_TRANSACTIONS not in config:
        raise ExternalRefusal(
            f"the brokers of Kafka cluster '{cluster.name}' are older than Kafka 3.6: they take rows of a "
            "transaction that has ended already.",
            remedy="Use brokers of Kafka 3.6 or newer for exactly-once output.",
            where=where,
        )
    if config[VERIFIES_TRANSACTIONS] != "true":
        raise ExternalRefusal(
            f"the brokers of Kafka cluster '{cluster.name}' have {VERIFIES_TRANSACTIONS}="
            f"{config[VERIFIES_TRANSACTIONS]}: they take rows of a transaction that has ended already.",
            remedy=f"Set {VERIFIES_TRANSACTIONS}=true on the brokers.",
            where=where,
        )
    longest = config.get("transaction.max.timeout.ms")
    if longest is not None and int(longest) < settings.transaction_timeout:
        raise SettingsError(
            f"kafka.{cluster.name}.transaction_timeout is {duration_text(settings.transaction_timeout)}, but "
            f"the brokers' transaction.max.timeout.ms is {longest} ({duration_text(int(longest))}).",
            remedy="Lower the one or raise the other.",
            where=where,
        )


def _marker_topic(cluster: Cluster, settings: ClusterSettings, where: Where) -> TopicDescription:
    """The topic of markers, made if it is missing and we may."""
    topic = settings.marker_topic
    found = cluster.describe([topic]).get(topic)
    if found is None:
        if not settings.marker_topic_create:
            raise ExternalRefusal(
                f"the marker topic '{topic}' does not exist on Kafka cluster '{cluster.name}', and "
                f"kafka.{cluster.name}.marker_topic_create is false.",
                remedy=f"Make it with {MARKER_PARTITIONS} partitions.",
                where=where,
            )
        cluster.create_topic(topic, MARKER_PARTITIONS)
        LOG.info("made the marker topic '%s' on Kafka cluster '%s'", topic, cluster.name)
        found = describe_when_known(cluster, [topic]).get(topic)
        if found is None:
            raise Unavailable(
                f"the marker topic '{topic}' was made on Kafka cluster '{cluster.name}', and brokers still do "
                "not know it.",
                remedy="It is tried again; look at the brokers if it stays so.",
                where=where,
            )
    if found.partitions < MARKER_PARTITIONS:
        raise ExternalRefusal(
            f"the marker topic '{topic}' of Kafka cluster '{cluster.name}' has "
            f"{found.partitions} partitions, not {MARKER_PARTITIONS}.",
            remedy=f"Raise them to {MARKER_PARTITIONS}, or name another topic in marker_topic.",
            where=where,
        )
    _check_right(found, "READ", topic, cluster, where)
    return found


def _check_right(found: TopicDescription, operation: str, topic: str, cluster: Cluster, where: Where) -> None:
    if found.may is not None and operation not in found.may:
        word = operation.capitalize()
        raise ExternalRefusal(
            f"there is no right to {word.lower()} topic '{topic}' of Kafka cluster '{cluster.name}'.",
            remedy=f"Grant the principal {word} and Describe on it.",
            where=where,
        )
