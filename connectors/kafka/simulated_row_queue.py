"""Rows that a simulated producer was handed: cut by partition, in batches, until they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from connectors.kafka.cluster import DeliveryFailure, Partition
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_partitioner import KeyPartitioner
from connectors.kafka.simulated_records import Rows
from connectors.kafka.simulated_topics import batch_bytes
from processor.records.rows import RowBlock

UNKNOWN_PARTITION: Final = "_UNKNOWN_PARTITION"

NOWHERE: Final = -1
"""Partition of rows whose topic is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRows:
    """One batch for one partition."""

    at: Partition
    sequence: int
    """How many rows this producer sent to the partition before: repeated ones are known by it."""
    rows: Rows

    def failures(self, name: str, text: str) -> list[DeliveryFailure]:
        return _failures(self.at.topic, self.rows, name, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomelessRows:
    """A block for a topic that is not there."""

    block: RowBlock
    since_ms: int

    def rows(self) -> QueuedRows:
        rows = Rows(values=self.block.values, keys=self.block.keys)
        return QueuedRows(at=Partition(self.block.topic, NOWHERE), sequence=0, rows=rows)


class RowQueue:
    """In the order in which they are sent: batches of one partition in order, partitions in turn."""

    def __init__(self, broker: SimulatedBroker, batch_bytes_max: int) -> None:
        self._broker = broker
        self._batch_bytes_max = batch_bytes_max
        self._keys = KeyPartitioner()
        self._waiting: list[QueuedRows] = []
        self._homeless: list[HomelessRows] = []
        self._sequences: dict[Partition, int] = {}
        self._unkeyed: dict[str, int] = {}
        self.rows = 0
        """Rows that are neither stored nor refused."""

    def put(self, block: RowBlock, now_ms: int) -> list[DeliveryFailure]:
        """Take a block; returns rows for partitions that do not exist, which never leave the client."""
        if len(block) == 0:
            return []
        topic = self._broker.topics.find(block.topic)
        if topic is None:
            self._homeless.append(HomelessRows(block=block, since_ms=now_ms))
            self.rows += len(block)
            return []
        failed: list[DeliveryFailure] = []
        for number, rows in self._by_partition(block, len(topic.logs)):
            if not 0 <= number < len(topic.logs):
                failed += _failures(block.topic, rows, UNKNOWN_PARTITION, "Local: Unknown partition")
                continue
            at = Partition(block.topic, number)
            for batch in self._batches(rows):
                sequence = self._sequences.get(at, 0)
                self._sequences[at] = sequence + len(batch)
                self._waiting.append(QueuedRows(at=at, sequence=sequence, rows=batch))
                self.rows += len(batch)
        return failed

    def first(self) -> QueuedRows | None:
        """The batch to send next."""
        while self._homeless and self._broker.topics.find(self._homeless[0].block.topic) is not None:
            found = self._homeless.pop(0)  # its topic was made after all
            self.rows -= len(found.block)
            self.put(found.block, found.since_ms)
        return self._waiting[0] if self._waiting else None

    def partitions(self) -> list[Partition]:
        """Of all that waits, in order, each once."""
        return list(dict.fromkeys(waiting.at for waiting in self._waiting))

    def expired(self, before_ms: int) -> QueuedRows | None:
        """Rows that looked for their topic since before this time."""
        for homeless in self._homeless:
            if homeless.since_ms <= before_ms:
                return homeless.rows()
        return None

    def done(self, waiting: QueuedRows) -> None:
        """These rows are stored, or failed."""
        self.rows -= len(waiting.rows)
        if waiting.at.number == NOWHERE:
            self._homeless.pop(0)
        else:
            self._waiting.pop(0)

    def take_all(self) -> list[QueuedRows]:
        """All that is still here; afterwards nothing is."""
        left = self._waiting + [homeless.rows() for homeless in self._homeless]
        self._waiting, self._homeless = [], []
        self.rows = 0
        return left

    def _by_partition(self, block: RowBlock, partitions: int) -> Iterator[tuple[int, Rows]]:
        rows = Rows(values=block.values, keys=block.keys, timestamps=block.timestamps, headers=block.headers)
        if partitions == 1 and block.partitions is None:
            yield 0, rows
            return
        keys: Sequence[bytes | None] = (None,) * len(block) if block.keys is None else block.keys
        given: Sequence[int | None] = (None,) * len(block) if block.partitions is None else block.partitions
        indices: dict[int, list[int]] = {}
        place, stride = self._place_of_unkeyed(block.topic)
        for index, (key, chosen) in enumerate(zip(keys, given, strict=True)):
            if chosen is not None:
                number = chosen
            elif key is not None:
                number = self._keys.partition(key, partitions)
            else:
                number = (place + stride * index) % partitions
            indices.setdefault(number, []).append(index)
        for number, chosen_rows in indices.items():
            yield number, rows.chosen(chosen_rows)

    def _place_of_unkeyed(self, topic: str) -> tuple[int, int]:
        """Where rows without a key go, and how far from one to the next: some clients keep them together, some
        spread them, and none goes where the one before went."""
        place = self._unkeyed.get(topic)
        if place is None:
            place = self._unkeyed[topic] = self._broker.choose_place()
        return place // 2, place % 2

    def _batches(self, rows: Rows) -> Iterator[Rows]:
        """Cut so that no batch is too large, unless a single row is."""
        if batch_bytes(rows) <= self._batch_bytes_max or len(rows) == 1:
            yield rows
            return
        half = len(rows) // 2
        yield from self._batches(rows.slice(0, half))
        yield from self._batches(rows.slice(half, len(rows)))


def _failures(topic: str, rows: Rows, name: str, text: str) -> list[DeliveryFailure]:
    keys: Sequence[bytes | None] = (None,) * len(rows) if rows.keys is None else rows.keys
    return [
        DeliveryFailure(name=name, text=text, topic=topic, key=key, value=value)
        for key, value in zip(keys, rows.values, strict=True)
    ]
