"""Tries on a real cluster what exactly-once relies on (R31). An unknown broker must pass all of it.

Everything happens under an identity made for the trial and in transactions that hold nothing but a marker, so
that no topic of anybody receives a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from connectors.kafka.cluster import Cluster, Partition, TransactionalProducer
from connectors.kafka.marker_store import (
    MARKER_PARTITION,
    MARKER_PARTITIONS,
    marker_offset,
    read_proved_fresh,
    stored_marker,
)
from connectors.kafka.settings import ClusterSettings, KafkaSettings
from connectors.kafka.sink import VERIFIES_TRANSACTIONS
from processor.errors import ProcessorError, Retriable, Unavailable
from processor.ids import Attempt, CheckpointId, Incarnation, Marker
from processor.settings.units import duration_text

PENDING_READ_MS: Final = 1_500
"""How long a read must stay without an answer while a marker is pending."""

OFFSETS_RETENTION_MIN_MS: Final = 86_400_000
"""Markers are rewritten at a quarter of it; below a day a job that stands still over night loses them."""

INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: what was tried, whether it holds, what was seen or what to do."""

    what: str
    passed: bool
    detail: str


def examine(settings: KafkaSettings) -> Iterator[Finding]:
    """Findings for every cluster that has an address."""
    for name, cluster_settings in settings.clusters().items():
        if cluster_settings.bootstrap_servers is None:
            continue
        cluster = settings.open(name)
        try:
            yield from examine_cluster(cluster, cluster_settings)
        finally:
            cluster.close()


def examine_cluster(cluster: Cluster, settings: ClusterSettings) -> Iterator[Finding]:
    """Findings for one cluster; a check that another one needs ends the examination when it fails."""

    def named(what: str) -> str:
        return f"kafka.{cluster.name}: {what}"

    def tried(what: str, trial: Callable[[], str]) -> Finding:
        try:
            return Finding(what=named(what), passed=True, detail=trial())
        except ProcessorError as failed:
            return Finding(what=named(what), passed=False, detail=str(failed))

    answer = tried("the cluster answers", lambda: f"cluster id {cluster.cluster_id()}")
    yield answer
    if not answer.passed:
        return
    try:
        config = cluster.broker_config()
    except ProcessorError as failed:
        yield Finding(what=named("broker configuration"), passed=False, detail=str(failed))
        config = None
    for what, passed, detail in _configured(config, settings):
        yield Finding(what=named(what), passed=passed, detail=detail)
    for topic in INTERNAL_TOPICS:
        passed, detail = _in_sync(cluster, topic, config)
        yield Finding(what=named(f"replicas of {topic}"), passed=passed, detail=detail)
    markers = tried(
        f"marker topic '{settings.marker_topic}' has {MARKER_PARTITIONS} partitions",
        lambda: _marker_topic(cluster, settings),
    )
    yield markers
    if not markers.passed:
        return
    trial = _Trial(cluster, settings)
    try:
        for what, step in trial.steps():
            finding = tried(what, step)
            yield finding
            if not finding.passed:
                return  # the later steps stand on it
    finally:
        trial.close()


def _configured(
    config: Mapping[str, str] | None, settings: ClusterSettings
) -> Iterator[tuple[str, bool, str]]:
    if config is None:
        yield (
            "broker configuration can be seen",
            False,
            "grant DescribeConfigs on the cluster; version, time-outs and retention are not checked without",
        )
        return
    verifies = config.get(VERIFIES_TRANSACTIONS)
    yield (
        "brokers are of Kafka 3.6 or newer and verify transactions",
        verifies == "true",
        f"{VERIFIES_TRANSACTIONS} is {verifies}"
        if verifies is not None
        else f"{VERIFIES_TRANSACTIONS} is not known to them: use newer brokers",
    )
    longest = int(config.get("transaction.max.timeout.ms", "900000"))
    yield (
        "transaction_timeout is allowed",
        settings.transaction_timeout <= longest,
        f"it is {duration_text(settings.transaction_timeout)}; the brokers allow {duration_text(longest)}",
    )
    retention_ms = int(config.get("offsets.retention.minutes", "10080")) * 60_000
    yield (
        "markers are kept long enough",
        retention_ms >= OFFSETS_RETENTION_MIN_MS,
        f"offsets.retention.minutes is {duration_text(retention_ms)}; a job down longer loses its markers",
    )


def _in_sync(cluster: Cluster, topic: str, config: Mapping[str, str] | None) -> tuple[bool, str]:
    """Whether an acknowledged marker survives the loss of a broker."""
    try:
        own = cluster.topic_config(topic)
    except ProcessorError as failed:
        return False, str(failed)
    if own is None:
        return False, "its configuration may not be seen: grant DescribeConfigs on it"
    in_sync = int(own.get("min.insync.replicas", "1"))
    factor = "offsets.topic.replication.factor"
    if topic == "__transaction_state":
        factor = "transaction.state.log.replication.factor"
        in_sync = max(in_sync, int((config or {}).get("transaction.state.log.min.isr", "1")))
    replicas = int((config or {}).get(factor, "3"))
    detail = f"min.insync.replicas {in_sync} of {replicas}"
    if replicas == 1:
        return True, f"{detail}: for development; with one replica a lost disk loses markers"
    return in_sync >= 2, detail if in_sync >= 2 else f"{detail}: set it to 2, or a lost broker loses markers"


def _marker_topic(cluster: Cluster, settings: ClusterSettings) -> str:
    topic = settings.marker_topic
    found = cluster.describe([topic]).get(topic)
    if found is None and settings.marker_topic_create:
        cluster.create_topic(topic, MARKER_PARTITIONS)
        found = cluster.describe([topic]).get(topic)
    if found is None or found.partitions < MARKER_PARTITIONS:
        raise Unavailable(
            f"topic '{topic}' is missing or has fewer than {MARKER_PARTITIONS} partitions.",
            remedy=f"Make it with {MARKER_PARTITIONS} partitions.",
        )
    return f"topic id {found.topic_id}"


class _Trial:
    """Two producers of one transactional id, and the marker both want to write."""

    def __init__(self, cluster: Cluster, settings: ClusterSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._name = f"processor-doctor.{cluster.nonce()}"
        self._group = cluster.group(self._name)
        self._marker_at = Partition(settings.marker_topic, MARKER_PARTITION)
        self._producers: list[TransactionalProducer] = []

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "a first publisher takes over", self._take_over
        yield "a pending marker keeps readers waiting", self._pending_marker
        yield "a second publisher takes over and ends what the first left open", self._second
        yield "the first publisher is fenced", self._first_is_fenced
        yield "a nonce is read together with the marker", self._nonce_is_read
        yield "a committed marker is read", self._marker_is_read

    def close(self) -> None:
        for producer in self._producers:
            producer.abandon()
        self._group.close()
        with suppress(ProcessorError):  # it expires by itself; there may be no right to delete groups
            self._cluster.forget_group(self._name)

    def _take_over(self) -> str:
        producer = self._cluster.producer(
            self._name,
            transaction_timeout_ms=self._settings.transaction_timeout,
            batch_bytes_max=self._settings.producer.batch_size,
        )
        self._producers.append(producer)
        producer.initialise(self._settings.take_over_timeout)
        return f"transactional id {self._name}"

    def _pending_marker(self) -> str:
        self._write_marker(self._producers[0], 1)
        try:
            self._group.read([self._marker_at], PENDING_READ_MS)
        except Unavailable:
            return f"no answer within {PENDING_READ_MS} ms, as it must be"
        raise Retriable(
            "the marker's group answered while a transaction that changes it was open.",
            remedy="This broker cannot be used for exactly-once output.",
        )

    def _second(self) -> str:
        self._take_over()
        return "initialised"

    def _first_is_fenced(self) -> str:
        try:
            self._producers[0].commit(self._settings.publish_timeout)
        except Unavailable:
            raise
        except ProcessorError as refused:
            return refused.message
        raise Retriable(
            "the commit of a publisher that was shut out succeeded.",
            remedy="This broker cannot be used for exactly-once output.",
        )

    def _nonce_is_read(self) -> str:
        marker = self._read_with_nonce()
        if marker is not None:
            raise Retriable(
                f"the marker of the transaction that was ended is there: {marker}.",
                remedy="This broker cannot be used for exactly-once output.",
            )
        return "and nothing of the ended transaction"

    def _marker_is_read(self) -> str:
        self._write_marker(self._producers[1], 2)
        self._producers[1].commit(self._settings.publish_timeout)
        marker = self._read_with_nonce()
        if marker != _marker(2):
            raise Retriable(
                f"marker {_marker(2)} was committed, and {marker} is read.",
                remedy="This broker cannot be used for exactly-once output.",
            )
        return str(marker)

    def _write_marker(self, producer: TransactionalProducer, checkpoint: int) -> None:
        producer.begin()
        producer.send_offsets(
            {self._marker_at: marker_offset(_marker(checkpoint))},
            self._group.identity(),
            self._settings.publish_timeout,
        )

    def _read_with_nonce(self) -> Marker | None:
        stored = read_proved_fresh(
            self._cluster,
            self._group,
            marker_topic=self._settings.marker_topic,
            group=self._name,
            left_ms=lambda: self._settings.marker_timeout,
        )
        return stored_marker(stored.marker, self._name)


def _marker(checkpoint: int) -> Marker:
    return Marker(
        incarnation=Incarnation("doctor"),
        attempt=Attempt(1),
        checkpoint=CheckpointId(checkpoint),
        rows=0,
    )
