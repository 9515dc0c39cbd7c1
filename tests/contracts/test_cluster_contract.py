"""Transactions, as the seam ``connectors/kafka/cluster.py`` promises them, on a real Kafka and a simulated one.

One suite for both keeps the simulation honest: what production code sees of the one, it sees of the other, down
to the names of errors. Reading and groups have suites beside this one.
"""

from __future__ import annotations

from typing import Any

import pytest

from connectors.kafka.cluster import OffsetAt, Partition
from processor.errors import Retriable
from processor.records.rows import RowBlock
from tests.contracts.cluster_rigs import TIMEOUT_MS, Lab, refusal, rows, stored

FENCED = ("Retriable", "_FENCED")

EXPIRING_MS = 1_500

SOON_EXPIRED = pytest.mark.parametrize(
    "lab",
    [pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow]), "simulated", "slow-markers"],
    indirect=True,
)
"""A real broker looks for expired transactions every ten seconds."""


def ends(lab: Lab, topic: str, partition: int = 0) -> tuple[int, int]:
    """Last stable offset and high watermark."""
    at = Partition(topic, partition)
    stable = lab.cluster.offsets([at], OffsetAt.COMMITTED_END)[at]
    return stable, lab.cluster.offsets([at], OffsetAt.END)[at]


def wait_stable(lab: Lab, topic: str, end: int) -> None:
    lab.place.until(lambda: ends(lab, topic) == (end, end), f"{topic} is stable at {end}")


def test_r15_a_commit_becomes_visible_as_a_whole(lab: Lab) -> None:
    topic = lab.topic()
    lab.committed(lab.id(), topic, b"a", b"b")
    assert lab.values(topic, 3) == [b"a", b"b"]
    assert ends(lab, topic) == (3, 3), "behind the records lies a control record"


def test_r11_what_an_abandoned_producer_sent_is_never_seen(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    lab.sent(name, topic, b"gone").abandon()
    lab.committed(name, topic, b"kept")
    assert lab.values(topic, 4) == [b"kept"]


def test_an_open_transaction_holds_the_last_stable_offset(lab: Lab) -> None:
    topic = lab.topic()
    lab.place.write(Partition(topic, 0), [b"before"])
    producer = lab.sent(lab.id(), topic, b"open")
    lab.place.write(Partition(topic, 0), [b"behind"])
    assert ends(lab, topic) == (1, 3)
    producer.commit(TIMEOUT_MS)
    wait_stable(lab, topic, 4)


def test_r11_a_producer_left_open_blocks_until_it_is_taken_over(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    lab.sent(name, topic, b"left open")
    assert ends(lab, topic) == (0, 1)
    lab.ready(name)
    wait_stable(lab, topic, 2)
    assert lab.values(topic, 2) == []


def test_r11_taking_over_shuts_out_the_commit_of_the_earlier(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    zombie = lab.sent(name, topic, b"zombie")
    lab.ready(name)
    assert refusal(lambda: zombie.commit(TIMEOUT_MS)) == FENCED
    assert refusal(lambda: zombie.commit(TIMEOUT_MS)) == FENCED
    assert refusal(lambda: zombie.flush(100)) == FENCED
    assert refusal(zombie.begin) == FENCED
    assert refusal(lambda: zombie.produce(rows(topic, b"z"), TIMEOUT_MS)) == ("Retriable", "_FATAL")
    assert list(zombie.failures()) == []
    wait_stable(lab, topic, 2)
    assert lab.values(topic, 2) == []


@pytest.mark.parametrize("partition", [0, 1])
def test_r11_taking_over_shuts_out_further_rows_of_the_earlier(lab: Lab, partition: int) -> None:
    """In a partition that it has written to, and in another one."""
    topic, name = lab.topic(partitions=2), lab.id()
    zombie = lab.sent(name, topic, b"zombie")
    lab.ready(name)

    def send_more() -> None:
        zombie.produce(rows(topic, b"more", partition=partition), TIMEOUT_MS)
        zombie.flush(TIMEOUT_MS)

    assert refusal(send_more) == FENCED
    # Told at once or later; whichever it is, another try is the answer.
    assert {each.name for each in zombie.failures()} <= {"INVALID_PRODUCER_EPOCH", "_PURGE_QUEUE"}
    assert refusal(lambda: zombie.commit(TIMEOUT_MS)) == FENCED
    assert lab.values(topic, 2) == []


def test_r11_taking_over_shuts_out_the_marker_of_the_earlier(lab: Lab) -> None:
    name = lab.id()
    group = lab.group(name)
    zombie = lab.begun(name)
    lab.ready(name)
    offsets = {lab.marker_at: stored(1, "zombie")}
    assert refusal(lambda: zombie.send_offsets(offsets, group.identity(), TIMEOUT_MS)) == FENCED
    assert refusal(lambda: zombie.commit(TIMEOUT_MS)) == FENCED
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: None}


def test_r14_a_zombie_that_takes_over_again_shuts_us_out_in_turn(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    current = lab.begun(name)
    lab.ready(name)

    def publish() -> None:
        current.produce(rows(topic, b"mine"), TIMEOUT_MS)
        current.flush(TIMEOUT_MS)

    assert refusal(publish) == FENCED


def test_r12_taking_over_raises_the_epoch_by_one_and_by_two_over_an_open_transaction(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    states = []
    for _ in range(3):
        lab.ready(name)
        states.append(lab.place.state(name))
    producer_id = states[0][1]
    assert states == [("Empty", producer_id, epoch) for epoch in (0, 1, 2)]
    lab.sent(name, topic, b"open")
    assert lab.place.state(name) == ("Ongoing", producer_id, 3)
    last = lab.begun(name)
    assert lab.place.state(name) == ("Empty", producer_id, 5)
    last.produce(rows(topic, b"kept"), TIMEOUT_MS)
    last.commit(TIMEOUT_MS)
    lab.place.until(lambda: lab.place.state(name) == ("CompleteCommit", producer_id, 5), "it is complete")


def test_r11_taking_over_completes_a_commit_already_begun(lab: Lab) -> None:
    """The commit is answered before it has reached everybody; who takes over then finds all of it."""
    topic, name = lab.topic(partitions=3), lab.id()
    group = lab.group(name)
    for checkpoint in range(1, 6):
        producer = lab.begun(name)
        producer.produce(rows(topic, *[b"%d" % n for n in range(9)], partition=checkpoint % 3), TIMEOUT_MS)
        producer.send_offsets({lab.marker_at: stored(checkpoint)}, group.identity(), TIMEOUT_MS)
        producer.commit(TIMEOUT_MS)
        lab.ready(name)
        assert group.read([lab.marker_at], TIMEOUT_MS)[lab.marker_at].offset == checkpoint


def test_an_empty_transaction_is_committed_without_a_word(lab: Lab) -> None:
    name = lab.id()
    producer = lab.begun(name)
    producer.commit(TIMEOUT_MS)
    assert lab.place.state(name)[0] == "Empty"


def test_r12_one_producer_may_send_several_transactions(lab: Lab) -> None:
    """Possible, and dangerous: nothing but the rule keeps the publisher from it."""
    topic, name = lab.topic(), lab.id()
    producer = lab.ready(name)
    for value in (b"a", b"b"):
        producer.begin()
        producer.produce(rows(topic, value, partition=0), TIMEOUT_MS)
        producer.commit(TIMEOUT_MS)
    assert lab.values(topic, 4) == [b"a", b"b"]


@SOON_EXPIRED
def test_an_expired_transaction_is_aborted_silently(lab: Lab) -> None:
    topic = lab.topic()
    lab.settings = lab.place.settings(transaction_timeout=f"{EXPIRING_MS}ms", publish_timeout="1s")
    lab.cluster = lab.settings.open("main")
    names = [lab.id() for _ in range(3)]
    first, second, third = [lab.sent(name, topic, b"late", timeout_ms=EXPIRING_MS) for name in names]
    producer_id = lab.place.state(names[0])[1]
    lab.place.until(
        lambda: all(lab.place.state(name)[0] == "CompleteAbort" for name in names), "all are expired"
    )
    assert lab.place.state(names[0]) == ("CompleteAbort", producer_id, 1)
    assert first.flush(1_000) == 0, "nobody tells the producer"
    assert list(first.failures()) == []
    assert refusal(lambda: first.commit(TIMEOUT_MS)) == FENCED

    def send_more() -> None:
        second.produce(rows(topic, b"more", partition=0), TIMEOUT_MS)
        second.flush(TIMEOUT_MS)

    assert refusal(send_more) == FENCED
    group = lab.group(names[2])
    offsets = {lab.marker_at: stored(1)}
    assert refusal(lambda: third.send_offsets(offsets, group.identity(), TIMEOUT_MS)) == FENCED
    wait_stable(lab, topic, 6)
    lab.ready(names[0])
    assert lab.place.state(names[0]) == ("Empty", producer_id, 2)


def test_a_transaction_aborted_from_outside_cannot_be_committed(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    producer = lab.sent(name, topic, b"lost")
    lab.place.end_from_outside(name, commit=False)
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == ("Retriable", "INVALID_TXN_STATE")
    assert lab.values(topic, 2) == []


def test_r19_rows_after_an_abort_from_outside_fail_one_by_one(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    producer = lab.sent(name, topic, b"lost")
    lab.place.end_from_outside(name, commit=False)
    producer.produce(rows(topic, b"x", b"y", partition=0), TIMEOUT_MS)
    lab.place.until(lambda: producer.flush(100) == 0 or producer.failures(), "the answer is there")
    assert {each.name for each in producer.failures()} == {"INVALID_TXN_STATE"}
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == ("Retriable", "INVALID_TXN_STATE")


def test_r12_a_repeated_commit_does_nothing_more(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    producer = lab.sent(name, topic, b"once")
    lab.place.end_from_outside(name, commit=True)
    producer.commit(TIMEOUT_MS)
    assert lab.values(topic, 2) == [b"once"]


REFUSED: dict[str, tuple[dict[str, str], dict[str, Any], tuple[str, str]]] = {
    "size": (
        {"max.message.bytes": "2000"},
        {"values": [b"a", b"x" * 5_000]},
        ("TooLarge", "MSG_SIZE_TOO_LARGE"),
    ),
    "null-key": (
        {"cleanup.policy": "compact"},
        {"values": [b"a", b"b"], "keys": [b"k", None]},
        ("ExternalRefusal", "INVALID_RECORD"),
    ),
    "time": (
        {"message.timestamp.after.max.ms": "1000"},
        {"values": [b"a", b"b"], "timestamps": [1, 10_000_000]},
        ("ExternalRefusal", "INVALID_TIMESTAMP"),
    ),
}


@pytest.mark.parametrize("why", sorted(REFUSED))
def test_r30_what_is_refused_for_ever_takes_its_request_along(lab: Lab, why: str) -> None:
    config, columns, error = REFUSED[why]
    topic, name = lab.topic(config=config), lab.id()
    if "timestamps" in columns:
        columns = {**columns, "timestamps": [lab.place.now_ms() + more for more in columns["timestamps"]]}
    group, producer = lab.group(name), lab.begun(name)
    producer.produce(RowBlock(topic=topic, **columns), TIMEOUT_MS)
    assert producer.flush(TIMEOUT_MS) == 0
    assert [(each.name, each.topic, each.value) for each in producer.failures()] == [
        (error[1], topic, value) for value in columns["values"]
    ]
    assert refusal(lambda: producer.produce(rows(topic, b"y"), TIMEOUT_MS)) == ("Retriable", "_STATE")
    offsets = {lab.marker_at: stored(1)}
    assert refusal(lambda: producer.send_offsets(offsets, group.identity(), TIMEOUT_MS)) == error
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == error
    producer.abandon()
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: None}
    # Whether the abort leaves a mark where nothing was stored, and when, is the broker's business.
    lab.place.until(lambda: len(set(ends(lab, topic))) == 1, f"{topic} is stable")
    assert lab.values(topic, ends(lab, topic)[1]) == []


def test_r30_a_partition_that_is_not_there_fails_its_row_and_the_commit(lab: Lab) -> None:
    topic = lab.topic()
    producer = lab.begun(lab.id())
    producer.produce(rows(topic, b"x", partition=7), TIMEOUT_MS)
    assert producer.flush(TIMEOUT_MS) == 0
    assert [(each.name, each.value) for each in producer.failures()] == [("_UNKNOWN_PARTITION", b"x")]
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == ("Retriable", "_INCONSISTENT")


def test_r30_rows_for_a_topic_that_is_not_there_stay_in_the_client(lab: Lab) -> None:
    producer = lab.begun(lab.id())
    producer.produce(rows("no-such-topic", b"x"), TIMEOUT_MS)
    assert producer.flush(1_000) == 1
    assert list(producer.failures()) == []


def test_a_transaction_longer_than_brokers_allow_is_refused(lab: Lab) -> None:
    producer = lab.producer(lab.id(), timeout_ms=1_000_000_000)
    assert refusal(lambda: producer.initialise(TIMEOUT_MS)) == (
        "ExternalRefusal",
        "INVALID_TRANSACTION_TIMEOUT",
    )


def test_calls_in_a_wrong_order_are_refused(lab: Lab) -> None:
    topic = lab.topic()
    wrong = ("Retriable", "_STATE")
    assert refusal(lab.producer(lab.id()).begin) == wrong
    ready = lab.ready(lab.id())
    assert refusal(lambda: ready.produce(rows(topic, b"x"), TIMEOUT_MS)) == wrong
    assert refusal(lambda: ready.commit(TIMEOUT_MS)) == wrong
    abandoned = lab.begun(lab.id())
    abandoned.abandon()
    abandoned.abandon()
    with pytest.raises(Retriable, match="was abandoned"):
        abandoned.commit(TIMEOUT_MS)


def test_keys_go_where_kafkas_own_clients_send_them(lab: Lab) -> None:
    from tests.contracts.test_kafka_partitioner import murmur2

    topic, partitions = lab.topic(partitions=7), 7
    keys = [b"user-%d" % n for n in range(50)] + [b"a", b"ab", b"abc", b"abcd", "鍵".encode(), b"x" * 300]
    producer = lab.begun(lab.id())
    producer.produce(RowBlock(topic=topic, values=keys, keys=keys), TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    for number in range(partitions):
        expected = [key for key in keys if (murmur2(key) & 0x7FFFFFFF) % partitions == number]
        end = len(expected) + 1 if expected else 0
        assert lab.values(topic, end, number) == expected


def test_a_row_may_name_its_partition(lab: Lab) -> None:
    topic = lab.topic(partitions=3)
    producer = lab.begun(lab.id())
    producer.produce(
        rows(topic, b"a", b"b", b"c", b"d", keys=[b"k"] * 4, partitions=[2, 0, 2, 1]), TIMEOUT_MS
    )
    producer.commit(TIMEOUT_MS)
    assert lab.values(topic, 2, 0) == [b"b"]
    assert lab.values(topic, 2, 1) == [b"d"]
    assert lab.values(topic, 3, 2) == [b"a", b"c"]


def test_rows_without_a_key_all_arrive_somewhere(lab: Lab) -> None:
    topic = lab.topic(partitions=3)
    values = [b"%d" % n for n in range(100)]
    for _ in range(2):
        producer = lab.begun(lab.id())
        producer.produce(rows(topic, *values), TIMEOUT_MS)
        producer.commit(TIMEOUT_MS)

    def stable() -> bool:
        return all(len(set(ends(lab, topic, number))) == 1 for number in range(3))

    lab.place.until(stable, "all partitions are stable")
    written = [lab.values(topic, ends(lab, topic, number)[1], number) for number in range(3)]
    assert sorted(value or b"" for found in written for value in found) == sorted(values + values)


def test_columns_arrive_as_they_were(lab: Lab) -> None:
    topic = lab.topic(config={"retention.ms": "-1"})
    producer = lab.begun(lab.id())
    block = RowBlock(
        topic=topic,
        values=[b"a", None, b"", b"d"],
        keys=[None, b"", b"k", b""],
        timestamps=[0, -1, 5, 6],
        headers=[(), (("h", None), ("h", b"")), (), ()],
    )
    producer.produce(block, TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    messages = lab.read_to_end(lab.reader(topic), 5)
    assert [message.value() for message in messages] == [b"a", None, b"", b"d"]
    assert [message.key() for message in messages] == [None, b"", b"k", b""]
    assert [message.headers() or None for message in messages] == [
        None,
        [("h", None), ("h", b"")],
        None,
        None,
    ]
    times = [message.timestamp() for message in messages]
    assert [times[0], times[2], times[3]] == [(1, 1), (1, 5), (1, 6)], "0 means now, and is sent as 1"
    assert abs(times[1][1] - lab.place.now_ms()) < 600_000, "none means now"
    assert [message.offset() for message in messages] == [0, 1, 2, 3]
    assert {message.leader_epoch() for message in messages} == {0}


def test_a_topic_may_set_times_itself(lab: Lab) -> None:
    topic = lab.topic(config={"message.timestamp.type": "LogAppendTime"})
    producer = lab.begun(lab.id())
    producer.produce(rows(topic, b"a", timestamps=[10]), TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    (message,) = lab.read_to_end(lab.reader(topic), 2)
    kind, time_ms = message.timestamp()
    assert kind == 2
    assert abs(time_ms - lab.place.now_ms()) < 600_000


def test_r13_rows_of_one_partition_keep_their_order_over_many_blocks(lab: Lab) -> None:
    topic = lab.topic()
    producer = lab.begun(lab.id())
    for start in range(0, 3_000, 500):
        producer.produce(rows(topic, *[b"%d" % n for n in range(start, start + 500)]), TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    assert lab.values(topic, 3_001) == [b"%d" % n for n in range(3_000)]
