"""What a publisher does about transactions that a partition without a leader was not told of (R32)."""

from __future__ import annotations

import pytest

from connectors.kafka.cluster import LogEnd, Partition, TopicDescription
from connectors.kafka.publisher import KafkaPublisher
from connectors.kafka.settling import LEADER_NEWS_MS, Settling
from connectors.kafka.simulated_transactions import OPERATOR_MS
from connectors.kafka.simulated_world import Fate
from connectors.kafka.topic_limits import TopicLimits
from processor.errors import ExternalRefusal, HeldUp, Retriable
from processor.ids import Attempt, CheckpointId, Incarnation, JobName, Marker, PublisherId, StepName
from processor.records.rows import RowBlock
from tests.unit.kafka.pretend_cluster import PretendCluster
from tests.unit.kafka.uneasy_world import Killed, UneasyKafka

AWAY_MS = 3_000
OUT = Partition("out", 0)


def marker(checkpoint: int, rows: int) -> Marker:
    return Marker(
        incarnation=Incarnation("i"), attempt=Attempt(1), checkpoint=CheckpointId(checkpoint), rows=rows
    )


def publisher_on(kafka: UneasyKafka, subtask: int = 0) -> KafkaPublisher:
    settings = kafka.settings.model_copy(update={"marker_topic": "markers", "marker_timeout": 200})
    identity = PublisherId(JobName("job"), StepName("out"), subtask)
    return KafkaPublisher(lambda: kafka.cluster, settings, kafka.world, identity, topics=["out"])


def rows(*values: bytes) -> RowBlock:
    return RowBlock(topic="out", values=list(values), partitions=[0] * len(values))


def published(publisher: KafkaPublisher, wanted: Marker, block: RowBlock) -> None:
    """As the engine does it: again until it is known."""
    for _ in range(20):
        try:
            if publisher.take_over() == wanted:
                return
            publisher.send(wanted, [block])
        except HeldUp:
            raise
        except Retriable:
            continue
    raise AssertionError("not published in 20 tries")


def killed_at_the_end(kafka: UneasyKafka, publisher: KafkaPublisher, wanted: Marker, block: RowBlock) -> None:
    """All is sent when the partition loses its leader and the publisher its life."""
    kafka.world.leader_away[str(OUT)] = AWAY_MS
    kafka.world.fates["EndTxn"] = [Killed()]
    publisher.take_over()
    with pytest.raises(Killed):
        publisher.send(wanted, [block])


def test_r32_while_leaders_stay_a_publish_asks_for_topics_and_ends_once() -> None:
    kafka = UneasyKafka()
    publisher = publisher_on(kafka)
    for checkpoint in (1, 2):
        published(publisher, marker(checkpoint, 1), rows(b"a"))
    kafka.world.asked.clear()
    publisher.take_over()
    assert (kafka.world.times_asked("ListOffsets"), kafka.world.times_asked("DescribeTopicPartitions")) == (
        1,
        1,
    )
    assert kafka.world.times_asked("OffsetCommit") == 1, "what is settled goes along with the nonce"


@pytest.mark.parametrize("same_process", [True, False])
def test_r32_what_was_aborted_is_ended_before_it_comes_out_with_the_next(same_process: bool) -> None:
    kafka = UneasyKafka()
    publisher = publisher_on(kafka)
    published(publisher, marker(1, 1), rows(b"a"))
    killed_at_the_end(kafka, publisher, marker(2, 2), rows(b"b", b"c"))
    if not same_process:
        publisher = publisher_on(kafka)
    published(publisher, marker(2, 2), rows(b"b", b"c"))
    kafka.world.wait(OPERATOR_MS)
    assert kafka.values() == [b"a", b"b", b"c"]


def test_r32_the_row_that_ends_it_is_aborted_and_says_what_it_is() -> None:
    kafka = UneasyKafka()
    killed_at_the_end(kafka, publisher_on(kafka), marker(1, 1), rows(b"a"))
    heir = publisher_on(kafka)
    with pytest.raises(Retriable, match="may have been left open in out/0; it has been ended there"):
        heir.take_over()
    log = kafka.broker.log(OUT)
    assert (log.end, log.stable_end) == (3, 3), "a row, the one that ends it, and the end"
    assert kafka.values() == []


@pytest.mark.parametrize("same_process", [True, False])
def test_r32_what_was_committed_is_not_ended_and_holds_up_the_next_rows(same_process: bool) -> None:
    kafka = UneasyKafka()
    publisher = publisher_on(kafka)
    published(publisher, marker(1, 1), rows(b"a"))
    kafka.world.leader_away[str(OUT)] = AWAY_MS
    publisher.take_over()
    publisher.send(marker(2, 1), [rows(b"b")])  # committed, and the partition is not told
    if not same_process:
        publisher = publisher_on(kafka)
    kafka.world.wait(AWAY_MS)
    with pytest.raises(
        HeldUp, match=r"can't send more: rows that it has committed, up to checkpoint 2.*out/0"
    ):
        published(publisher, marker(3, 1), rows(b"c"))
    assert publisher.take_over() == marker(2, 1)
    publisher.send(marker(2, 1), ())  # an opening touches no partition
    assert not publisher.wait_visible(50), "what was sent before it can't be read"
    assert kafka.values() == [b"a"]
    kafka.world.wait(OPERATOR_MS)
    assert publisher.take_over() == marker(2, 1)
    assert publisher.wait_visible(50)
    published(publisher, marker(3, 1), rows(b"c"))
    assert kafka.values() == [b"a", b"b", b"c"]


def test_r32_another_programs_open_transaction_holds_up_nobody_while_leaders_stay() -> None:
    kafka = UneasyKafka()
    published(publisher_on(kafka), marker(1, 1), rows(b"a"))
    other = kafka.cluster.producer("theirs", transaction_timeout_ms=900_000, batch_bytes_max=10_000)
    other.initialise(1_000)
    other.begin()
    other.produce(rows(b"theirs"), 1_000)
    began_ms = kafka.world.now_ms()
    published(publisher_on(kafka), marker(2, 1), rows(b"b"))
    assert kafka.world.now_ms() - began_ms < 100, "it did not wait"
    assert kafka.broker.log(OUT).end == 5, "two rows, one end, theirs: and ours is ended too"


def test_r32_soon_after_a_change_one_look_proves_nothing_for_the_next_transaction() -> None:
    kafka = UneasyKafka()
    settling = Settling(kafka.cluster, kafka.world, ["out"])
    assert not settling.glance(), "what was before is not known"
    assert settling.left_open(0) == ()
    assert settling.glance()
    assert settling.leaders() == "1.0"
    log = kafka.broker.log(OUT)
    log.lose_leader()
    log.elect_leader()
    assert not settling.glance()
    assert settling.left_open(0) == ()
    assert not settling.glance(), "a coordinator may still take it that nobody leads"
    assert settling.leaders() == "", "and no marker says that these leaders were settled"
    kafka.world.wait(LEADER_NEWS_MS)
    assert settling.glance()
    assert settling.leaders() == "1.2"


def test_r32_a_leader_that_is_handed_over_leaves_nobody_out() -> None:
    kafka = UneasyKafka(partitions=2)
    settling = Settling(kafka.cluster, kafka.world, ["out"])
    settling.left_open(0)
    kafka.broker.log(OUT).leader_epoch += 1
    assert settling.glance()
    assert settling.leaders() == "2.1"
    kafka.broker.log(OUT).leader_epoch += 1
    kafka.broker.log(Partition("out", 1)).leader_epoch += 1
    assert settling.glance(), "one after another is one each time"
    kafka.broker.log(OUT).leader_epoch += 2
    assert not settling.glance(), "nobody may have led it in between"
    assert settling.leaders() == ""


def test_r32_a_change_that_an_earlier_process_did_not_see_is_one_too() -> None:
    kafka = UneasyKafka()
    settling = Settling(kafka.cluster, kafka.world, ["out"])
    assert not settling.glance()
    assert not settling.led_by("1.7")
    assert settling.left_open(0) == ()
    assert not settling.glance(), "when it was, is not known"
    kafka.world.wait(LEADER_NEWS_MS)
    assert settling.glance()


def test_r32_a_topic_that_refuses_the_row_which_ends_it_is_named() -> None:
    kafka = UneasyKafka()
    killed_at_the_end(kafka, publisher_on(kafka), marker(1, 1), rows(b"a"))
    kafka.broker.topics.get("out").limits = TopicLimits.of({"max.message.bytes": "10"})
    with pytest.raises(
        ExternalRefusal, match=r"left open in out/0, and the row that would end it is refused"
    ):
        publisher_on(kafka).take_over()


def test_r32_a_partition_that_is_new_is_looked_at() -> None:
    kafka = UneasyKafka()
    settling = Settling(kafka.cluster, kafka.world, ["out"])
    settling.left_open(0)
    kafka.broker.add_partitions("out", 2)
    assert not settling.glance()


def test_r32_leaders_that_the_brokers_do_not_tell_prove_nothing() -> None:
    cluster = PretendCluster()
    cluster.topics["out"] = TopicDescription(topic_id="t", partitions=1, may=None)
    cluster.epochs[OUT] = -1
    settling = Settling(cluster, cluster.clock, ["out"])
    assert settling.left_open(0) == ()
    assert not settling.glance()
    assert settling.leaders() == ""
    assert not settling.led_by("1.-1")


def test_r32_a_partition_that_gets_its_leader_a_moment_later_is_waited_for() -> None:
    cluster = PretendCluster()
    cluster.topics["out"] = TopicDescription(topic_id="t", partitions=1, may=None)
    failures = [Retriable("not leader for partition")] * 3
    answered = cluster.ends

    def ends(partitions: list[Partition], *, committed: bool) -> dict[Partition, LogEnd]:
        if failures:
            raise failures.pop()
        return dict(answered(partitions, committed=committed))

    cluster.ends = ends  # type: ignore[method-assign, assignment]
    assert Settling(cluster, cluster.clock, ["out"]).left_open(0) == ()


def test_r32_a_lost_answer_about_what_is_settled_is_asked_for_again() -> None:
    kafka = UneasyKafka()
    publisher = publisher_on(kafka)
    published(publisher, marker(1, 1), rows(b"a"))
    kafka.world.fates["ListOffsets"] = [Fate.REQUEST_LOST, Fate.ANSWER_LOST]
    published(publisher, marker(2, 1), rows(b"b"))
    assert kafka.values() == [b"a", b"b"]
