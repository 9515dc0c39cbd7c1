"""A publisher on a real broker: rows and marker together, once, in order, whoever died before (R10-R19)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException

from processor.errors import ExternalRefusal, LogConflict, PublishRefused, Retriable, TooLarge
from processor.fault_points import FaultPoint
from tests.contracts.kafka_rig import Rig, block, marker, read_committed, values
from tests.topics import TopicFactory
from tests.waiting import wait_until


class CommitAnswerLost(Exception):
    """What a test's fault hook raises in place of the answer."""


def raising_at(point: FaultPoint):
    def hook(reached: FaultPoint) -> None:
        if reached is point:
            raise CommitAnswerLost(point)

    return hook


def test_an_identity_that_never_published_has_no_marker(place: str, topic: TopicFactory) -> None:
    publisher = Rig(place).publisher(topic())
    assert publisher.look() is None
    assert publisher.take_over() is None
    publisher.close()


def test_r15_marker_and_rows_become_visible_together(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out")
    publisher = rig.publisher(out)
    publisher.take_over()
    publisher.send(marker(7, 3), [block(out, [b"a", b"b"]), block(out, [b"c"])])
    assert publisher.wait_visible(20_000)
    assert publisher.take_over() == marker(7, 3)
    assert publisher.look() == marker(7, 3)
    assert values(read_committed(place, out)) == [b"a", b"b", b"c"]
    publisher.close()


@pytest.mark.parametrize("point", [FaultPoint.HALF_SENT, FaultPoint.ALL_SENT_NOT_COMMITTED])
def test_r15_neither_marker_nor_rows_of_an_unfinished_publish_are_seen(
    place: str, topic: TopicFactory, point: FaultPoint
) -> None:
    rig, out = Rig(place), topic("out")
    first = rig.publisher(out)
    first.take_over()
    first.send(marker(1, 0), [])
    failing = rig.publisher(out, faults=raising_at(point))
    failing.take_over()
    with pytest.raises(CommitAnswerLost):
        failing.send(marker(2, 2), [block(out, [b"never", b"seen"])])
    assert first.take_over() == marker(1, 0)
    first.send(marker(2, 2), [block(out, [b"once", b"only"])])
    assert first.wait_visible(20_000)
    assert values(read_committed(place, out)) == [b"once", b"only"]
    first.close()
    failing.close()


def test_case_07_an_empty_transaction_moves_the_marker_only(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out")
    publisher = rig.publisher(out)
    for checkpoint in (1, 2, 3):
        publisher.take_over()
        publisher.send(marker(checkpoint, 0), [])
    publisher.take_over()
    publisher.send(marker(4, 5), [block(out, [b"1", b"2", b"3", b"4", b"5"])])
    for checkpoint in (5, 6):
        publisher.take_over()
        publisher.send(marker(checkpoint, 0), [])
    assert publisher.take_over() == marker(6, 0)
    assert publisher.wait_visible(20_000)
    assert values(read_committed(place, out)) == [b"1", b"2", b"3", b"4", b"5"]
    publisher.close()


def test_r11_a_publisher_that_was_shut_out_cannot_send(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out")
    zombie, current = rig.publisher(out), rig.publisher(out)
    zombie.take_over()
    assert current.take_over() is None
    with pytest.raises(Retriable):
        zombie.send(marker(1, 1), [block(out, [b"zombie"])])
    current.send(marker(1, 1, attempt=2), [block(out, [b"current"])])
    assert zombie.take_over() == marker(1, 1, attempt=2)
    assert current.wait_visible(20_000)
    assert values(read_committed(place, out)) == [b"current"]
    zombie.close()
    current.close()


@pytest.mark.kafka
def test_r11_taking_over_ends_what_a_dead_publisher_left_open(kafka: str, topic: TopicFactory) -> None:
    rig, out = Rig(kafka), topic("out")
    current = rig.publisher(out)
    current.take_over()
    dead = rig.producer(**{"transactional.id": str(rig.identity()), "transaction.timeout.ms": 600_000})
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(out, b"left open")
    assert dead.flush(30) == 0
    assert current.take_over() is None
    current.send(marker(1, 1), [block(out, [b"mine"])])
    assert current.wait_visible(20_000), "readers are not blocked by the dead one's transaction"
    assert values(read_committed(kafka, out)) == [b"mine"]
    with pytest.raises(KafkaException):
        dead.commit_transaction(30)
    current.close()


def test_r11_a_lost_commit_answer_is_resolved_by_taking_over_and_reading(
    place: str, topic: TopicFactory
) -> None:
    rig, out = Rig(place), topic("out")
    publisher = rig.publisher(out, faults=raising_at(FaultPoint.COMMIT_SENT_ANSWER_NOT_SEEN))
    publisher.take_over()
    with pytest.raises(CommitAnswerLost):
        publisher.send(marker(3, 2), [block(out, [b"x", b"y"])])
    assert publisher.take_over() == marker(3, 2), "it was committed: there is nothing to send again"
    assert publisher.wait_visible(20_000)
    assert values(read_committed(place, out)) == [b"x", b"y"]
    publisher.close()


def test_r12_an_old_producer_is_never_used_twice(place: str, topic: TopicFactory) -> None:
    from processor.errors import EngineBug

    rig, out = Rig(place), topic("out")
    publisher = rig.publisher(out)
    publisher.take_over()
    publisher.send(marker(1, 0), [])
    with pytest.raises(EngineBug, match="send comes after take_over, once"):
        publisher.send(marker(2, 0), [])
    publisher.close()


def test_r13_rows_keep_their_order_over_many_transactions(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out", partitions=3)
    publisher = rig.publisher(out)
    number = 0
    for checkpoint in range(1, 21):
        publisher.take_over()
        rows = [b"%d" % n for n in range(number, number + 1_500)]
        keys = [b"key-%d" % (n % 7) for n in range(number, number + 1_500)]
        blocks = [block(out, rows[i : i + 400], keys=keys[i : i + 400]) for i in range(0, 1_500, 400)]
        publisher.send(marker(checkpoint, 1_500), blocks)
        number += 1_500
    assert publisher.wait_visible(20_000)
    records = read_committed(place, out, 3)
    assert len(records) == number
    by_key: dict[bytes, list[int]] = {}
    for record in records:
        by_key.setdefault(record.key(), []).append(int(record.value()))
    assert all(seen == sorted(seen) for seen in by_key.values())
    assert sorted(n for seen in by_key.values() for n in seen) == list(range(number))
    publisher.close()


def test_case_49_tombstones_and_empty_values_stay_apart(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out")
    publisher = rig.publisher(out)
    publisher.take_over()
    publisher.send(
        marker(1, 4),
        [block(out, [b"v", None, b"", b"w"], keys=[b"k", b"k", b"", None], timestamps=[5, 6, 7, 8])],
    )
    assert publisher.wait_visible(20_000)
    records = read_committed(place, out)
    assert values(records) == [b"v", None, b"", b"w"]
    assert [record.key() for record in records] == [b"k", b"k", b"", None]
    assert [record.timestamp()[1] for record in records] == [5, 6, 7, 8]
    publisher.close()


def test_case_52_headers_keep_order_duplicates_and_nulls(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out")
    headers = (("a", b"1"), ("a", b"2"), ("b", None), ("", b""))
    publisher = rig.publisher(out)
    publisher.take_over()
    publisher.send(marker(1, 2), [block(out, [b"with", b"without"], headers=[headers, ()])])
    assert publisher.wait_visible(20_000)
    records = read_committed(place, out)
    assert [record.headers() for record in records] == [list(headers), None]
    publisher.close()


def test_r30_timestamp_zero_is_not_replaced_by_the_time_of_sending(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out")
    publisher = rig.publisher(out)
    publisher.take_over()
    publisher.send(marker(1, 1), [block(out, [b"v"], timestamps=[0])])
    assert publisher.wait_visible(20_000)
    assert [record.timestamp()[1] for record in read_committed(place, out)] == [1]
    publisher.close()


def test_an_explicit_partition_is_honoured(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out", partitions=3)
    publisher = rig.publisher(out)
    publisher.take_over()
    publisher.send(
        marker(1, 4), [block(out, [b"a", b"b", b"c", b"d"], keys=[b"k"] * 4, partitions=[2, 0, 2, 1])]
    )
    assert publisher.wait_visible(20_000)
    assert [(r.partition(), r.value()) for r in read_committed(place, out, 3)] == [
        (0, b"b"),
        (1, b"d"),
        (2, b"a"),
        (2, b"c"),
    ]
    publisher.close()


def test_r30_a_refused_row_is_named_when_it_is_alone(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out", config={"max.message.bytes": "2000"})
    publisher = rig.publisher(out)
    publisher.take_over()
    with pytest.raises(PublishRefused) as refused:
        publisher.send(marker(1, 1), [block(out, [b"x" * 5_000])])
    assert refused.value.row == 0
    assert publisher.take_over() is None
    publisher.close()


def test_r30_among_others_a_refused_row_asks_for_fewer(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out", config={"max.message.bytes": "2000"})
    publisher = rig.publisher(out)
    publisher.take_over()
    with pytest.raises(TooLarge):
        publisher.send(marker(1, 3), [block(out, [b"a", b"x" * 5_000, b"b"])])
    publisher.take_over()
    publisher.send(marker(1, 1), [block(out, [b"a"])])
    assert publisher.wait_visible(20_000)
    assert values(read_committed(place, out)) == [b"a"]
    publisher.close()


def test_r30_fewer_and_fewer_rows_single_out_the_refused_one(place: str, topic: TopicFactory) -> None:
    """The broker refuses a request whole and does not say for which row: halving finds it, as R30 says."""
    rig, out = Rig(place), topic("out", config={"cleanup.policy": "compact"})
    publisher = rig.publisher(out)
    rows = block(out, [b"a", b"b", b"c", b"d"], keys=[b"k", b"k", None, b"k"])
    done, count, refused_row = 0, 4, None
    while done < 4 and refused_row is None:
        seen = publisher.take_over()
        assert seen is None if done == 0 else seen == marker(1, done)
        try:
            publisher.send(marker(1, done + count), [rows.slice(done, done + count)])
            done += count
        except TooLarge:
            count = max(1, count // 2)
        except PublishRefused as refused:
            refused_row = done + refused.row
    assert refused_row == 2
    publisher.take_over()
    publisher.send(marker(1, 4), [rows.slice(3, 4)])
    assert publisher.wait_visible(20_000)
    assert values(read_committed(place, out)) == [b"a", b"b", b"d"]
    publisher.close()


def test_r30_rows_fill_batches_within_a_small_topic_limit(place: str, topic: TopicFactory) -> None:
    rig, out = Rig(place), topic("out", config={"max.message.bytes": "2000"})
    rows = [b"%0100d" % n for n in range(500)]
    publisher = rig.publisher(out)
    publisher.take_over()
    publisher.send(marker(1, 500), [block(out, rows)])
    assert publisher.wait_visible(20_000)
    assert values(read_committed(place, out)) == rows
    publisher.close()


def test_r02_looking_neither_waits_for_an_open_transaction_nor_ends_it(
    place: str, topic: TopicFactory
) -> None:
    rig, out = Rig(place), topic("out")
    looks: list[object] = []

    def look(reached: FaultPoint) -> None:
        if reached is FaultPoint.ALL_SENT_NOT_COMMITTED:
            looks.append(looking.look())

    looking, publishing = rig.publisher(out), rig.publisher(out, faults=look)
    for checkpoint in (1, 2):
        publishing.take_over()
        publishing.send(marker(checkpoint, 0), [])
    assert looks == [None, marker(1, 0)]
    # A look may be old: a commit is answered before the group's coordinator has its marker.
    wait_until(lambda: looking.look() == marker(2, 0), 10.0, "the marker of the second transaction")
    looking.close()
    publishing.close()


@pytest.mark.kafka
def test_r15_a_marker_that_somebody_else_wrote_is_refused_by_name(kafka: str, topic: TopicFactory) -> None:
    from confluent_kafka import Consumer, TopicPartition

    rig, out = Rig(kafka), topic("out")
    publisher = rig.publisher(out)
    stranger = Consumer({"bootstrap.servers": kafka, "group.id": str(rig.identity())})
    stranger.commit(
        offsets=[TopicPartition(rig.settings.main.marker_topic, 0, 99, metadata="not ours")],
        asynchronous=False,
    )
    stranger.close()
    with pytest.raises(LogConflict, match="not ours"):
        publisher.take_over()
    publisher.close()


def test_case_06_jobs_and_sinks_of_similar_names_do_not_meet(place: str, topic: TopicFactory) -> None:
    from processor.ids import JobName, PublisherId, StepName

    one = PublisherId(JobName("a"), StepName("b.c"), 0)
    other = PublisherId(JobName("a.b"), StepName("c"), 0)
    assert str(one) != str(other)
    rig, out = Rig(place), topic("out")
    first, second = rig.publisher(out, subtask=0), rig.publisher(out, subtask=1)
    first.take_over()
    second.take_over()
    first.send(marker(1, 1), [block(out, [b"first"])])
    second.send(marker(1, 1), [block(out, [b"second"])])
    assert first.wait_visible(20_000)
    assert sorted(values(read_committed(place, out))) == [b"first", b"second"]
    first.close()
    second.close()


@pytest.mark.kafka
def test_a_topic_that_is_gone_is_a_refusal_by_name(kafka: str, topic: TopicFactory) -> None:
    from confluent_kafka.admin import AdminClient

    rig, out = Rig(kafka, publish_timeout="5s"), topic("out")
    publisher = rig.publisher(out)
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.delete_topics([out])[out].result(30)
    publisher.take_over()
    with pytest.raises(ExternalRefusal, match=out):
        publisher.send(marker(1, 1), [block(out, [b"v"])])
    assert publisher.take_over() is None, "its identity can still be opened: markers are kept elsewhere (R15)"
    publisher.send(marker(1, 0), [])
    assert publisher.take_over() == marker(1, 0)
    publisher.close()
