"""A sink on a real broker: what it checks before a job runs, and what it lets into an outbox (R30, R31)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from connectors.kafka import KafkaSink
from processor.contracts.policy import Policy, Skip
from processor.errors import BadRecord, ExternalRefusal, SettingsError, Unavailable
from processor.ids import SplitId
from processor.records.batch import NO_TIMESTAMP, Batch
from processor.runtime.system import SystemClock
from tests.contracts.kafka_rig import Bytes, Rig, block, marker, read_committed, values
from tests.topics import TopicFactory

NOW = SystemClock().wall_ms()


def batch(values: list[Any], **columns: Any) -> Batch[Any]:
    columns.setdefault("timestamps", [NOW] * len(values))
    return Batch(values=values, split=SplitId("in/0"), offsets=list(range(10, 10 + len(values))), **columns)


def encoded(rig: Rig, sink: KafkaSink[Any], records: Batch[Any], policy: Policy | None = None) -> list[Any]:
    return list(sink.encoder(rig.sink_context(policy=policy)).encode(records))


def test_a_place_names_cluster_marker_topic_and_targets_by_id(place: str, topic: TopicFactory) -> None:
    name = topic("real")
    rig = Rig(place, topic_map={"written": name})
    named = KafkaSink("written", Bytes()).check(rig.sink_context())
    assert set(named.targets) == {name}
    assert all([named.cluster, named.marker_store, named.targets[name]])
    assert named == KafkaSink("written", Bytes()).check(rig.sink_context())


def test_a_missing_marker_topic_is_made_with_three_partitions(place: str, topic: TopicFactory) -> None:
    markers = f"markers-{uuid.uuid4().hex[:8]}"
    rig, name = Rig(place, marker_topic=markers), topic()
    named = KafkaSink(name, Bytes()).check(rig.sink_context())
    cluster = rig.settings.open("main")
    found = cluster.describe([markers])[markers]
    assert (found.partitions, found.topic_id) == (3, named.marker_store)
    cluster.close()
    publisher = KafkaSink(name, Bytes()).publisher(rig.sink_context(), rig.identity())
    assert publisher.take_over() is None
    publisher.send(marker(1, 0), [])
    assert publisher.take_over() == marker(1, 0)
    publisher.close()


def test_a_marker_topic_may_be_forbidden_to_be_made(place: str, topic: TopicFactory) -> None:
    rig = Rig(place, marker_topic=f"markers-{uuid.uuid4().hex[:8]}", marker_topic_create=False)
    with pytest.raises(ExternalRefusal, match=r"does not exist.*Make it with 3 partitions"):
        KafkaSink(topic(), Bytes()).check(rig.sink_context())


def test_a_marker_topic_of_one_partition_is_refused(place: str, topic: TopicFactory) -> None:
    rig = Rig(place, marker_topic=topic("markers"))
    with pytest.raises(ExternalRefusal, match="has 1 partitions, not 3"):
        KafkaSink(topic(), Bytes()).check(rig.sink_context())


def test_an_unknown_topic_is_refused_by_name(place: str) -> None:
    with pytest.raises(ExternalRefusal, match="step 'out': topic 'no-such-topic' does not exist"):
        KafkaSink("no-such-topic", Bytes()).check(Rig(place).sink_context())


def test_a_cluster_that_does_not_answer_is_named() -> None:
    rig = Rig("127.0.0.1:1", request_timeout="1s")
    with pytest.raises(Unavailable, match=r"Kafka cluster 'main' did not answer.*bootstrap_servers"):
        KafkaSink("out", Bytes()).check(rig.sink_context())


def test_a_cluster_without_address_is_named() -> None:
    rig = Rig("unused")
    rig.settings = type(rig.settings)()
    with pytest.raises(SettingsError, match=r"'main' has no address. Set kafka.main.bootstrap_servers"):
        KafkaSink("out", Bytes()).check(rig.sink_context())


def test_case_13_a_transaction_timeout_above_the_brokers_is_refused_with_both_values(
    place: str, topic: TopicFactory
) -> None:
    rig = Rig(place, transaction_timeout="1h")
    with pytest.raises(
        SettingsError, match=r"transaction_timeout is 1h.*transaction.max.timeout.ms is 900000"
    ):
        KafkaSink(topic(), Bytes()).check(rig.sink_context())


def test_r30_a_row_too_large_with_its_headers_is_named(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic(config={"max.message.bytes": "2000"})
    sink = KafkaSink(name, Bytes())
    fitting = batch([b"x" * 1_000, b"y"])
    assert [len(rows) for rows in encoded(rig, sink, fitting)] == [2]
    headers = [(), (("h", b"z" * 1_000),)]
    with pytest.raises(BadRecord, match=r"step 'out', at in/0 offset 11: .*max.message.bytes of 2000"):
        encoded(rig, sink, batch([b"y", b"x" * 1_000], headers=headers))


def test_r30_what_passes_the_size_check_passes_the_broker(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic(config={"max.message.bytes": "2000"})
    sink = KafkaSink(name, Bytes())
    largest = None
    for size in range(1_850, 2_000):
        records = batch([b"x" * size], keys=[b"key"], headers=[(("name", b"v"), ("", None))])
        rows = encoded(rig, sink, records, Skip())
        if not rows:
            break
        largest = rows
    assert largest is not None
    assert len(largest[0].values[0]) > 1_850
    publisher = rig.publisher(name)
    publisher.take_over()
    publisher.send(marker(1, 1), largest)
    assert publisher.take_over() == marker(1, 1)
    publisher.close()


def test_r30_a_null_key_into_a_compacted_topic_is_caught(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic(config={"cleanup.policy": "compact,delete"})
    sink = KafkaSink(name, Bytes())
    with pytest.raises(BadRecord, match=r"offset 11: .*no key, and the topic is compacted"):
        encoded(rig, sink, batch([b"a", b"b"], keys=["k", None]))
    with pytest.raises(BadRecord, match="no key"):
        encoded(rig, sink, batch([b"a"]))
    (rows,) = encoded(rig, sink, batch([b"a", b"b", b"c"], keys=["k", None, "l"]), Skip())
    assert (list(rows.values), list(rows.keys)) == ([b"a", b"c"], [b"k", b"l"])
    assert rig.counted["records_skipped"] == 1


def test_r30_a_timestamp_outside_the_topics_window_is_caught(place: str, topic: TopicFactory) -> None:
    window = {"message.timestamp.before.max.ms": "86400000", "message.timestamp.after.max.ms": "3600000"}
    rig, name = Rig(place), topic(config=window)
    sink = KafkaSink(name, Bytes())
    day_ms = 86_400_000
    times = [NOW, NOW - 2 * day_ms, NOW + 2 * 3_600_000, NOW - day_ms // 2, NO_TIMESTAMP]
    (rows,) = encoded(rig, sink, batch([b"a", b"old", b"new", b"b", b"c"], timestamps=times), Skip())
    assert list(rows.values) == [b"a", b"b", b"c"]
    with pytest.raises(BadRecord, match=r"message.timestamp.before.max.ms of 86400000"):
        encoded(rig, sink, batch([b"old"], timestamps=[NOW - 2 * day_ms]))
    with pytest.raises(BadRecord, match=r"message.timestamp.after.max.ms of 3600000"):
        encoded(rig, sink, batch([b"new"], timestamps=[NOW + 2 * 3_600_000]))


def test_r30_log_append_time_takes_any_timestamp(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic(config={"message.timestamp.type": "LogAppendTime"})
    (rows,) = encoded(rig, KafkaSink(name, Bytes()), batch([b"a"], timestamps=[NOW + 10**9]))
    publisher = rig.publisher(name)
    publisher.take_over()
    publisher.send(marker(1, 1), [rows])
    assert publisher.take_over() == marker(1, 1)
    publisher.close()


def test_r30_an_unknown_partition_is_caught(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic(partitions=2)
    sink = KafkaSink(name, Bytes(), partition=lambda value: int(value))
    (rows,) = encoded(rig, sink, batch([b"0", b"1"]))
    assert list(rows.partitions) == [0, 1]
    with pytest.raises(BadRecord, match="partition 2 does not exist: the topic has 2"):
        encoded(rig, sink, batch([b"0", b"2"]))


def test_a_pass_through_keeps_key_headers_and_timestamp(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic()
    sink = KafkaSink.with_tombstones(name, Bytes())
    records = batch(
        [b"a", None, b""],
        keys=[b"k", b"", None],
        headers=[(("a", b"1"), ("a", b"2"), ("b", None)), (), ()],
        timestamps=[NOW, NOW + 1, NOW + 2],
    )
    sink.check(rig.sink_context())  # makes the marker topic where it is missing
    publisher = sink.publisher(rig.sink_context(), rig.identity())
    publisher.take_over()
    publisher.send(marker(1, 3), encoded(rig, sink, records))
    assert publisher.wait_visible(20_000)
    publisher.close()
    read = read_committed(place, name)
    assert values(read) == [b"a", None, b""]
    assert [record.key() for record in read] == [b"k", b"", None]
    assert [record.headers() for record in read] == [[("a", b"1"), ("a", b"2"), ("b", None)], None, None]
    assert [record.timestamp()[1] for record in read] == [NOW, NOW + 1, NOW + 2]


@pytest.mark.kafka
def test_compressed_rows_arrive_as_they_were(kafka: str, topic: TopicFactory) -> None:
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        rig, name = Rig(kafka, producer={"compression": codec}), topic()
        publisher = rig.publisher(name)
        publisher.take_over()
        rows = [b"%d" % n * 10 for n in range(100)]
        publisher.send(marker(1, 100), [block(name, rows)])
        assert publisher.wait_visible(20_000)
        assert values(read_committed(kafka, name)) == rows
        publisher.close()
