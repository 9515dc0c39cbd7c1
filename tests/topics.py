"""Topics for tests: made with a name of their own, there for every reader once this returns."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.waiting import wait_until

TOPIC_TIMEOUT_S = 30.0
METADATA, METADATA_VERSION = 3, 4


class TopicFactory(Protocol):
    """What the fixture `topic` is: call it once for each topic that a test needs."""

    def __call__(
        self, name: str = "topic", *, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Make a topic whose name begins with `name`; returns the whole name."""
        ...


def create_topic(
    bootstrap: str,
    name: str = "topic",
    *,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    replicas: int = 1,
) -> str:
    """Make a topic, wait until its partitions have leaders, and return its unique name."""
    unique = f"{name}-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(
        unique, num_partitions=partitions, replication_factor=replicas, config=dict(config or {})
    )
    admin.create_topics([topic], request_timeout=TOPIC_TIMEOUT_S)[unique].result(TOPIC_TIMEOUT_S)

    def has_leaders() -> bool:
        known = admin.list_topics(unique, timeout=TOPIC_TIMEOUT_S).topics[unique].partitions
        return len(known) == partitions and all(partition.leader >= 0 for partition in known.values())

    wait_until(has_leaders, TOPIC_TIMEOUT_S, f"all {partitions} partitions of {unique} have a leader")
    for server in bootstrap.split(","):  # a client asks any of them, and they learn of it one after another
        wait_until(partial(is_known_at, server, unique), TOPIC_TIMEOUT_S, f"{server} knows {unique}")
    return unique


def is_known_at(server: str, topic: str) -> bool:
    """Whether this very broker knows a topic: asked in Kafka's own protocol, Metadata version 4."""
    host, _, port = server.rpartition(":")
    name = topic.encode()
    request = struct.pack(">hhih", METADATA, METADATA_VERSION, 1, -1)
    request += struct.pack(">ih", 1, len(name)) + name + b"\0"
    with socket.create_connection((host, int(port)), TOPIC_TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            body = answer.read(struct.unpack(">i", answer.read(4))[0])
    # Of the one topic: error code, name, whether it is internal, partitions (none, where it is not known).
    at = body.index(struct.pack(">h", len(name)) + name) - 2
    error: int = struct.unpack_from(">h", body, at)[0]
    return error == 0


def delete_topics(bootstrap: str, names: Sequence[str]) -> None:
    """Drop topics that hold much; returns when the broker has agreed to."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_topics(list(names), request_timeout=TOPIC_TIMEOUT_S).values():
        deleted.result(TOPIC_TIMEOUT_S)
