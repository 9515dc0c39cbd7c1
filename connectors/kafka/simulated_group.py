"""Offsets of a group in a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from connectors.kafka.cluster import GroupOffset, Partition
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_client import SimulatedClient
from connectors.kafka.simulated_refusal import BrokerRefusal

UNSTABLE_RETRY: Final[Mapping[str, int]] = MappingProxyType({"UNSTABLE_OFFSET_COMMIT": 100})


@dataclass(frozen=True, slots=True)
class GroupIdentity:
    """What a transaction must know of a group."""

    name: str


class SimulatedGroup:
    """See ``cluster.OffsetsOfGroup``."""

    def __init__(self, broker: SimulatedBroker, client: SimulatedClient, group: str, *, waits: bool) -> None:
        self._broker = broker
        self._client = client
        self._group = group
        self._waits = waits
        self._unsent: list[Mapping[Partition, GroupOffset]] = []
        self._refusals: list[BrokerRefusal] = []

    def identity(self) -> object:
        return GroupIdentity(self._group)

    def begin_commit(self, offsets: Mapping[Partition, GroupOffset]) -> None:
        self._unsent.append(dict(offsets))
        self._send_commits()

    def read(
        self, partitions: Sequence[Partition], timeout_ms: int
    ) -> Mapping[Partition, GroupOffset | None]:
        doing = f"reading offsets of group '{self._group}'"
        self._send_commits()
        try:
            stored = self._client.ask(
                f"OffsetFetch {self._group}",
                lambda: self._broker.read_offsets(self._group, partitions, waits=self._waits),
                timeout_ms,
                doing=doing,
                changes=False,
                retry=UNSTABLE_RETRY,
            )
        except BrokerRefusal as refused:
            raise self._client.error(refused.name, refused.text, doing) from refused
        if self._refusals:
            refusal = self._refusals.pop(0)
            raise self._client.error(
                refusal.name, refusal.text, f"storing offsets of group '{self._group}'"
            ) from refusal
        return stored

    def close(self) -> None:
        self._unsent.clear()

    def _send_commits(self) -> None:
        """Each once, in order; one without an answer is sent again before the next read."""
        while self._unsent:
            offsets = self._unsent[0]
            try:
                answer = self._client.once(
                    f"OffsetCommit {self._group}",
                    lambda offsets=offsets: self._broker.commit_offsets(self._group, offsets),  # type: ignore[misc]
                )
            except BrokerRefusal as refused:
                self._refusals.append(refused)
            else:
                if answer is None:
                    return
            self._unsent.pop(0)
