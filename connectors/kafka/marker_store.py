"""Markers of one identity, kept as the offset of its consumer group against the marker topic (R15).

Fencing happens at the transaction coordinator, the marker is read at the group coordinator, and one that
slept through its succession answers from memory. So a fresh read first stores a random nonce beside the
marker and reads both in one request: an answer without the nonce is no answer.

A third partition holds the last marker whose transaction is known to have ended in every partition (R32).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from connectors.kafka.cluster import Cluster, GroupOffset, OffsetsOfGroup, Partition
from processor.contracts.clock import Clock
from processor.errors import LogConflict, Retriable
from processor.ids import Attempt, CheckpointId, Incarnation, Marker

MARKER_PARTITION: Final = 0
NONCE_PARTITION: Final = 1
SETTLED_PARTITION: Final = 2
MARKER_PARTITIONS: Final = 3

SEPARATOR: Final = "|"
WRITTEN: Final = re.compile(r"[^|]+\|\d+\|\d+(\|\d+\.\d+)?", re.ASCII)
"""Metadata of a marker: incarnation, attempt, rows; and who led the partitions, where that was known."""

METADATA_CHARS_MAX: Final = 1_000
"""Of a marker as text; brokers take 4,096 bytes."""

FRESH_READ_PAUSE_MS: Final = 10
FRESH_READS_MAX: Final = 1_000
"""How often the offsets are read for one nonce. Commit and read travel one behind the other, so the first
read nearly always shows it; a commit that the client had to send again takes a little longer."""


def marker_offset(marker: Marker, leaders: str = "") -> GroupOffset:
    """A marker as it is stored: the offset is the checkpoint, for people who look with Kafka's own tools.

    ``leaders``: who led the partitions before its transaction began, in short (``Settling.leaders``).
    """
    metadata = _text(marker) + (SEPARATOR + leaders if leaders else "")
    if SEPARATOR in marker.incarnation or len(metadata) > METADATA_CHARS_MAX:
        raise ValueError(f"incarnation {marker.incarnation!r} cannot be part of a marker")
    return GroupOffset(offset=marker.checkpoint, metadata=metadata)


def stored_marker(stored: GroupOffset | None, group: str) -> Marker | None:
    """Inverse of ``marker_offset``. Raises LogConflict for what no publisher of ours wrote."""
    if stored is None:
        return None
    parts = stored.metadata.split(SEPARATOR)
    if WRITTEN.fullmatch(stored.metadata) is None:
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


def leaders_in(stored: GroupOffset | None) -> str:
    """The ``leaders`` of a stored marker; empty where none are known."""
    parts = () if stored is None else stored.metadata.split(SEPARATOR)
    return parts[3] if len(parts) == 4 else ""


def _text(marker: Marker) -> str:
    return f"{marker.incarnation}{SEPARATOR}{marker.attempt}{SEPARATOR}{marker.rows}"


@dataclass(frozen=True, slots=True)
class StoredMarkers:
    """What one identity's group holds, in one answer."""

    marker: GroupOffset | None
    settled: GroupOffset | None


def read_proved_fresh(
    cluster: Cluster,
    offsets: OffsetsOfGroup,
    *,
    marker_topic: str,
    group: str,
    left_ms: Callable[[], int],
    settled: Marker | None = None,
) -> StoredMarkers:
    """What is stored now, by a nonce stored first and read together with it; beside it ``settled``, if it is new.

    Raises Retriable when no answer was proved fresh, Unavailable when there was none in time.
    """
    marker_at, nonce_at = Partition(marker_topic, MARKER_PARTITION), Partition(marker_topic, NONCE_PARTITION)
    settled_at = Partition(marker_topic, SETTLED_PARTITION)
    nonce = GroupOffset(offset=0, metadata=cluster.nonce())
    offsets.begin_commit(
        {nonce_at: nonce} | ({} if settled is None else {settled_at: marker_offset(settled)})
    )
    for _ in range(FRESH_READS_MAX):
        time_left_ms = left_ms()
        if time_left_ms <= 0:
            break
        stored = offsets.read([marker_at, nonce_at, settled_at], time_left_ms)
        if stored[nonce_at] == nonce:
            return StoredMarkers(stored[marker_at], stored[settled_at])
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
        self.settled: Marker | None = None
        """The newest marker whose transaction is known to have ended in every partition, as it was read last."""
        self.leaders = ""
        """Of the marker that was read last."""
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

    def read_fresh(self, settled: Marker | None = None) -> Marker | None:
        """The marker as it is now. Only after taking over, or a zombie's may still come.

        ``settled``: a marker whose transaction has ended in every partition; it is stored, unless it is already.
        Raises Retriable when no answer was proved fresh in time; Unavailable when there was none: then a
        zombie's marker is pending, and taking over again ends it.
        """
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        stored = read_proved_fresh(
            self._cluster,
            self._offsets,
            marker_topic=self._topic,
            group=self._group,
            left_ms=lambda: deadline_ms - self._clock.monotonic_ms(),
            settled=None if settled == self.settled else settled,
        )
        self.leaders = leaders_in(stored.marker)
        self.settled = stored_marker(stored.settled, self._group)
        return stored_marker(stored.marker, self._group)

    def settle(self, marker: Marker | None) -> None:
        """The transaction of this marker has ended in every partition: stored when this returns. Raises like
        ``read_fresh``, Retriable too when another has stored something else."""
        if marker == self.settled or marker is None:
            return
        self.read_fresh(settled=marker)
        if self.settled != marker:
            raise Retriable(
                f"group '{self._group}' was to hold {marker} and holds {self.settled}: another has taken over.",
                remedy="It is tried again.",
            )

    def close(self) -> None:
        self._offsets.close()
