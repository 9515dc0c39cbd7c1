"""Topics of a simulated cluster: made, deleted and made again, with partitions added and rights taken away."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from connectors.kafka.cluster import Partition
from connectors.kafka.settings import LEGAL_TOPIC
from connectors.kafka.simulated_log import PartitionLog
from connectors.kafka.simulated_records import Rows
from connectors.kafka.simulated_refusal import BrokerRefusal
from connectors.kafka.topic_limits import BATCH_OVERHEAD_BYTES, TopicLimits

TOPIC_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "delete",
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.type": "CreateTime",
        "min.insync.replicas": "1",
        "retention.ms": "604800000",
    }
)

INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state")
INTERNAL_PARTITIONS: Final = 4

OPERATIONS: Final = (
    "ALTER",
    "ALTER_CONFIGS",
    "CREATE",
    "DELETE",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "READ",
    "WRITE",
)

RECORD_BYTES: Final = 8
"""What a small record takes beside key, value and headers, about: lengths and deltas as varints."""


class Topic:
    """One topic from its making to its deletion; made again it is another one."""

    def __init__(self, name: str, topic_id: str, partitions: int, config: Mapping[str, str]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.config: Mapping[str, str] = {**TOPIC_DEFAULTS, **config}
        self.limits = TopicLimits.of(self.config)
        self.logs: list[PartitionLog] = []
        self.denied: tuple[str, ...] = ()
        self.add_partitions(partitions)

    def add_partitions(self, partitions: int) -> None:
        """Raise the number of partitions to this."""
        append_time = self.config["message.timestamp.type"] == "LogAppendTime"
        for number in range(len(self.logs), partitions):
            self.logs.append(PartitionLog(Partition(self.name, number), log_append_time=append_time))

    def may(self) -> frozenset[str]:
        return frozenset(operation for operation in OPERATIONS if operation not in self.denied)

    def check(self, rows: Rows, now_ms: int) -> None:
        """Raises BrokerRefusal for rows that no try would bring in, and for all of their request (R30)."""
        limits = self.limits
        if batch_bytes(rows) > limits.message_bytes_max:
            raise BrokerRefusal("MSG_SIZE_TOO_LARGE")
        if limits.compacted and (rows.keys is None or None in rows.keys):
            raise BrokerRefusal("INVALID_RECORD")
        if rows.timestamps is not None:
            given = [time_ms for time_ms in rows.timestamps if time_ms >= 0]
            if given and (
                now_ms - min(given) > limits.timestamp_before_max_ms
                or max(given) - now_ms > limits.timestamp_after_max_ms
            ):
                raise BrokerRefusal("INVALID_TIMESTAMP")


def batch_bytes(rows: Rows) -> int:
    """What the rows take as one batch, about."""
    count = len(rows)
    size = BATCH_OVERHEAD_BYTES + RECORD_BYTES * count
    size += sum([len(value) for value in rows.values if value is not None])
    if rows.keys is not None:
        size += sum([len(key) for key in rows.keys if key is not None])
    if rows.headers is not None:
        for headers in rows.headers:
            for name, content in headers:
                size += 2 + len(name.encode()) + len(content or b"")
    return size


class Topics:
    """All topics of a cluster by name."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._made = 0
        self._topics: dict[str, Topic] = {}
        for name in INTERNAL_TOPICS:
            self.make(name, INTERNAL_PARTITIONS, {"cleanup.policy": "compact"})

    def names(self) -> tuple[str, ...]:
        return tuple(self._topics)

    def find(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def get(self, name: str) -> Topic:
        """Raises BrokerRefusal when there is no such topic."""
        topic = self._topics.get(name)
        if topic is None:
            raise BrokerRefusal("UNKNOWN_TOPIC_OR_PART")
        return topic

    def log(self, at: Partition) -> PartitionLog:
        """Raises BrokerRefusal when there is no such partition."""
        topic = self.get(at.topic)
        if not 0 <= at.number < len(topic.logs):
            raise BrokerRefusal("UNKNOWN_TOPIC_OR_PART")
        return topic.logs[at.number]

    def has(self, at: Partition) -> bool:
        topic = self._topics.get(at.topic)
        return topic is not None and 0 <= at.number < len(topic.logs)

    def make(self, name: str, partitions: int, config: Mapping[str, str]) -> Topic:
        """Raises BrokerRefusal when it is there already, or the name is none."""
        if not LEGAL_TOPIC.fullmatch(name) or name in (".", ".."):
            raise BrokerRefusal("TOPIC_EXCEPTION", f"Topic name is invalid: '{name}'")
        if name in self._topics:
            raise BrokerRefusal("TOPIC_ALREADY_EXISTS")
        self._made += 1
        topic_id = f"{self._cluster_id}-topic-{self._made}"
        topic = self._topics[name] = Topic(name, topic_id, partitions, config)
        return topic

    def delete(self, name: str) -> None:
        self.get(name)
        del self._topics[name]
