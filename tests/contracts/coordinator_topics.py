"""Puts the coordinators of groups and of transactions on different brokers, whatever the name.

Both are found by the same hash of the name, so with both topics laid out alike (one cluster in three) a group's
coordinator is on the very broker that coordinates the transactions of that name.
"""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connectors.kafka.dev_broker import Cluster
from tests.waiting import wait_until

PARTITIONS = 4
"""As the settings of brokers for development have it."""
TIMEOUT_S = 30.0


def lay_out_coordinators(cluster: Cluster) -> None:
    """Make both topics by hand, before anything has used them."""
    nodes = [number + 1 for number in range(len(cluster.brokers))]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    layouts = {
        name: [_rotated(nodes, partition + shift) for partition in range(PARTITIONS)]
        for name, shift in (("__consumer_offsets", 0), ("__transaction_state", 1))
    }
    topics = [
        NewTopic(
            name,
            num_partitions=PARTITIONS,
            replica_assignment=layout,
            config={"cleanup.policy": "compact"},
        )
        for name, layout in layouts.items()
    ]
    # What is asked while the client learns who the brokers are can be lost together with its first connection.
    admin.list_topics(timeout=TIMEOUT_S)
    for made in admin.create_topics(topics, request_timeout=TIMEOUT_S).values():
        made.result(TIMEOUT_S)

    def led() -> bool:
        known = admin.list_topics(timeout=TIMEOUT_S).topics
        return all(
            name in known
            and {number: known[name].partitions[number].leader for number in known[name].partitions}
            == {number: replicas[0] for number, replicas in enumerate(layout)}
            for name, layout in layouts.items()
        )

    wait_until(led, TIMEOUT_S, "the coordinators are where they were put")


def _rotated(nodes: list[int], by: int) -> list[int]:
    return [nodes[(by + number) % len(nodes)] for number in range(len(nodes))]
