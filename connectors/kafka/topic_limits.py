"""What the brokers of a topic refuse for ever, found out before a row enters the outbox (R30)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from processor.records.batch import NO_TIMESTAMP, Headers

MESSAGE_BYTES_MAX_DEFAULT: Final = 1_048_588
"""Of brokers that do not tell: Kafka's own default of ``message.max.bytes``."""

TIMESTAMP_AFTER_MAX_DEFAULT_MS: Final = 3_600_000
"""Of brokers that do not tell: the default since Kafka 4.0."""

UNLIMITED_MS: Final = 2**63 - 1

BATCH_OVERHEAD_BYTES: Final = 61
"""Header of a record batch; a row alone in its batch is the smallest that can be sent."""

RECORD_OVERHEAD_BYTES: Final = 36
"""Most that a record needs beside key, value and headers: lengths, deltas and attributes as varints."""

HEADER_OVERHEAD_BYTES: Final = 10
"""Lengths of a header's name and value."""

CLOCK_MARGIN_MS: Final = 30_000
"""How far the brokers' clock may be from ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLimits:
    """The limits of one topic. ``partitions`` 0 means that they are not known."""

    partitions: int
    message_bytes_max: int
    compacted: bool
    timestamp_before_max_ms: int
    """How much older than the broker's clock a row may be."""
    timestamp_after_max_ms: int

    @classmethod
    def of(cls, config: Mapping[str, str] | None, partitions: int = 0) -> TopicLimits:
        """From the topic's configuration; None, where we may not see it, gives Kafka's defaults."""
        config = config or {}
        before = after = UNLIMITED_MS
        if config.get("message.timestamp.type", "CreateTime") == "CreateTime":
            difference = config.get("message.timestamp.difference.max.ms")  # before Kafka 4.0
            unset = str(UNLIMITED_MS)
            if difference is not None and difference != unset:
                before = after = int(difference)
            else:
                before = int(config.get("message.timestamp.before.max.ms", UNLIMITED_MS))
                after = int(config.get("message.timestamp.after.max.ms", TIMESTAMP_AFTER_MAX_DEFAULT_MS))
        return cls(
            partitions=partitions,
            message_bytes_max=int(config.get("max.message.bytes", MESSAGE_BYTES_MAX_DEFAULT)),
            compacted="compact" in config.get("cleanup.policy", "delete"),
            timestamp_before_max_ms=before,
            timestamp_after_max_ms=after,
        )

    def size_problem(self, row_bytes: int) -> str | None:
        """Why a row of ``row_bytes`` cannot be sent, None when it can."""
        if row_bytes <= self.message_bytes_max:
            return None
        return (
            f"the row takes {row_bytes} bytes, more than the topic's max.message.bytes of "
            f"{self.message_bytes_max}"
        )

    def key_problem(self, key: bytes | None) -> str | None:
        if key is not None or not self.compacted:
            return None
        return "the row has no key, and the topic is compacted"

    def time_problem(self, time_ms: int, now_ms: int) -> str | None:
        if time_ms == NO_TIMESTAMP:
            return None
        if time_ms < 0:
            return f"its timestamp {time_ms} ms lies before 1970"
        if now_ms - time_ms > self.timestamp_before_max_ms - CLOCK_MARGIN_MS:
            return (
                f"its timestamp {time_ms} ms is older than the topic's message.timestamp.before.max.ms of "
                f"{self.timestamp_before_max_ms} ms allows"
            )
        if time_ms - now_ms > max(0, self.timestamp_after_max_ms - CLOCK_MARGIN_MS):
            return (
                f"its timestamp {time_ms} ms is further ahead than the topic's "
                f"message.timestamp.after.max.ms of {self.timestamp_after_max_ms} ms allows"
            )
        return None

    def times_fit(self, oldest_ms: int, newest_ms: int, now_ms: int) -> bool:
        """Whether all timestamps between these two can be sent."""
        return self.time_problem(oldest_ms, now_ms) is None and self.time_problem(newest_ms, now_ms) is None

    def partition_problem(self, partition: int | None) -> str | None:
        if partition is None or self.partitions == 0 or 0 <= partition < self.partitions:
            return None
        return f"partition {partition} does not exist: the topic has {self.partitions}"


def row_bytes(value: bytes | None, key: bytes | None, headers: Headers) -> int:
    """Most bytes that a row takes in a request, alone in its batch and not compressed.

    Compression may make it smaller, but nobody knows by how much before it is tried.
    """
    size = BATCH_OVERHEAD_BYTES + RECORD_OVERHEAD_BYTES + len(value or b"") + len(key or b"")
    for name, content in headers:
        size += HEADER_OVERHEAD_BYTES + len(name.encode()) + len(content or b"")
    return size


def largest_row_bytes(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    headers: Sequence[Headers] | None,
) -> int:
    """An upper bound for every row of a block, at the price of two passes in C when there are no headers."""
    largest = BATCH_OVERHEAD_BYTES + RECORD_OVERHEAD_BYTES
    largest += _largest(values)
    if keys is not None:
        largest += _largest(keys)
    if headers is not None:
        largest += max((row_bytes(None, None, each) for each in headers), default=0)
    return largest


def _largest(column: Sequence[bytes | None]) -> int:
    try:
        return max(map(len, column), default=0)  # type: ignore[arg-type]
    except TypeError:  # some are None
        return max([0 if content is None else len(content) for content in column], default=0)
