"""Reading partitions: librdkafka fetches ahead in threads of its own, we take what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from confluent_kafka import Consumer, TopicPartition

from connectors.kafka.client_failures import ClientFailures
from connectors.kafka.cluster import Message, Partition
from connectors.kafka.settings import ClusterSettings

CONSUME_RECORDS_MAX: Final = 100_000
"""The client library takes no more at once."""


class ConfluentReader:
    """See ``cluster.RecordConsumer``."""

    def __init__(
        self, errors: ClientFailures, properties: Mapping[str, Any], settings: ClusterSettings, group: str
    ) -> None:
        self._errors = errors
        reading = settings.consumer
        with self._errors.within("opening a consumer"):
            self._consumer = Consumer(
                {
                    # By default it fetches again a second after its read-ahead was full, and starves us.
                    "fetch.queue.backoff.ms": reading.fetch_queue_backoff,
                    "queued.min.messages": reading.queued_records_min,
                    "queued.max.messages.kbytes": reading.queued_size_max // 1_024,
                    "max.partition.fetch.bytes": reading.fetch_size_per_partition_max,
                    "fetch.wait.max.ms": reading.fetch_wait,
                    **properties,
                    "group.id": group,
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    # A position that is not kept any more is an error we decide about (case 20).
                    "auto.offset.reset": "error",
                    # Positions move past what no reader sees: control records, compacted ones (case 17).
                    "enable.partition.eof": True,
                    "socket.timeout.ms": settings.request_timeout,
                    "allow.auto.create.topics": False,
                }
            )

    def assign(self, starts: Mapping[Partition, tuple[int, int]]) -> None:
        # Never `assign`: given anew it forgets the running positions of the others.
        with self._errors.within("beginning to read partitions"):
            self._consumer.incremental_assign(
                [
                    TopicPartition(at.topic, at.number, offset)
                    if epoch < 0
                    else TopicPartition(at.topic, at.number, offset, leader_epoch=epoch)
                    for at, (offset, epoch) in starts.items()
                ]
            )

    def unassign(self, partitions: Sequence[Partition]) -> None:
        with self._errors.within("ending to read partitions"):
            self._consumer.incremental_unassign(_plain(partitions))

    def pause(self, partitions: Sequence[Partition]) -> None:
        with self._errors.within("pausing partitions"):
            self._consumer.pause(_plain(partitions))

    def resume(self, partitions: Sequence[Partition]) -> None:
        with self._errors.within("resuming partitions"):
            self._consumer.resume(_plain(partitions))

    def consume(self, records_max: int, wait_ms: int) -> Sequence[Message]:
        records_max = min(records_max, CONSUME_RECORDS_MAX)
        with self._errors.within("reading"):
            messages = self._consumer.consume(records_max, 0)
            if not messages and wait_ms > 0:
                # Asked for more than one, it would wait the whole time for the last of them.
                messages = self._consumer.consume(1, wait_ms / 1_000)
                if messages and records_max > 1:
                    messages += self._consumer.consume(records_max - 1, 0)
        return cast(Sequence[Message], messages)

    def close(self) -> None:
        self._consumer.close()


def _plain(partitions: Sequence[Partition]) -> list[TopicPartition]:
    return [TopicPartition(at.topic, at.number) for at in partitions]
