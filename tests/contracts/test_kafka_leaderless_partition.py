"""A partition that nobody leads when a transaction ends is never told of it: its rows stay open there (R32)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from connectors.kafka.dev_broker import Cluster
from processor.contracts.sink import Publisher
from processor.errors import Retriable
from processor.fault_points import FaultHook, FaultPoint, no_faults
from tests.contracts.kafka_rig import Rig, block, marker, read_committed, taken_over, values
from tests.passed_over import has_passed_over
from tests.topics import create_topic
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(400)]

ROWS = [b"%d" % n for n in range(100)]
MORE = [b"%d" % n for n in range(100, 150)]
WAIT_S = 60.0


class Died(Exception):
    """Instead of a process that is killed."""


class LeaderlessTopic:
    """A topic of one partition and one replica, whose broker is killed and started again."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.rig = Rig(cluster.bootstrap)
        self.name = create_topic(cluster.bootstrap, "out")
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        self._index = self._leader() - 1

    def lose_leader(self) -> None:
        self.cluster.brokers[self._index].kill()
        wait_until(lambda: self._leader() == -1, WAIT_S, "nobody leads the partition")

    def get_leader_back(self) -> None:
        self.cluster = self.cluster.with_restarted(self._index)
        wait_until(lambda: self._leader() == self._index + 1, WAIT_S, "the partition is led again")

    def was_passed_over(self) -> bool:
        return any(has_passed_over(broker) for broker in self.cluster.brokers)

    def publisher(self, faults: FaultHook = no_faults) -> Publisher:
        return self.rig.publisher(self.name, faults=faults)

    def read(self) -> list[bytes]:
        return values(read_committed(self.cluster.bootstrap, self.name))

    def _leader(self) -> int:
        leader: int = (
            self._admin.list_topics(self.name, timeout=WAIT_S).topics[self.name].partitions[0].leader
        )
        return leader


def at_commit(act: Callable[[], None]) -> FaultHook:
    done: list[bool] = []

    def hook(reached: FaultPoint) -> None:
        if reached is FaultPoint.ALL_SENT_NOT_COMMITTED and not done:
            done.append(True)
            act()

    return hook


def test_case_11_r32_what_was_aborted_without_a_leader_does_not_come_out_with_what_is_sent_next(
    private_cluster: Cluster,
) -> None:
    topic = LeaderlessTopic(private_cluster)

    def die() -> None:
        topic.lose_leader()
        raise Died

    first = topic.publisher(at_commit(die))
    assert taken_over(first) is None
    with pytest.raises(Died):
        first.send(marker(1, len(ROWS)), [block(topic.name, ROWS)])
    second = topic.publisher()
    with pytest.raises(Retriable):  # it has ended the transaction, and waits for the partition
        second.take_over()
    assert topic.was_passed_over()
    topic.get_leader_back()
    assert taken_over(second) is None
    second.send(marker(1, len(ROWS)), [block(topic.name, ROWS)])
    assert second.wait_visible(20_000)
    assert topic.read() == ROWS, "once"
    second.close()


def test_case_11_r32_what_was_committed_without_a_leader_is_not_aborted_with_what_is_sent_next(
    private_cluster: Cluster,
) -> None:
    topic = LeaderlessTopic(private_cluster)
    first = topic.publisher(at_commit(topic.lose_leader))
    assert taken_over(first) is None
    first.send(marker(1, len(ROWS)), [block(topic.name, ROWS)])  # Kafka says that it is committed
    wait_until(topic.was_passed_over, WAIT_S, "the partition is passed over")
    topic.get_leader_back()
    for publisher in (first, topic.publisher()):
        assert taken_over(publisher) == marker(1, len(ROWS))
        with pytest.raises(Retriable, match="can't send more: rows that it has committed"):
            publisher.send(marker(2, len(MORE)), [block(topic.name, MORE)])
        assert topic.read() == []

    show(topic, transactional_id=str(topic.rig.identity()))
    assert taken_over(publisher) == marker(1, len(ROWS))
    publisher.send(marker(2, len(MORE)), [block(topic.name, MORE)])
    assert publisher.wait_visible(20_000)
    assert topic.read() == [*ROWS, b"", *MORE]
    publisher.close()


def show(topic: LeaderlessTopic, transactional_id: str) -> None:
    """What the README tells operators: a row that is committed under the same id shows what was hidden."""
    producer = Producer({"bootstrap.servers": topic.cluster.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic.name, b"", key=b"operator", partition=0)
    producer.commit_transaction(WAIT_S)
