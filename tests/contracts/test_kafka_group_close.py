"""Closing is bounded, also while a commit is under way to a broker that does not answer (R25)."""

from __future__ import annotations

import time

import pytest

from connectors.kafka.client_groups import CLOSE_TIMEOUT_S
from connectors.kafka.cluster import GroupOffset, Partition
from connectors.kafka.dev_broker import BrokerProcess
from tests.contracts.kafka_rig import Rig
from tests.topics import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MARGIN_S = 5.0


def test_r25_a_group_is_closed_although_its_commit_gets_no_answer(private_kafka: BrokerProcess) -> None:
    rig = Rig(private_kafka.bootstrap)
    topic = create_topic(private_kafka.bootstrap, "markers")
    cluster = rig.settings.open("main")
    group = cluster.group("some-group")
    assert group.read([Partition(topic, 0)], 30_000) == {Partition(topic, 0): None}
    private_kafka.pause()
    group.begin_commit({Partition(topic, 0): GroupOffset(offset=1, metadata="never answered")})
    began = time.monotonic()
    group.close()
    assert time.monotonic() - began < CLOSE_TIMEOUT_S + MARGIN_S
    private_kafka.resume()
    cluster.close()
