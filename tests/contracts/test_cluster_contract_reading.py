"""Reading, as the seam promises it, on a real Kafka and a simulated one: records, ends, positions, topics."""

from __future__ import annotations

import pytest

from connectors.kafka.cluster import OffsetAt, Partition
from tests.contracts.cluster_rigs import TIMEOUT_MS, Lab, refusal, rows

EOF = "_PARTITION_EOF"
LOST = "_AUTO_OFFSET_RESET"


def test_records_come_in_order_and_then_the_end(lab: Lab) -> None:
    topic = lab.topic()
    lab.place.write(Partition(topic, 0), [b"a", None, b"c"])
    reader = lab.reader(topic)
    messages = lab.read_to_end(reader, 3)
    assert [(m.topic(), m.partition(), m.offset(), m.value()) for m in messages] == [
        (topic, 0, 0, b"a"),
        (topic, 0, 1, None),
        (topic, 0, 2, b"c"),
    ]
    assert all(message.error() is None for message in messages)
    lab.nothing_comes(reader)


def test_the_end_is_told_once_and_again_after_more(lab: Lab) -> None:
    topic = lab.topic()
    at = Partition(topic, 0)
    reader = lab.reader(topic)
    assert lab.next_event(reader) == (EOF, 0)
    lab.nothing_comes(reader)
    lab.place.write(at, [b"a"])
    assert [message.value() for message in lab.read_to_end(reader, 1)] == [b"a"]
    lab.nothing_comes(reader)


def test_case_17_the_end_lies_behind_control_records_and_aborted_ones(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    lab.committed(name, topic, b"kept")
    lab.sent(name, topic, b"gone").abandon()
    reader = lab.reader(topic)
    assert [message.value() for message in lab.read_to_end(reader, 4)] == [b"kept"]
    lab.nothing_comes(reader)


def test_read_committed_waits_for_open_transactions_and_what_is_behind_them(lab: Lab) -> None:
    topic = lab.topic()
    at = Partition(topic, 0)
    lab.place.write(at, [b"before"])
    reader = lab.reader(topic)
    assert [message.value() for message in lab.read_to_end(reader, 1)] == [b"before"]
    producer = lab.sent(lab.id(), topic, b"open")
    lab.place.write(at, [b"behind"])
    lab.nothing_comes(reader)
    producer.commit(TIMEOUT_MS)
    assert [message.value() for message in lab.read_to_end(reader, 4)] == [b"open", b"behind"]


def test_a_reader_takes_no_more_than_it_asks_for(lab: Lab) -> None:
    topic = lab.topic()
    lab.place.write(Partition(topic, 0), [b"%d" % n for n in range(50)])
    reader = lab.reader(topic)
    read: list[bytes | None] = []

    def more() -> bool:
        messages = reader.consume(7, 50)
        assert len(messages) <= 8, "seven, and the end"
        read.extend(message.value() for message in messages if message.error() is None)
        return len(read) == 50

    lab.place.until(more, "all are read")
    assert read == [b"%d" % n for n in range(50)]


@pytest.mark.parametrize(
    ("start", "told"),
    [(0, (EOF, 3)), (2, (EOF, 3)), (3, (EOF, 3)), (4, None), (5, None), (6, (LOST, 6))],
)
def test_positions_around_the_last_stable_offset_and_the_high_watermark(
    lab: Lab, start: int, told: tuple[str, int] | None
) -> None:
    topic = lab.topic()
    lab.place.write(Partition(topic, 0), [b"a", b"b", b"c"])
    producer = lab.sent(lab.id(), topic, b"open", b"open")
    reader = lab.reader(topic, start)
    if told is None:
        lab.nothing_comes(reader)
        producer.commit(TIMEOUT_MS)
        assert lab.next_event(reader) == (EOF, 6), "reachable once the transaction is committed"
    else:
        assert lab.next_event(reader) == told


def test_case_20_a_position_below_the_low_watermark_is_told_once(lab: Lab) -> None:
    topic = lab.topic()
    at = Partition(topic, 0)
    lab.place.write(at, [b"a", b"b", b"c"])
    lab.place.delete_records(at, 2)
    assert lab.cluster.offsets([at], OffsetAt.EARLIEST) == {at: 2}
    reader = lab.reader(topic, 1)
    assert lab.next_event(reader) == (LOST, 1)
    lab.nothing_comes(reader)
    reader.unassign([at])
    reader.assign({at: (2, -1)})
    assert [message.value() for message in lab.read_to_end(reader, 3)] == [b"c"]


def test_a_position_from_a_later_leader_epoch_is_lost(lab: Lab) -> None:
    topic = lab.topic()
    lab.place.write(Partition(topic, 0), [b"a"])
    assert lab.next_event(lab.reader(topic, 0, epoch=5)) == (LOST, 0)


def test_a_paused_partition_is_silent_and_goes_on_where_it_was(lab: Lab) -> None:
    topic = lab.topic(partitions=2)
    first, second = Partition(topic, 0), Partition(topic, 1)
    reader = lab.cluster.consumer("contract")
    reader.assign({first: (0, -1), second: (0, -1)})
    reader.pause([first])
    for at in (first, second):
        lab.place.write(at, [b"%d" % at.number] * 3)
    seen: list[int | None] = []

    def all_of_the_other() -> bool:
        messages = reader.consume(100, 50)
        seen.extend(m.partition() for m in messages if m.error() is None)
        return len(seen) >= 3

    lab.place.until(all_of_the_other, "the other is read")
    assert seen == [1, 1, 1]
    reader.resume([first])
    assert [m.value() for m in lab.read_to_end(reader, 3, partition=0)] == [b"0"] * 3
    reader.pause([first])
    reader.resume([first])
    assert lab.next_event(reader) == (EOF, 3), "after a pause the end is told again"
    reader.close()


def test_partitions_may_be_given_up_and_taken_again_elsewhere(lab: Lab) -> None:
    topic = lab.topic()
    at = Partition(topic, 0)
    lab.place.write(at, [b"a", b"b"])
    reader = lab.reader(topic)
    lab.read_to_end(reader, 2)
    reader.unassign([at])
    lab.place.write(at, [b"c"])
    lab.nothing_comes(reader)
    reader.assign({at: (1, -1)})
    assert [message.value() for message in lab.read_to_end(reader, 3)] == [b"b", b"c"]


def test_of_topics_that_are_not_there_a_reader_hears_nothing(lab: Lab) -> None:
    topic = lab.topic()
    reader = lab.cluster.consumer("contract")
    reader.assign({Partition("no-such-topic", 0): (0, -1), Partition(topic, 7): (0, -1)})
    lab.nothing_comes(reader)
    reader.close()


def test_a_topic_deleted_while_it_is_read_is_silent_and_made_anew_has_lost_the_position(lab: Lab) -> None:
    topic = lab.topic()
    lab.place.write(Partition(topic, 0), [b"a", b"b"])
    reader = lab.reader(topic)
    lab.read_to_end(reader, 2)
    lab.place.remake(topic)
    assert lab.next_event(reader) == (LOST, 2)


def test_offsets_by_time(lab: Lab) -> None:
    topic = lab.topic(partitions=2, config={"retention.ms": "-1"})
    first, second = Partition(topic, 0), Partition(topic, 1)
    lab.place.write(first, [b"a", b"b", b"c", b"d"], timestamps=[1_000, 3_000, 2_000, 4_000])
    expected = {0: 0, 1_000: 0, 1_001: 1, 2_500: 1, 3_000: 1, 3_001: 3, 4_000: 3, 4_001: None}
    for time_ms, offset in expected.items():
        assert lab.cluster.offsets_from([first, second], time_ms) == {first: offset, second: None}


def test_offsets_by_time_count_what_is_open_or_aborted(lab: Lab) -> None:
    topic = lab.topic(config={"retention.ms": "-1"})
    at = Partition(topic, 0)
    lab.place.write(at, [b"a"], timestamps=[1_000])
    producer = lab.begun(lab.id())
    producer.produce(rows(topic, b"b", timestamps=[2_000]), TIMEOUT_MS)
    assert producer.flush(TIMEOUT_MS) == 0
    assert lab.cluster.offsets_from([at], 1_500) == {at: 1}
    producer.abandon()
    lab.place.until(lambda: lab.cluster.offsets([at], OffsetAt.COMMITTED_END) == {at: 3}, "it is aborted")
    assert lab.cluster.offsets_from([at], 1_500) == {at: 1}
    assert lab.cluster.offsets_from([at], 2_001) == {at: 2}, "the control record has the time of the abort"


def test_offsets_of_what_is_not_there(lab: Lab) -> None:
    topic = lab.topic()
    for at in (Partition("no-such-topic", 0), Partition(topic, 9)):
        for call in (
            lambda at=at: lab.cluster.offsets([at], OffsetAt.END),
            lambda at=at: lab.cluster.offsets_from([at], 0),
        ):
            assert refusal(call) == ("Retriable", "_NOENT")
    assert lab.cluster.offsets([], OffsetAt.END) == {}


def test_topics_are_described(lab: Lab) -> None:
    topic = lab.topic(partitions=3)
    found = lab.cluster.describe([topic, "no-such-topic"])
    assert set(found) == {topic}
    assert found[topic].partitions == 3
    assert found[topic].topic_id
    may = found[topic].may
    assert may is not None
    assert may >= {"READ", "WRITE", "DESCRIBE"}
    assert topic in lab.cluster.topic_names()
    assert lab.cluster.describe([]) == {}
    assert lab.cluster.cluster_id()


def test_r15_a_topic_made_anew_has_another_id(lab: Lab) -> None:
    topic = lab.topic()
    before = lab.cluster.describe([topic])[topic].topic_id
    assert lab.cluster.describe([topic])[topic].topic_id == before
    lab.place.remake(topic)
    assert lab.cluster.describe([topic])[topic].topic_id != before
    lab.place.delete_topic(topic)
    lab.place.until(lambda: lab.cluster.describe([topic]) == {}, "it is gone")


def test_case_33_partitions_are_added(lab: Lab) -> None:
    topic = lab.topic()
    before = lab.cluster.describe([topic])[topic]
    lab.place.add_partitions(topic, 3)
    after = lab.cluster.describe([topic])[topic]
    assert (after.partitions, after.topic_id) == (3, before.topic_id)
    lab.place.write(Partition(topic, 2), [b"x"])
    assert lab.values(topic, 1, 2) == [b"x"]


def test_topics_are_made_once(lab: Lab) -> None:
    topic = f"{lab.topic()}-made"
    lab.cluster.create_topic(topic, 2)
    lab.cluster.create_topic(topic, 5)
    assert lab.cluster.describe([topic])[topic].partitions == 2
    assert refusal(lambda: lab.cluster.create_topic("a/b", 1)) == ("ExternalRefusal", "TOPIC_EXCEPTION")


def test_a_topics_configuration_is_told(lab: Lab) -> None:
    topic = lab.topic(config={"max.message.bytes": "2000", "cleanup.policy": "compact,delete"})
    config = lab.cluster.topic_config(topic)
    assert config is not None
    assert (config["max.message.bytes"], config["cleanup.policy"]) == ("2000", "compact,delete")
    assert config["message.timestamp.type"] == "CreateTime"
    assert refusal(lambda: lab.cluster.topic_config("no-such-topic")) == (
        "ExternalRefusal",
        "UNKNOWN_TOPIC_OR_PART",
    )


def test_brokers_tell_what_is_checked_at_the_start(lab: Lab) -> None:
    config = lab.cluster.broker_config()
    assert config is not None
    assert config["transaction.partition.verification.enable"] == "true"
    assert config["transaction.max.timeout.ms"] == "900000"
    assert config["offsets.retention.minutes"] == "10080"


@pytest.mark.kafka
def test_a_simulated_topic_has_the_defaults_of_a_real_one(kafka: str) -> None:
    from connectors.kafka.dev_jars import DEFAULT_VERSION
    from connectors.kafka.simulated_broker import BROKER_DEFAULTS
    from connectors.kafka.simulated_topics import TOPIC_DEFAULTS
    from tests.contracts.cluster_rigs import RealPlace

    if not DEFAULT_VERSION.startswith("4."):
        pytest.skip("the simulated cluster has the defaults of Kafka 4")
    place = RealPlace(kafka)
    cluster = place.settings().open("main")
    real = cluster.topic_config(place.topic())
    assert real is not None
    ours = {**TOPIC_DEFAULTS, "retention.ms": "-1"}  # brokers for development keep what is of long ago
    assert {name: real.get(name) for name in TOPIC_DEFAULTS} == ours
    real = cluster.broker_config()
    assert real is not None
    assert {name: real.get(name) for name in BROKER_DEFAULTS} == dict(BROKER_DEFAULTS)
    cluster.close()
