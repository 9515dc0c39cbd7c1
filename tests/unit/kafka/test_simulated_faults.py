"""What a simulated Kafka does when requests are lost, late or doubled, and processes die (R11, R12, R15, R17)."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.kafka.cluster import OffsetAt, Partition
from connectors.kafka.simulated_producer import SimulatedProducer
from connectors.kafka.simulated_transactions import EPOCH_LAST
from connectors.kafka.simulated_world import Fate
from processor.errors import Retriable, Unavailable
from processor.records.rows import RowBlock
from tests.contracts.cluster_rigs import refusal, stored
from tests.unit.kafka.uneasy_world import MARKER_AT, NONCE_AT, Killed, UneasyKafka

TIMEOUT_MS = 10_000
FENCED = ("Retriable", "_FENCED")


def rows(*values: bytes, **columns: Any) -> RowBlock:
    return RowBlock(topic="out", values=list(values), **columns)


def ready(kafka: UneasyKafka, name: str = "id", *, expires_ms: int = 60_000) -> SimulatedProducer:
    producer = kafka.cluster.producer(name, transaction_timeout_ms=expires_ms, batch_bytes_max=1_000_000)
    producer.initialise(TIMEOUT_MS)
    assert isinstance(producer, SimulatedProducer)
    return producer


def sent(kafka: UneasyKafka, *values: bytes, expires_ms: int = 60_000) -> SimulatedProducer:
    producer = ready(kafka, expires_ms=expires_ms)
    producer.begin()
    producer.produce(rows(*values), TIMEOUT_MS)
    assert producer.flush(TIMEOUT_MS) == 0
    return producer


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.ANSWER_LOST, Fate.DOUBLED])
@pytest.mark.parametrize(
    "request_name", ["AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]
)
def test_a_request_lost_or_doubled_once_changes_nothing(request_name: str, fate: Fate) -> None:
    kafka = UneasyKafka()
    kafka.world.fates[request_name] = [fate]
    group = kafka.cluster.group("id")
    producer = sent(kafka, b"a", b"b")
    producer.produce(rows(b"c"), TIMEOUT_MS)
    producer.send_offsets({MARKER_AT: stored(1)}, group.identity(), TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    assert kafka.values() == [b"a", b"b", b"c"]
    assert group.read([MARKER_AT], TIMEOUT_MS) == {MARKER_AT: stored(1)}
    assert not kafka.world.fates[request_name], "it was asked at all"


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.ANSWER_LOST])
def test_taking_over_without_an_answer_asks_again(fate: Fate) -> None:
    kafka = UneasyKafka()
    kafka.world.fates["InitProducerId"] = [fate]
    sent(kafka, b"a").commit(TIMEOUT_MS)
    assert kafka.values() == [b"a"]


def test_a_take_over_that_arrives_twice_shuts_its_own_producer_out() -> None:
    kafka = UneasyKafka()
    kafka.world.fates["InitProducerId"] = [Fate.DOUBLED]
    kafka.world.late_ms["InitProducerId"] = 100
    producer = sent(kafka, b"a")
    kafka.world.wait(200)
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == FENCED
    assert kafka.values() == []


def test_silence_is_unavailable_after_the_time_out() -> None:
    kafka = UneasyKafka()
    kafka.world.fates["EndTxn"] = [Fate.REQUEST_LOST] * 1_000
    producer = sent(kafka, b"a")
    began_ms = kafka.world.now_ms()
    with pytest.raises(Unavailable):
        producer.commit(2_000)
    assert kafka.world.now_ms() - began_ms == pytest.approx(2_000, abs=100)
    kafka.world.fates.clear()
    producer.abandon()
    assert kafka.state("id") == "ONGOING", "a commit that may come yet is not contradicted"


def test_rows_that_never_arrive_are_left_after_the_flush() -> None:
    kafka = UneasyKafka()
    kafka.world.fates["Produce"] = [Fate.REQUEST_LOST] * 1_000
    producer = ready(kafka)
    producer.begin()
    producer.produce(rows(b"a", b"b"), TIMEOUT_MS)
    assert producer.flush(1_000) == 2
    assert list(producer.failures()) == []
    kafka.world.fates.clear()
    assert producer.flush(1_000) == 0
    producer.commit(TIMEOUT_MS)
    assert kafka.values() == [b"a", b"b"]


def test_rows_that_arrive_again_after_their_transaction_are_not_stored_again() -> None:
    kafka = UneasyKafka()
    kafka.world.fates["Produce"] = [Fate.DOUBLED]
    kafka.world.late_ms["Produce"] = 5_000
    sent(kafka, b"a").commit(TIMEOUT_MS)
    later = sent(kafka, b"b")
    kafka.world.wait(10_000)
    later.commit(TIMEOUT_MS)
    assert kafka.values() == [b"a", b"b"]


def test_r11_a_late_commit_of_an_epoch_that_was_taken_over_does_nothing() -> None:
    kafka = UneasyKafka()
    kafka.world.fates["EndTxn"] = [Fate.REQUEST_LOST]
    kafka.world.late_ms["EndTxn"] = 20_000
    zombie = sent(kafka, b"zombie")
    with pytest.raises(Unavailable):
        zombie.commit(100)
    current = sent(kafka, b"current")
    kafka.world.wait(30_000)
    assert kafka.state("id") == "ONGOING"
    current.commit(TIMEOUT_MS)
    assert kafka.values() == [b"current"]


def test_r11_a_late_commit_that_nobody_took_over_commits() -> None:
    kafka = UneasyKafka()
    kafka.world.fates["EndTxn"] = [Fate.REQUEST_LOST]
    kafka.world.late_ms["EndTxn"] = 20_000
    producer = sent(kafka, b"a")
    with pytest.raises(Unavailable):
        producer.commit(100)
    producer.abandon()
    assert kafka.values() == []
    kafka.world.wait(30_000)
    assert kafka.values() == [b"a"]


def test_r12_a_late_commit_tears_the_next_transaction_of_the_same_producer() -> None:
    """What R12 is about: the second transaction is committed half-way, and its end is refused or empty."""
    kafka = UneasyKafka()
    kafka.world.fates["EndTxn"] = [Fate.DOUBLED]
    kafka.world.late_ms["EndTxn"] = 1_000
    producer = sent(kafka, b"first")
    producer.commit(TIMEOUT_MS)
    producer.begin()
    producer.produce(rows(b"half"), TIMEOUT_MS)
    kafka.world.wait(2_000)
    assert kafka.values() == [b"first", b"half"], "committed, though the producer is not done with it"
    producer.produce(rows(b"other half"), TIMEOUT_MS)
    producer.flush(TIMEOUT_MS)
    with pytest.raises(Retriable):
        producer.commit(TIMEOUT_MS)
    assert kafka.values() == [b"first", b"half"]


def test_r12_with_a_new_producer_for_every_transaction_it_tears_nothing() -> None:
    kafka = UneasyKafka()
    kafka.world.fates["EndTxn"] = [Fate.DOUBLED]
    kafka.world.late_ms["EndTxn"] = 1_000
    sent(kafka, b"first").commit(TIMEOUT_MS)
    second = sent(kafka, b"half")
    kafka.world.wait(2_000)
    assert kafka.values() == [b"first"]
    second.produce(rows(b"other half"), TIMEOUT_MS)
    second.commit(TIMEOUT_MS)
    assert kafka.values() == [b"first", b"half", b"other half"]


def test_what_a_process_had_sent_when_it_was_killed_may_arrive() -> None:
    kafka = UneasyKafka()
    producer = sent(kafka, b"a")
    kafka.world.fates["EndTxn"] = [Killed()]
    kafka.world.late_ms["EndTxn"] = 500
    with pytest.raises(Killed):
        producer.commit(TIMEOUT_MS)
    assert kafka.values() == []
    kafka.world.wait(1_000)
    assert kafka.values() == [b"a"]


def test_a_killed_process_sends_nothing_more() -> None:
    kafka = UneasyKafka()
    producer = sent(kafka, b"a")
    kafka.world.late_ms["EndTxn"] = 500

    def dead(request: str) -> None:
        raise Killed

    kafka.world.before = dead  # at once: the process was dead before it asked
    with pytest.raises(Killed):
        producer.abandon()
    kafka.world.before = None
    kafka.world.wait(1_000)
    assert kafka.state("id") == "ONGOING"


def test_an_open_transaction_expires_by_itself() -> None:
    kafka = UneasyKafka()
    producer = sent(kafka, b"a", expires_ms=5_000)
    kafka.broker.append(Partition("out", 0), [b"behind"])
    kafka.world.wait(4_000)
    assert kafka.values() == []
    kafka.world.wait(2_000)
    assert kafka.values() == [b"behind"]
    assert producer.flush(100) == 0
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == FENCED


def test_the_expiry_of_one_transaction_leaves_the_next_alone() -> None:
    kafka = UneasyKafka()
    sent(kafka, b"a", expires_ms=5_000).commit(TIMEOUT_MS)
    kafka.world.wait(3_000)
    second = sent(kafka, b"b", expires_ms=5_000)
    kafka.world.wait(3_000)
    second.commit(TIMEOUT_MS)
    assert kafka.values() == [b"a", b"b"]


def test_r17_a_commit_reaches_partitions_one_after_another() -> None:
    kafka = UneasyKafka(partitions=2)
    kafka.world.marker_ms = {"out/1": 1_000}
    producer = ready(kafka)
    producer.begin()
    producer.produce(rows(b"a", b"b", partitions=[0, 1]), TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    assert (kafka.values(0), kafka.values(1)) == ([b"a"], [])
    assert kafka.cluster.offsets([Partition("out", 1)], OffsetAt.COMMITTED_END) == {Partition("out", 1): 0}
    kafka.world.wait(2_000)
    assert (kafka.values(0), kafka.values(1)) == ([b"a"], [b"b"])


def test_r11_taking_over_waits_until_a_commit_has_reached_everybody() -> None:
    kafka = UneasyKafka()
    kafka.world.marker_ms = {"__consumer_offsets id": 3_000}
    group = kafka.cluster.group("id")
    producer = sent(kafka, b"a")
    producer.send_offsets({MARKER_AT: stored(1)}, group.identity(), TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    impatient = kafka.cluster.producer("id", transaction_timeout_ms=60_000, batch_bytes_max=1_000)
    with pytest.raises(Unavailable):
        impatient.initialise(500)
    with pytest.raises(Unavailable):
        group.read([MARKER_AT], 200)
    ready(kafka)
    assert group.read([MARKER_AT], 0) == {MARKER_AT: stored(1)}


def test_r15_a_coordinator_that_slept_answers_with_the_marker_before_and_without_the_nonce() -> None:
    kafka = UneasyKafka()
    group = kafka.cluster.group("id")
    for checkpoint in (1, 2, 3):
        producer = ready(kafka)
        producer.begin()
        producer.send_offsets({MARKER_AT: stored(checkpoint)}, group.identity(), TIMEOUT_MS)
        producer.commit(TIMEOUT_MS)
        group.begin_commit({NONCE_AT: stored(0, f"nonce {checkpoint}")})
    kafka.world.stale = 1
    assert group.read([MARKER_AT, NONCE_AT], TIMEOUT_MS) == {
        MARKER_AT: stored(2),
        NONCE_AT: stored(0, "nonce 2"),
    }
    assert group.read([MARKER_AT, NONCE_AT], TIMEOUT_MS) == {
        MARKER_AT: stored(3),
        NONCE_AT: stored(0, "nonce 3"),
    }


def test_r15_a_coordinator_that_slept_knows_of_no_pending_marker() -> None:
    kafka = UneasyKafka()
    group = kafka.cluster.group("id")
    producer = ready(kafka)
    producer.begin()
    producer.send_offsets({MARKER_AT: stored(1)}, group.identity(), TIMEOUT_MS)
    kafka.world.stale = 1
    assert group.read([MARKER_AT], 0) == {MARKER_AT: None}
    with pytest.raises(Unavailable):
        group.read([MARKER_AT], 100)


def test_a_commit_of_offsets_without_an_answer_is_sent_again_before_the_next_read() -> None:
    kafka = UneasyKafka()
    group = kafka.cluster.group("id")
    kafka.world.fates["OffsetCommit"] = [Fate.REQUEST_LOST, Fate.REQUEST_LOST]
    group.begin_commit({NONCE_AT: stored(0, "nonce")})
    assert group.read([NONCE_AT], TIMEOUT_MS) == {NONCE_AT: None}
    assert group.read([NONCE_AT], TIMEOUT_MS) == {NONCE_AT: stored(0, "nonce")}


def test_r15_markers_expire_with_the_brokers_retention() -> None:
    kafka = UneasyKafka()
    group = kafka.cluster.group("id")
    group.begin_commit({MARKER_AT: stored(1)})
    kafka.world.wait(6 * 86_400_000)
    assert group.read([MARKER_AT], TIMEOUT_MS) == {MARKER_AT: stored(1)}
    kafka.world.wait(2 * 86_400_000)
    assert group.read([MARKER_AT], TIMEOUT_MS) == {MARKER_AT: None}


def test_the_epoch_wraps_under_a_new_producer_id() -> None:
    kafka = UneasyKafka()
    sent(kafka, b"a").commit(TIMEOUT_MS)
    known = kafka.broker.transactions.find("id")
    assert known is not None
    known.epoch = EPOCH_LAST
    before = known.producer_id
    zombie = kafka.cluster.producer("id", transaction_timeout_ms=60_000, batch_bytes_max=1_000)
    zombie.initialise(TIMEOUT_MS)
    assert (known.producer_id != before, known.epoch) == (True, 0)
    zombie.begin()
    known.epoch = EPOCH_LAST
    current = sent(kafka, b"b")
    assert known.epoch == 0
    zombie.produce(rows(b"zombie"), TIMEOUT_MS)
    assert {failure.name for failure in zombie.failures()} == {"_PURGE_QUEUE"}
    assert refusal(lambda: zombie.commit(TIMEOUT_MS)) == ("Retriable", "INVALID_PRODUCER_ID_MAPPING")
    current.commit(TIMEOUT_MS)
    assert kafka.values() == [b"a", b"b"]


def test_a_transactional_id_that_was_forgotten_begins_anew() -> None:
    kafka = UneasyKafka()
    zombie = sent(kafka, b"a")
    zombie.commit(TIMEOUT_MS)
    kafka.broker.transactions.forget("id")
    current = sent(kafka, b"b")
    zombie.begin()
    zombie.produce(rows(b"zombie"), TIMEOUT_MS)
    assert zombie.failures()
    current.commit(TIMEOUT_MS)
    assert kafka.values() == [b"a", b"b"]


def test_a_topic_deleted_under_an_open_transaction_ends_with_it() -> None:
    kafka = UneasyKafka()
    group = kafka.cluster.group("id")
    producer = sent(kafka, b"a")
    producer.send_offsets({MARKER_AT: stored(1)}, group.identity(), TIMEOUT_MS)
    kafka.broker.delete_topic("out")
    kafka.broker.create_topic("out", 1)
    producer.commit(TIMEOUT_MS)
    assert kafka.values() == []
    assert group.read([MARKER_AT], TIMEOUT_MS) == {MARKER_AT: stored(1)}


def test_rights_taken_away_are_told_to_who_writes_and_who_reads() -> None:
    kafka = UneasyKafka()
    reader = kafka.cluster.consumer("g")
    reader.assign({Partition("out", 0): (0, -1)})
    producer = ready(kafka)
    producer.begin()
    kafka.broker.deny("out", "READ", "WRITE")
    producer.produce(rows(b"a"), TIMEOUT_MS)
    assert {failure.name for failure in producer.failures()} == {"TOPIC_AUTHORIZATION_FAILED"}
    (event,) = reader.consume(10, 100)
    error = event.error()
    assert error is not None
    assert error.name() == "TOPIC_AUTHORIZATION_FAILED"
    assert list(reader.consume(10, 100)) == []
    assert kafka.cluster.describe(["out"])["out"].may == kafka.broker.topics.get("out").may()
    assert "READ" not in (kafka.cluster.describe(["out"])["out"].may or ())
    kafka.broker.deny("out")
    kafka.broker.append(Partition("out", 0), [b"b"])
    assert [message.value() for message in reader.consume(10, 100)][:1] == [b"b"]


def test_compaction_takes_the_older_records_of_a_key_away_and_positions_pass_over_them() -> None:
    kafka = UneasyKafka()
    at = Partition("out", 0)
    kafka.broker.append(at, [b"1", b"2", b"3", None], keys=[b"k", b"l", b"k", b"l"])
    kafka.broker.compact(at)
    assert kafka.values() == [b"3"]
    reader = kafka.cluster.consumer("g")
    reader.assign({at: (0, -1)})
    messages = list(reader.consume(10, 100))
    assert [(m.offset(), m.error() is None) for m in messages] == [(2, True), (4, False)]


def test_a_reader_that_gets_no_answer_asks_again() -> None:
    kafka = UneasyKafka()
    at = Partition("out", 0)
    kafka.broker.append(at, [b"a"])
    kafka.world.fates["Fetch"] = [Fate.REQUEST_LOST, Fate.ANSWER_LOST]
    reader = kafka.cluster.consumer("g")
    reader.assign({at: (0, -1)})
    assert list(reader.consume(10, 0)) == []
    assert list(reader.consume(10, 0)) == [], "not at once"
    kafka.world.wait(1_000)
    assert list(reader.consume(10, 0)) == []
    kafka.world.wait(1_000)
    assert [message.value() for message in reader.consume(10, 0)][:1] == [b"a"]


def test_nothing_is_asked_while_there_is_nothing_new() -> None:
    kafka = UneasyKafka()
    reader = kafka.cluster.consumer("g")
    reader.assign({Partition("out", 0): (0, -1)})
    for _ in range(100):
        reader.consume(10, 0)
    assert kafka.world.times_asked("Fetch") == 1, "once for the end"
