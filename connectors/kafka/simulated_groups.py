"""The group coordinator of a simulated cluster: offsets with metadata, plain and in transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from connectors.kafka.cluster import GroupOffset, Partition
from connectors.kafka.simulated_refusal import BrokerRefusal

METADATA_BYTES_MAX: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOffset:
    offset: GroupOffset
    written_ms: int
    place: int
    """Order in which it was written; of a transaction's offset when it was sent, not when it was committed."""


@dataclass(slots=True, kw_only=True)
class Group:
    committed: dict[Partition, StoredOffset] = field(default_factory=dict)
    pending: dict[int, dict[Partition, StoredOffset]] = field(default_factory=dict)
    """Offsets in open transactions, by producer id."""
    before: dict[int, Mapping[Partition, StoredOffset]] = field(default_factory=dict)
    """As all was before an open transaction sent its first offset, by producer id."""
    remembered: Mapping[Partition, StoredOffset] = field(default_factory=dict)
    """As all was before the transaction that committed last sent its first offset: what a coordinator knows that
    slept through its succession. Whatever was stored since went to its successor, a reader's nonce too (R15); one
    that knows of a nonce stored later knows of the open transaction as well, and gives no answer."""


class Groups:
    """Groups by name. Nobody subscribes, so there are only offsets."""

    def __init__(self, partition_exists: Callable[[Partition], bool], retention_ms: int) -> None:
        self._partition_exists = partition_exists
        self._retention_ms = retention_ms
        self._groups: dict[str, Group] = {}
        self._written = 0

    def commit(self, name: str, offsets: Mapping[Partition, GroupOffset], now_ms: int) -> None:
        """A plain commit; offsets of open transactions are not touched. Raises BrokerRefusal."""
        self._check(offsets)
        group = self._groups.setdefault(name, Group())
        group.committed.update(self._stored(offsets, now_ms))

    def commit_later(
        self, name: str, producer_id: int, offsets: Mapping[Partition, GroupOffset], now_ms: int
    ) -> None:
        """Offsets that become visible with their transaction, or never. Raises BrokerRefusal."""
        self._check(offsets)
        group = self._groups.setdefault(name, Group())
        group.before.setdefault(producer_id, dict(group.committed))
        pending = group.pending.setdefault(producer_id, {})
        pending.update(self._stored(offsets, now_ms))

    def end(self, name: str, producer_id: int, *, commit: bool) -> None:
        """The marker of a transaction reaches the group."""
        group = self._groups.get(name)
        pending = None if group is None else group.pending.pop(producer_id, None)
        before = None if group is None else group.before.pop(producer_id, None)
        if group is None or not pending or not commit:
            return
        group.remembered = before or {}
        for at, stored in pending.items():
            now = group.committed.get(at)
            if now is None or now.place < stored.place:
                group.committed[at] = stored

    def read(
        self, name: str, partitions: Sequence[Partition], now_ms: int, *, waits: bool, from_memory: bool
    ) -> dict[Partition, GroupOffset | None]:
        """Raises BrokerRefusal while an open transaction would change what is read, if it ``waits``."""
        group = self._groups.get(name)
        if group is None:
            return dict.fromkeys(partitions)
        if from_memory:
            return self._kept(group.remembered, partitions, now_ms)
        if waits:
            for pending in group.pending.values():
                if any(at in pending for at in partitions):
                    raise BrokerRefusal("UNSTABLE_OFFSET_COMMIT")
        return self._kept(group.committed, partitions, now_ms)

    def delete(self, name: str) -> None:
        """Raises BrokerRefusal when there is no such group."""
        if name not in self._groups:
            raise BrokerRefusal("GROUP_ID_NOT_FOUND")
        del self._groups[name]

    def drop_topic(self, topic: str) -> None:
        """Offsets stored against a topic go when it is deleted, without a word."""
        for group in self._groups.values():
            group.committed = {at: kept for at, kept in group.committed.items() if at.topic != topic}
            group.remembered = {at: kept for at, kept in group.remembered.items() if at.topic != topic}
            for pending in group.pending.values():
                for at in [at for at in pending if at.topic == topic]:
                    del pending[at]

    def _check(self, offsets: Mapping[Partition, GroupOffset]) -> None:
        for at, stored in offsets.items():
            if not self._partition_exists(at):
                raise BrokerRefusal("UNKNOWN_TOPIC_OR_PART")
            if len(stored.metadata.encode()) > METADATA_BYTES_MAX:
                raise BrokerRefusal("OFFSET_METADATA_TOO_LARGE")

    def _stored(self, offsets: Mapping[Partition, GroupOffset], now_ms: int) -> dict[Partition, StoredOffset]:
        self._written += 1
        return {
            at: StoredOffset(offset=offset, written_ms=now_ms, place=self._written)
            for at, offset in offsets.items()
        }

    def _kept(
        self, stored: Mapping[Partition, StoredOffset], partitions: Sequence[Partition], now_ms: int
    ) -> dict[Partition, GroupOffset | None]:
        found: dict[Partition, GroupOffset | None] = {}
        for at in partitions:
            kept = stored.get(at)
            expired = kept is None or now_ms - kept.written_ms > self._retention_ms
            found[at] = None if kept is None or expired else kept.offset
        return found
