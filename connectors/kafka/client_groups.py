"""Offsets of a group in which nobody subscribes, through a consumer that is kept."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connectors.kafka.client_failures import ClientFailures
from connectors.kafka.cluster import GroupOffset, Partition
from connectors.kafka.settings import ClusterSettings
from processor.invariant import invariant

CLOSE_TIMEOUT_S: Final = 2.0
"""How long closing may hold up the caller; it takes milliseconds when brokers answer."""


class ConfluentGroup:
    """See ``cluster.OffsetsOfGroup``.

    ``AdminClient.list_consumer_group_offsets`` would do the same, but ends the process with SIGSEGV after the
    group's coordinator has moved (librdkafka issue 5040).
    """

    def __init__(
        self,
        errors: ClientFailures,
        properties: Mapping[str, Any],
        settings: ClusterSettings,
        group: str,
        *,
        waits: bool,
    ) -> None:
        self._errors = errors
        self._group = group
        self._failures: list[KafkaError] = []
        with self._errors.within(f"opening group '{group}'"):
            self._consumer = Consumer(
                {
                    **properties,
                    "group.id": group,
                    # read_committed: a read waits for open transactions that would change what is read.
                    "isolation.level": "read_committed" if waits else "read_uncommitted",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "enable.sparse.connections": False,
                    "socket.timeout.ms": max(settings.marker_timeout, 1_000),
                    "on_commit": self._committed,
                }
            )

    def identity(self) -> object:
        return self._consumer.consumer_group_metadata()

    def begin_commit(self, offsets: Mapping[Partition, GroupOffset]) -> None:
        with self._errors.within(f"storing offsets of group '{self._group}'"):
            self._consumer.commit(
                offsets=[
                    TopicPartition(at.topic, at.number, stored.offset, metadata=stored.metadata)
                    for at, stored in offsets.items()
                ],
                asynchronous=True,
            )

    def read(
        self, partitions: Sequence[Partition], timeout_ms: int
    ) -> Mapping[Partition, GroupOffset | None]:
        doing = f"reading offsets of group '{self._group}'"
        with self._errors.within(doing):
            answers = self._consumer.committed(
                [TopicPartition(at.topic, at.number) for at in partitions], timeout=timeout_ms / 1_000
            )
            event = self._consumer.poll(0)  # runs the callback of commits that are done
        invariant(event is None or event.error() is not None, "a consumer without partitions reads nothing")
        if self._failures:
            raise self._errors.error(self._failures.pop(0), f"storing offsets of group '{self._group}'")
        stored: dict[Partition, GroupOffset | None] = {}
        for answer in answers:
            if answer.error is not None:
                raise self._errors.error(answer.error, doing)
            found = GroupOffset(offset=answer.offset, metadata=answer.metadata or "")
            stored[Partition(answer.topic, answer.partition)] = found if answer.offset >= 0 else None
        return stored

    def close(self) -> None:
        # The client waits in it for commits under way, and for ever when nobody answers: then it waits alone.
        closing = threading.Thread(target=self._close, name=f"closing group {self._group}", daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT_S)

    def _close(self) -> None:
        with suppress(KafkaException, RuntimeError):
            self._consumer.close()

    def _committed(self, failure: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        if failure is not None:
            self._failures.append(failure)
        self._failures.extend(offset.error for offset in offsets if offset.error is not None)
