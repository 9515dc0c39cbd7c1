"""`processor doctor` on a real broker (R31)."""

from __future__ import annotations

import pytest

from connectors.kafka.plugin import plugin
from tests.contracts.kafka_rig import Rig

pytestmark = pytest.mark.kafka


def test_r31_the_doctor_finds_a_real_broker_fit(kafka: str) -> None:
    findings = plugin.doctor(Rig(kafka).settings)
    assert [finding.what for finding in findings if not finding.passed] == []
    tried = " ".join(finding.what for finding in findings)
    for what in (
        "takes over",
        "pending marker keeps readers waiting",
        "first publisher is fenced",
        "nonce is read together with the marker",
        "verify transactions",
        "replicas of __consumer_offsets",
        "markers are kept long enough",
    ):
        assert what in tried


def test_r31_the_doctor_leaves_no_group_behind(kafka: str) -> None:
    from confluent_kafka.admin import AdminClient

    plugin.doctor(Rig(kafka).settings)
    groups = AdminClient({"bootstrap.servers": kafka})
    listed = groups.list_consumer_groups(request_timeout=30).result(30)
    assert [group.group_id for group in listed.valid if "doctor" in group.group_id] == []


def test_r31_a_cluster_that_does_not_answer_is_one_finding() -> None:
    (finding,) = plugin.doctor(Rig("127.0.0.1:1", request_timeout="1s").settings)
    assert not finding.passed
    assert "bootstrap_servers" in finding.detail


def test_r31_a_transaction_timeout_above_the_brokers_is_a_finding(kafka: str) -> None:
    findings = plugin.doctor(Rig(kafka, transaction_timeout="1h").settings)
    failed = [finding for finding in findings if not finding.passed]
    assert "kafka.main: transaction_timeout is allowed" in [finding.what for finding in failed]


def test_clusters_without_address_are_left_out() -> None:
    rig = Rig("unused")
    assert plugin.doctor(type(rig.settings)()) == []
