"""The log of one simulated partition: records, control records, and how far readers may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.kafka.cluster import Partition
from connectors.kafka.simulated_records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Rows,
    SimulatedMessage,
    stored_time,
)
from connectors.kafka.simulated_refusal import BrokerRefusal
from processor.invariant import invariant


@dataclass(slots=True, kw_only=True)
class ProducerInLog:
    """What a partition knows of one producer id."""

    epoch: int
    next_sequence: int = 0
    open_ranges: list[tuple[int, int]]
    """Offsets (start, stop) that the open transaction wrote."""


class PartitionLog:
    """See the module. Offsets count control records, as in Kafka."""

    def __init__(self, at: Partition, *, log_append_time: bool = False) -> None:
        self.at = at
        self.low = 0
        """Low watermark: offset of the first record that is kept."""
        self._kind = LOG_APPEND_TIME if log_append_time else CREATE_TIME
        self._readable: list[SimulatedMessage | None] = []
        """By offset. None: a control record, or one that was aborted or compacted away."""
        self._times_ms: list[int] = []
        self._producers: dict[int, ProducerInLog] = {}
        self._open: dict[int, int] = {}
        """First offset of each open transaction by producer id: the oldest stands first."""
        self.has_leader = True
        self.leader_epoch = 0

    def lose_leader(self) -> None:
        """Nobody writes or asks here until it has one again, and ends of transactions pass it over."""
        self.has_leader = False
        self.leader_epoch += 1

    def elect_leader(self) -> None:
        self.has_leader = True
        self.leader_epoch += 1

    def check_leader(self) -> None:
        """Raises BrokerRefusal while nobody leads."""
        if not self.has_leader:
            raise BrokerRefusal("LEADER_NOT_AVAILABLE")

    @property
    def end(self) -> int:
        """High watermark: the offset after everything written."""
        return len(self._readable)

    @property
    def stable_end(self) -> int:
        """Last stable offset: the first of the oldest open transaction, else the high watermark."""
        for first in self._open.values():
            return first
        return len(self._readable)

    def append(self, rows: Rows, now_ms: int) -> None:
        """Write rows outside of any transaction."""
        at, kind, offset, count = self.at, self._kind, len(self._readable), len(rows)
        nothing: Sequence[None] = (None,) * count
        keys: Sequence[bytes | None] = nothing if rows.keys is None else rows.keys
        headers = ((),) * count if rows.headers is None else rows.headers
        if rows.timestamps is None or kind == LOG_APPEND_TIME:
            times_ms = [now_ms] * count
        else:
            times_ms = [stored_time(time_ms, now_ms) for time_ms in rows.timestamps]
        self._readable += [
            SimulatedMessage(at, offset + n, value, key, marks, kind, time_ms)
            for n, (value, key, marks, time_ms) in enumerate(
                zip(rows.values, keys, headers, times_ms, strict=True)
            )
        ]
        self._times_ms += times_ms

    def is_open(self, producer_id: int) -> bool:
        return producer_id in self._open

    def is_left_open(self, producer_id: int, epoch: int) -> bool:
        """Whether rows of this epoch or an earlier one are open, and no later one has taken them in."""
        return producer_id in self._open and self._producers[producer_id].epoch <= epoch

    def append_open(self, rows: Rows, now_ms: int, producer_id: int, epoch: int, sequence: int) -> None:
        """Write rows of an open transaction. ``sequence`` counts the producer's earlier rows here: rows that
        come a second time are known by it, and taken as written. Raises BrokerRefusal."""
        known = self._producers.get(producer_id)
        if known is None or known.epoch < epoch:
            # What an earlier epoch has left open becomes part of this one's transaction (R32).
            ranges = [] if known is None else known.open_ranges
            known = self._producers[producer_id] = ProducerInLog(epoch=epoch, open_ranges=ranges)
        if epoch < known.epoch:
            raise BrokerRefusal("INVALID_PRODUCER_EPOCH")
        if sequence < known.next_sequence:
            return
        if sequence > known.next_sequence:
            raise BrokerRefusal("OUT_OF_ORDER_SEQUENCE_NUMBER")
        start = len(self._readable)
        self._open.setdefault(producer_id, start)
        self.append(rows, now_ms)
        known.open_ranges.append((start, len(self._readable)))
        known.next_sequence += len(rows)

    def mark(self, now_ms: int, producer_id: int, epoch: int, *, commit: bool) -> None:
        """Write the control record that ends a producer's transaction here. Later rows of lower epochs are
        refused from now on."""
        known = self._producers.get(producer_id)
        if known is None or known.epoch < epoch:
            ranges = [] if known is None else known.open_ranges
            known = ProducerInLog(epoch=epoch, open_ranges=ranges)
            self._producers[producer_id] = known
        if not commit:
            for start, stop in known.open_ranges:
                self._readable[start:stop] = [None] * (stop - start)
        known.open_ranges = []
        self._open.pop(producer_id, None)
        self._readable.append(None)
        self._times_ms.append(now_ms)

    def read(self, offset: int, records_max: int) -> tuple[list[SimulatedMessage], int]:
        """Committed records from ``offset`` on, and the position after them: past control records and
        aborted ones too, once nothing readable is left behind."""
        invariant(self.low <= offset, "who reads looks at the low watermark first")
        end = self.stable_end
        found: list[SimulatedMessage] = []
        while offset < end and len(found) < records_max:
            stop = min(end, offset + records_max - len(found))
            found += [record for record in self._readable[offset:stop] if record is not None]
            offset = stop
        return found, offset

    def has_news(self, offset: int) -> bool:
        """Whether a reader at ``offset`` would get something, were it only a new position."""
        return offset < self.stable_end

    def first_from(self, time_ms: int) -> int | None:
        """The first offset that is not older; of control records and aborted ones too, as in Kafka."""
        for offset in range(self.low, len(self._times_ms)):
            if self._times_ms[offset] >= time_ms:
                return offset
        return None

    def delete_before(self, offset: int) -> None:
        """Raise the low watermark; at most to the high watermark."""
        self.low = min(max(self.low, offset), self.end)

    def compact(self) -> None:
        """Drop every stable record with a key for which a later one is there; tombstones go too."""
        seen: set[bytes] = set()
        for offset in range(self.stable_end - 1, self.low - 1, -1):
            record = self._readable[offset]
            if record is None or (key := record.key()) is None:
                continue
            if key in seen or record.value() is None:
                self._readable[offset] = None
            seen.add(key)

    def committed(self) -> list[SimulatedMessage]:
        """All that a read_committed reader can read now."""
        return self.read(self.low, self.end + 1)[0]
