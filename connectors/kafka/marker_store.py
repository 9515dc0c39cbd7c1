"""Markers of one identity, kept as the offset of its consumer group against the marker topic (R15).

Fencing happens at the transaction coordinator, the marker is read at the group coordinator, and one that
slept through its succession answers from memory. So a fresh read first stores a random nonce beside the
marker and reads both in one request: an answer without the nonce is no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from connectors.kafka.cluster import Cluster, GroupOffset, OffsetsOfGroup, Partition
from processor.contracts.clock import Clock
from processor.errors import LogConflict, Retriable
from processor.ids import Attempt, CheckpointId, Incarnation, Marker

MARKER_PARTITION: Final = 0
NONCE_PARTITION: Final = 1
MARKER_PARTITIONS: Final = 2

SEPARATOR: Final = "|"
METADATA_CHARS_MAX: Final = 1_000
"""Of a marker as text; brokers take 4,096 bytes."""

FRESH_READ_PAUSE_MS: Final = 10
FRESH_READS_MAX: Final = 1_000
"""How often the offsets are read for one nonce. Commit and read travel one behind the other, so the first
read nearly always shows it; a commit that the client had to send again takes a little longer."""


def marker_offset(marker: Marker) -> GroupOffset:
    """A marker as it is stored: the offset is the checkpoint, for people who look with Kafka's own tools."""
    metadata = f"{marker.incarnation}{SEPARATOR}{marker.attempt}{SEPARATOR}{marker.rows}"
    if SEPARATOR in marker.incarnation or len(metadata) > METADATA_CHARS_MAX:
        raise ValueError(f"incarnation {marker.incarnation!r} cannot be part of a marker")
    return GroupOffset(offset=marker.checkpoint, metadata=metadata)


def stored_marker(stored: GroupOffset | None, group: str) -> Marker | None:
    """Inverse of ``marker_offset``. Raises LogConflict for what no publisher of ours wrote."""
    if stored is None:
        return None
    parts = stored.metadata.split(SEPARATOR)
    if len(parts) != 3 or not parts[0] or not parts[1].isdecimal() or not parts[2].isdecimal():
        raise LogConflict(
            f"group '{group}' holds offset {stored.offset} with {stored.metadata[:200]!r} where a marker "
            "should be: somebody else writes to this group.",
            remedy="Find out who commits offsets under this group's name, and stop it.",
        )
    return Marker(
        incarnation=Incarnation(parts[0]),
        attempt=Attempt(int(parts[1])),
        checkpoint=CheckpointId(stored.offset),
        rows=int(parts[2]),
    )


def read_proved_fresh(
    cluster: Cluster,
    offsets: OffsetsOfGroup,
    *,
    marker_topic: str,
    group: str,
    left_ms: Callable[[], int],
) -> Marker | None:
    """The marker as it is now, by a nonce stored first and read together with it.

    Raises Retriable when no answer was proved fresh, Unavailable when there was none in time.
    """
    marker_at, nonce_at = Partition(marker_topic, MARKER_PARTITION), Partition(marker_topic, NONCE_PARTITION)
    nonce = cluster.nonce()
    offsets.begin_commit({nonce_at: GroupOffset(offset=0, metadata=nonce)})
    for _ in range(FRESH_READS_MAX):
        time_left_ms = left_ms()
        if time_left_ms <= 0:
            break
        stored = offsets.read([marker_at, nonce_at], time_left_ms)
        proof = stored[nonce_at]
        if proof is not None and proof.metadata == nonce:
            return stored_marker(stored[marker_at], group)
        cluster.pause(FRESH_READ_PAUSE_MS)
    raise Retriable(
        f"no answer about the marker of group '{group}' on Kafka cluster '{cluster.name}' was proved fresh "
        "in time.",
        remedy="It is tried again; look at the brokers if it stays so.",
    )


class MarkerStore:
    """Reads the marker of one identity. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, clock: Clock, *, topic: str, group: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._clock = clock
        self._topic = topic
        self._group = group
        self._timeout_ms = timeout_ms
        self._offsets = cluster.group(group)
        self.marker_at = Partition(topic, MARKER_PARTITION)

    def group(self) -> object:
        """The group as a transaction that stores a marker must name it."""
        return self._offsets.identity()

    def look(self) -> Marker | None:
        """The marker as it was committed last, perhaps an old one. A dead process may have left a transaction
        open, which only taking over ends: looking does not wait for it. Raises Unavailable."""
        offsets = self._cluster.group(self._group, waits=False)
        try:
            stored = offsets.read([self.marker_at], self._timeout_ms)
        finally:
            offsets.close()
        return stored_marker(stored[self.marker_at], self._group)

    def read_fresh(self) -> Marker | None:
        """The marker as it is now. Only after taking over, or a zombie's may still come.

        Raises Retriable when no answer was proved fresh in time; Unavailable when there was none: then a
        zombie's marker is pending, and taking over again ends it.
        """
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        return read_proved_fresh(
            self._cluster,
            self._offsets,
            marker_topic=self._topic,
            group=self._group,
            left_ms=lambda: deadline_ms - self._clock.monotonic_ms(),
        )

    def close(self) -> None:
        self._offsets.close()
