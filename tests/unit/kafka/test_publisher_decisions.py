"""What a publisher makes of answers that are late, old or missing (R11, R15, R19, R30)."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.kafka.cluster import DeliveryFailure, GroupOffset, Partition, TopicDescription
from connectors.kafka.marker_store import marker_offset
from connectors.kafka.publisher import KafkaPublisher
from connectors.kafka.settings import ClusterSettings
from connectors.kafka.take_over_pace import QUICK_MAX_MS, TakeOverPace
from processor.errors import ExternalRefusal, LogConflict, PublishRefused, Retriable, TooLarge, Unavailable
from processor.ids import Attempt, CheckpointId, Incarnation, JobName, Marker, PublisherId, StepName
from processor.records.rows import RowBlock
from tests.unit.kafka.pretend_cluster import PretendCluster, PretendProducer

SETTINGS = ClusterSettings(bootstrap_servers="unused:1")
MARKER_AT = Partition(SETTINGS.marker_topic, 0)
NONCE_AT = Partition(SETTINGS.marker_topic, 1)
SETTLED_AT = Partition(SETTINGS.marker_topic, 2)


def marker(checkpoint: int, rows: int = 0) -> Marker:
    return Marker(
        incarnation=Incarnation("i"), attempt=Attempt(2), checkpoint=CheckpointId(checkpoint), rows=rows
    )


def publisher_on(cluster: PretendCluster) -> KafkaPublisher:
    return KafkaPublisher(
        lambda: cluster,
        SETTINGS,
        cluster.clock,
        PublisherId(JobName("job"), StepName("out"), 0),
        topics=["out"],
    )


def rows(*values: bytes) -> RowBlock:
    return RowBlock(topic="out", values=list(values))


def failure(name: str, value: bytes = b"v") -> DeliveryFailure:
    return DeliveryFailure(name=name, text=f"pretended {name}", topic="out", key=None, value=value)


def test_r15_an_answer_without_my_nonce_is_no_answer() -> None:
    cluster = PretendCluster()
    group = cluster.offsets_of_group
    group.remembered = {MARKER_AT: marker_offset(marker(1)), NONCE_AT: GroupOffset(offset=0, metadata="old")}
    group.stored = {MARKER_AT: marker_offset(marker(2))}
    group.stale_reads = 3
    assert publisher_on(cluster).take_over() == marker(2), "the stale answers say checkpoint 1"
    assert all(list(request) == [MARKER_AT, NONCE_AT, SETTLED_AT] for request in group.requests), (
        "in one request"
    )


def test_r15_answers_that_stay_stale_are_tried_again_from_the_start() -> None:
    cluster = PretendCluster()
    cluster.offsets_of_group.stale_reads = 10**6
    with pytest.raises(Retriable, match="proved fresh"):
        publisher_on(cluster).take_over()


def test_r15_every_reading_has_a_nonce_of_its_own() -> None:
    cluster = PretendCluster()
    publisher = publisher_on(cluster)
    publisher.take_over()
    first = cluster.offsets_of_group.stored[NONCE_AT]
    publisher.take_over()
    assert cluster.offsets_of_group.stored[NONCE_AT] != first


def test_r15_silence_means_a_pending_marker_and_taking_over_again() -> None:
    cluster = PretendCluster()
    cluster.offsets_of_group.silent_reads = 1
    publisher = publisher_on(cluster)
    with pytest.raises(Retriable, match="reading the marker"):
        publisher.take_over()
    assert publisher.take_over() is None


def test_r11_looking_shuts_nobody_out() -> None:
    cluster = PretendCluster()
    cluster.offsets_of_group.stored = {MARKER_AT: marker_offset(marker(4))}
    assert publisher_on(cluster).look() == marker(4)
    assert cluster.producers == []


def test_r12_every_transaction_has_a_new_producer() -> None:
    cluster = PretendCluster()
    publisher = publisher_on(cluster)
    for checkpoint in (1, 2, 3):
        publisher.take_over()
        publisher.send(marker(checkpoint), [])
    assert len(cluster.producers) == 3
    assert all(producer.calls[-1] == "abandon" for producer in cluster.producers)


def test_r19_a_flush_that_leaves_nothing_is_no_success() -> None:
    cluster = PretendCluster()
    cluster.next_producers = [PretendProducer(cluster, failed=[failure("_PURGE_QUEUE")], left_after_flush=0)]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(Retriable):
        publisher.send(marker(1, 1), [rows(b"v")])
    assert "commit" not in cluster.producers[0].calls
    assert cluster.committed == []


def test_r11_a_commit_without_an_answer_is_taken_over_again() -> None:
    cluster = PretendCluster()
    cluster.next_producers = [PretendProducer(cluster, fail_commit=Unavailable("no answer"))]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(Retriable, match="got no answer while publishing"):
        publisher.send(marker(1), [])
    assert cluster.producers[0].calls[-1] == "abandon"


def test_r30_rows_that_are_too_slow_together_are_fewer_next_time() -> None:
    cluster = PretendCluster()
    cluster.topics["out"] = TopicDescription(topic_id="t", partitions=1, may=None)
    cluster.next_producers = [PretendProducer(cluster, left_after_flush=1)]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(TooLarge, match="1 of 2 rows"):
        publisher.send(marker(1, 2), [rows(b"a", b"b")])


def test_when_nothing_went_through_fewer_rows_would_not_help() -> None:
    cluster = PretendCluster()
    cluster.topics["out"] = TopicDescription(topic_id="t", partitions=1, may=None)
    cluster.next_producers = [PretendProducer(cluster, left_after_flush=2)]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(Retriable) as refused:
        publisher.send(marker(1, 2), [rows(b"a", b"b")])
    assert not isinstance(refused.value, TooLarge)


def test_r30_a_topic_that_is_gone_is_named() -> None:
    cluster = PretendCluster()
    cluster.next_producers = [PretendProducer(cluster, left_after_flush=1)]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(ExternalRefusal, match="topic 'out' does not exist any more"):
        publisher.send(marker(1, 1), [rows(b"a")])


@pytest.mark.parametrize("name", ["INVALID_RECORD", "INVALID_TIMESTAMP", "_UNKNOWN_PARTITION"])
def test_r30_the_only_refused_row_is_named(name: str) -> None:
    cluster = PretendCluster()
    failed = [
        failure("_INVALID_DIFFERENT_RECORD", b"a"),
        failure(name, b"c"),
        failure("_INVALID_DIFFERENT_RECORD", b"b"),
    ]
    cluster.next_producers = [PretendProducer(cluster, failed=failed)]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(PublishRefused) as refused:
        publisher.send(marker(1, 3), [rows(b"a", b"b"), rows(b"c")])
    assert refused.value.row == 2


def test_r30_of_several_like_it_none_is_blamed() -> None:
    cluster = PretendCluster()
    cluster.next_producers = [PretendProducer(cluster, failed=[failure("INVALID_RECORD", b"a")])]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(TooLarge):
        publisher.send(marker(1, 2), [rows(b"a", b"a")])


def test_r30_a_size_error_of_one_row_is_for_good() -> None:
    cluster = PretendCluster()
    cluster.next_producers = [PretendProducer(cluster, failed=[failure("MSG_SIZE_TOO_LARGE")])]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(PublishRefused) as refused:
        publisher.send(marker(1, 1), [rows(b"v")])
    assert refused.value.row == 0


@pytest.mark.parametrize(
    "then",
    [
        {"fail_produce_at": 1},
        {"fail_commit": Retriable("the transaction is in error")},
    ],
)
def test_r30_the_refused_row_is_the_reason_and_not_what_fails_after_it(then: dict[str, Any]) -> None:
    """A broker that answers quickly ends the transaction before the rest is sent, or it is committed."""
    cluster = PretendCluster()
    cluster.next_producers = [PretendProducer(cluster, failed=[failure("INVALID_RECORD", b"b")], **then)]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(PublishRefused) as refused:
        publisher.send(marker(1, 2), [rows(b"a", b"b")])
    assert refused.value.row == 1


def test_r11_rows_that_were_committed_without_their_marker_stop_the_job_loudly() -> None:
    """Somebody ended the transaction in our name between the marker and the rows: what is out is not known."""
    cluster = PretendCluster()
    publisher = publisher_on(cluster)
    publisher.take_over()
    cluster.next_producers = []
    producer = publisher._producer
    assert isinstance(producer, PretendProducer)
    producer.send_offsets = lambda *_: None  # type: ignore[method-assign]
    with pytest.raises(LogConflict, match="some rows may be out and some not"):
        publisher.send(marker(1, 1), [rows(b"v")])


def test_no_right_to_write_is_for_good() -> None:
    cluster = PretendCluster()
    cluster.next_producers = [
        PretendProducer(cluster, failed=[failure("_PURGE_QUEUE"), failure("TOPIC_AUTHORIZATION_FAILED")])
    ]
    publisher = publisher_on(cluster)
    publisher.take_over()
    with pytest.raises(ExternalRefusal, match="Write and Describe"):
        publisher.send(marker(1, 1), [rows(b"v")])


def test_a_quick_first_try_is_followed_by_a_patient_one() -> None:
    cluster = PretendCluster()
    publisher = publisher_on(cluster)
    publisher.take_over()
    cluster.next_producers = [PretendProducer(cluster, fail_initialise=Retriable("concurrent"))]
    publisher.take_over()
    assert [producer.calls[0] for producer in cluster.producers] == [
        f"initialise {SETTINGS.take_over_timeout}",
        "initialise 50",
        f"initialise {SETTINGS.take_over_timeout}",
    ]
    assert cluster.producers[1].calls[-1] == "abandon"


def test_on_a_slow_network_taking_over_is_not_doubled() -> None:
    pace = TakeOverPace()
    assert pace.timeouts_ms(30_000) == (30_000,), "the first time nothing is known"
    pace.took(QUICK_MAX_MS)
    assert pace.timeouts_ms(30_000) == (30_000,)
    fast = TakeOverPace()
    fast.took(5)
    assert fast.timeouts_ms(30_000) == (50, 30_000)
