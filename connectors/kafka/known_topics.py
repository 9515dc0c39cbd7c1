"""Topics that were made a moment ago: brokers learn of them one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from connectors.kafka.cluster import Cluster, TopicDescription

ASK_AGAIN_MS: Final = 100
ASKS_MAX: Final = 20
"""Two seconds in all; brokers of one cluster are some milliseconds apart."""


def describe_when_known(cluster: Cluster, topics: Sequence[str]) -> Mapping[str, TopicDescription]:
    """As ``Cluster.describe``; while a topic is missing, it is asked for again for a moment."""
    found = cluster.describe(topics)
    for _ in range(ASKS_MAX):
        if all(topic in found for topic in topics):
            break
        cluster.pause(ASK_AGAIN_MS)
        found = cluster.describe(topics)
    return found
