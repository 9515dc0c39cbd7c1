"""A Kafka cluster in memory: the state that all simulated clients share, and what operators do to it.

What stands here happens on the broker's side, at once and completely; requests that are lost, late or doubled
are the clients' side (``simulated_client.py``), by what the world decides. It is one broker: what several of
them add is answers from a coordinator that slept (``BrokerWorld.stale_read``) and requests that are lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from connectors.kafka.cluster import GroupOffset, Partition
from connectors.kafka.simulated_groups import Groups
from connectors.kafka.simulated_log import PartitionLog
from connectors.kafka.simulated_records import Rows, SimulatedMessage
from connectors.kafka.simulated_refusal import BrokerRefusal
from connectors.kafka.simulated_topics import Topic, Topics
from connectors.kafka.simulated_transactions import Transactions
from connectors.kafka.simulated_world import BrokerWorld
from processor.records.batch import Headers

BROKER_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "message.max.bytes": "1048588",
        "offsets.retention.minutes": "10080",
        "offsets.topic.replication.factor": "1",
        "transaction.max.timeout.ms": "900000",
        "transaction.partition.verification.enable": "true",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.replication.factor": "1",
    }
)


class SimulatedBroker:
    """See the module. Many clusters (``SimulatedCluster``) share one, as processes share a Kafka."""

    def __init__(
        self, world: BrokerWorld, *, cluster_id: str = "simulated", config: Mapping[str, str] | None = None
    ) -> None:
        self._world = world
        self.cluster_id = cluster_id
        self.config: Mapping[str, str] = {**BROKER_DEFAULTS, **(config or {})}
        self.topics = Topics(cluster_id)
        self.groups = Groups(self.topics.has, int(self.config["offsets.retention.minutes"]) * 60_000)
        self.transactions = Transactions(
            world,
            timeout_max_ms=int(self.config["transaction.max.timeout.ms"]),
            log_of=self.topics.log,
            end_in_group=lambda group, producer_id, commit: self.groups.end(
                group, producer_id, commit=commit
            ),
        )
        self._unkeyed_choices = 0

    # Requests of clients.

    def produce(
        self, name: str, producer_id: int, epoch: int, at: Partition, sequence: int, rows: Rows
    ) -> None:
        """Rows of the open transaction of transactional id ``name``. Raises BrokerRefusal."""
        topic = self.topics.get(at.topic)
        log = self.topics.log(at)
        log.check_leader()
        if "WRITE" in topic.denied:
            raise BrokerRefusal("TOPIC_AUTHORIZATION_FAILED")
        now_ms = self._world.now_ms()
        topic.check(rows, now_ms)
        if not log.is_open(producer_id):
            self.transactions.check_partition(name, producer_id, epoch, at)
        log.append_open(rows, now_ms, producer_id, epoch, sequence)
        if away_ms := self._world.leader_away_ms(str(at)):
            log.lose_leader()
            self._world.later(away_ms, log.elect_leader)

    def send_offsets(
        self,
        name: str,
        producer_id: int,
        epoch: int,
        group: str,
        offsets: Mapping[Partition, GroupOffset],
    ) -> None:
        """TxnOffsetCommit. Raises BrokerRefusal."""
        self.transactions.check_group(name, producer_id, epoch, group)
        self.groups.commit_later(group, producer_id, offsets, self._world.now_ms())

    def commit_offsets(self, group: str, offsets: Mapping[Partition, GroupOffset]) -> None:
        """OffsetCommit. Raises BrokerRefusal."""
        self.groups.commit(group, offsets, self._world.now_ms())

    def read_offsets(
        self, group: str, partitions: Sequence[Partition], *, waits: bool
    ) -> Mapping[Partition, GroupOffset | None]:
        """OffsetFetch. Raises BrokerRefusal."""
        return self.groups.read(
            group,
            partitions,
            self._world.now_ms(),
            waits=waits,
            from_memory=self._world.stale_read(group),
        )

    def choose_place(self) -> int:
        """A number for a client that must put rows without a key somewhere: another one each time."""
        self._unkeyed_choices += 1
        return self._unkeyed_choices

    # What operators and other programs do.

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> Topic:
        """Raises BrokerRefusal when it is there already."""
        return self.topics.make(name, partitions, config or {})

    def delete_topic(self, name: str) -> None:
        """Its records go, and the offsets that groups stored against it."""
        self.topics.delete(name)
        self.groups.drop_topic(name)
        self.transactions.drop_topic(name)

    def add_partitions(self, name: str, partitions: int) -> None:
        """Raise the number of partitions to this."""
        self.topics.get(name).add_partitions(partitions)

    def deny(self, name: str, *operations: str) -> None:
        """From now on these (``READ``, ``WRITE``) are refused on the topic; with none, all are allowed."""
        self.topics.get(name).denied = operations

    def append(
        self,
        at: Partition,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        timestamps: Sequence[int] | None = None,
        headers: Sequence[Headers] | None = None,
    ) -> None:
        """Another program writes records without a transaction. Raises BrokerRefusal."""
        rows = Rows(values=values, keys=keys, timestamps=timestamps, headers=headers)
        now_ms = self._world.now_ms()
        self.topics.get(at.topic).check(rows, now_ms)
        self.topics.log(at).append(rows, now_ms)

    def delete_records(self, at: Partition, before: int) -> None:
        """What retention does too."""
        self.topics.log(at).delete_before(before)

    def compact(self, at: Partition) -> None:
        """What the log cleaner does: of each key the newest record stays."""
        self.topics.log(at).compact()

    def log(self, at: Partition) -> PartitionLog:
        """For audits: offsets, what is committed. Raises BrokerRefusal."""
        return self.topics.log(at)

    def committed(self, topic: str) -> list[list[SimulatedMessage]]:
        """For audits: what a read_committed reader can read now, by partition."""
        return [log.committed() for log in self.topics.get(topic).logs]
