"""A source on a real broker: nothing skipped, nothing twice, from anywhere to anywhere (F1)."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from connectors.kafka import (
    Earliest,
    FromGroup,
    FromOffsets,
    FromTime,
    KafkaSource,
    Latest,
    UntilEnd,
    UntilOffsets,
    UntilTime,
)
from connectors.kafka.cluster import Partition
from connectors.kafka.enumerator import lag_group
from processor.contracts.policy import Skip
from processor.errors import BadRecord, ExternalRefusal, JobError, PositionLost
from processor.ids import SplitId
from tests.contracts.cluster_rigs import place_of
from tests.contracts.kafka_rig import Bytes, Number, Reading, Rig, numbers
from tests.topics import TopicFactory
from tests.waiting import wait_until


def numbered(count: int, partitions: int = 1, first: int = 0) -> list[tuple[int, bytes]]:
    return [(n % partitions, b"%d" % n) for n in range(first, first + count)]


def test_a_bounded_source_reads_every_record_once(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in", partitions=4)
    rig.write(name, numbered(20_000, 4))
    reading = Reading(rig, numbers(name, until=UntilEnd())).to_end()
    assert sorted(reading.values()) == list(range(20_000))
    for split, batch in reading.batches:
        assert batch.split == split
        assert list(batch.offsets or ()) == sorted(batch.offsets or ())
    assert {split: p.next for split, p in reading.reader.positions().items()} == {
        SplitId(f"{name}/{n}"): 5_000 for n in range(4)
    }
    reading.close()


def test_a_source_goes_on_where_its_positions_say(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in", partitions=2)
    rig.write(name, numbered(3_000, 2))
    first = Reading(rig, numbers(name, until=UntilEnd()))
    first.batches.extend(first.reader.poll(100, 10_000))
    positions = dict(first.reader.positions())
    first.close()
    second = Reading(rig, numbers(name, until=UntilEnd()), positions=positions).to_end()
    assert sorted(first.values() + second.values()) == list(range(3_000))
    assert first.values()
    second.close()


def test_pausing_and_resuming_loses_and_doubles_nothing(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in", partitions=3)
    rig.write(name, numbered(9_000, 3))
    reading = Reading(rig, numbers(name, until=UntilEnd()))
    held = SplitId(f"{name}/1")
    reading.until_records(500)
    reading.reader.pause(frozenset({held}))
    before = len(reading.batches)
    reading.poll_until(
        lambda: all(p.at_end for split, p in reading.reader.positions().items() if split != held),
        "the others ended",
    )
    assert held not in {split for split, _ in reading.batches[before:]}
    reading.reader.pause(frozenset())
    reading.to_end()
    assert sorted(reading.values()) == list(range(9_000))
    reading.close()


@pytest.mark.kafka
def test_keys_headers_and_timestamps_travel_along(kafka: str, topic: TopicFactory) -> None:
    rig, name = Rig(kafka), topic("in")
    producer = rig.producer()
    producer.produce(name, b"a", key=b"k", timestamp=1_000, headers=[("h", b"1"), ("h", None)])
    producer.produce(name, b"b", timestamp=2_000)
    producer.produce(name, b"c", key=b"", timestamp=3_000)
    assert producer.flush(30) == 0
    reading = Reading(rig, KafkaSource(name, Bytes(), until=UntilEnd())).to_end()
    (_, batch), *rest = reading.batches
    assert not rest
    assert list(batch.values) == [b"a", b"b", b"c"]
    assert list(batch.keys or ()) == [b"k", None, b""]
    assert list(batch.timestamps) == [1_000, 2_000, 3_000]
    assert list(batch.headers or ()) == [(("h", b"1"), ("h", None)), (), ()]
    reading.close()


def test_columns_that_no_record_needs_are_absent(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    rig.write(name, numbered(10))
    reading = Reading(rig, numbers(name, until=UntilEnd())).to_end()
    assert all(batch.keys is None and batch.headers is None for _, batch in reading.batches)
    reading.close()


def test_several_topics_are_read_side_by_side(place: str, topic: TopicFactory) -> None:
    rig, one, two = Rig(place), topic("one", partitions=2), topic("two")
    rig.write(one, numbered(1_000, 2))
    rig.write(two, numbered(1_000, first=1_000))
    reading = Reading(rig, numbers([one, two], until=UntilEnd())).to_end()
    assert sorted(reading.values()) == list(range(2_000))
    for split, batch in reading.batches:
        assert all((value >= 1_000) == (split == f"{two}/0") for value in batch.values)
    reading.close()


def test_a_pattern_reads_the_topics_whose_whole_name_matches(place: str, topic: TopicFactory) -> None:
    rig, word = Rig(place), uuid.uuid4().hex[:8]
    matching = [topic(f"{word}-a"), topic(f"{word}-b")]
    other = topic(f"no-{word}")
    for at, name in enumerate([*matching, other]):
        rig.write(name, [(0, b"%d" % at)])
    reading = Reading(rig, numbers(re.compile(f"{word}-.*"), until=UntilEnd())).to_end()
    assert sorted(reading.values()) == [0, 1]
    reading.close()


def test_case_49_with_tombstones_none_is_a_value(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    rig.write(name, [(0, b"1"), (0, None), (0, b"3")])
    source = KafkaSource.with_tombstones(name, Number(), until=UntilEnd())
    reading = Reading(rig, source).to_end()
    assert reading.values() == [1, None, 3], "the decoder does not see the tombstone (case 50)"
    reading.close()


def test_case_49_a_source_of_values_names_the_tombstone(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    rig.write(name, [(0, b"1"), (0, None), (0, b"3")])
    reading = Reading(rig, numbers(name, until=UntilEnd()))
    with pytest.raises(BadRecord, match=f"step 'in', at {name}/0 offset 1: .*tombstone.*with_tombstones"):
        reading.to_end()
    reading.close()
    skipping = Reading(rig, numbers(name, until=UntilEnd()), policy=Skip()).to_end()
    assert skipping.values() == [1, 3]
    assert rig.counted["records_skipped"] == 1
    skipping.close()


def test_case_54_a_record_that_cannot_be_decoded_is_named(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    rig.write(name, [(0, b"1"), (0, b"2"), (0, b"no number"), (0, b"4"), (0, b"5")])
    reading = Reading(rig, numbers(name, until=UntilEnd()))
    with pytest.raises(BadRecord, match=f"step 'in', at {name}/0 offset 2: the record cannot be decoded"):
        reading.to_end()
    assert reading.reader.positions()[SplitId(f"{name}/0")].next == 0, "the position is not past it"
    reading.close()


def test_case_16_trailing_records_that_are_skipped_move_the_position(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    rig.write(name, [(0, b"%d" % n) for n in range(5)] + [(0, b"bad")] * 3)
    reading = Reading(rig, numbers(name, until=UntilEnd()), policy=Skip()).to_end()
    assert reading.values() == [0, 1, 2, 3, 4]
    positions = dict(reading.reader.positions())
    assert positions[SplitId(f"{name}/0")].next == 8
    assert rig.counted["records_skipped"] == 3
    reading.close()
    again = Reading(rig, numbers(name, until=UntilEnd()), policy=Skip(), positions=positions).to_end()
    assert again.values() == []
    assert rig.counted["records_skipped"] == 3, "counted once, not read again"
    again.close()


@pytest.mark.kafka
def test_case_17_a_source_ends_behind_a_control_record(kafka: str, topic: TopicFactory) -> None:
    rig, name = Rig(kafka), topic("in")
    producer = rig.producer(**{"transactional.id": f"writer-{uuid.uuid4().hex}"})
    producer.init_transactions(30)
    for commit in (True, False, True, False):
        producer.begin_transaction()
        producer.produce(name, b"%d" % commit)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    reading = Reading(rig, numbers(name, until=UntilEnd())).to_end()
    assert reading.values() == [1, 1]
    assert reading.reader.positions()[SplitId(f"{name}/0")].next == 8
    reading.close()


def test_case_17_a_source_ends_where_the_last_record_was_deleted(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in", partitions=2)
    rig.write(name, numbered(10, 2))
    delete_records(place, name, 0, 5)
    reading = Reading(rig, numbers(name, until=UntilEnd())).to_end()
    assert reading.values() == [1, 3, 5, 7, 9]
    reading.close()


@pytest.mark.kafka
@pytest.mark.slow
def test_case_17_a_source_ends_where_the_last_records_were_compacted_away(
    kafka: str, topic: TopicFactory
) -> None:
    name = topic(
        "in",
        config={
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.001",
            "delete.retention.ms": "0",
            "max.compaction.lag.ms": "100",
        },
    )
    rig = Rig(kafka)
    producer = rig.producer()

    def offsets_kept() -> set[int]:
        reading = Reading(rig, KafkaSource.with_tombstones(name, Number(), until=UntilEnd())).to_end()
        found = {offset for _, batch in reading.batches for offset in batch.offsets or ()}
        reading.close()
        return found

    for n in range(5):
        producer.produce(name, b"%d" % n, key=b"k%d" % n)
    for n in range(5):
        producer.produce(name, None, key=b"k%d" % n)
    assert producer.flush(30) == 0

    def compacted() -> bool:
        # Segments roll when something is written; the cleaner then takes the older ones.
        producer.produce(name, b"0", key=b"later")
        producer.flush(30)
        return 9 not in offsets_kept()

    wait_until(compacted, 90, "the cleaner has taken the tombstones away")
    # The end was resolved before the cleaner came: offset 9, the last within, is not there any more.
    bounded = KafkaSource.with_tombstones(name, Number(), until=UntilOffsets({(name, 0): 10}))
    reading = Reading(rig, bounded).to_end()
    assert all((batch.offsets or [99])[-1] < 9 for _, batch in reading.batches)
    assert reading.reader.positions()[SplitId(f"{name}/0")].next == 10
    reading.close()


@pytest.mark.kafka
def test_an_end_waits_for_transactions_that_are_open(kafka: str, topic: TopicFactory) -> None:
    rig, name = Rig(kafka), topic("in")
    producer = rig.producer(**{"transactional.id": f"writer-{uuid.uuid4().hex}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"7")
    producer.flush(30)
    reading = Reading(rig, numbers(name, until=UntilEnd()))
    assert not any(reading.reader.poll(100, 500))
    assert not reading.reader.positions()[SplitId(f"{name}/0")].at_end
    producer.commit_transaction(30)
    assert reading.to_end().values() == [7]
    reading.close()


def delete_records(bootstrap: str, topic: str, partition: int, before: int) -> None:
    place_of(bootstrap).delete_records(Partition(topic, partition), before)


def read_to_50_then_lose_75(kafka: str, name: str, rig: Rig) -> dict[SplitId, Any]:
    rig.write(name, numbered(100))
    first = Reading(rig, numbers(name, until=UntilOffsets({(name, 0): 50}))).to_end()
    assert first.values() == list(range(50))
    first.close()
    delete_records(kafka, name, 0, 75)
    position = first.reader.positions()[SplitId(f"{name}/0")]
    return {SplitId(f"{name}/0"): type(position)(next=50, identity=position.identity)}


def test_case_20_a_position_out_of_retention_is_named(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    positions = read_to_50_then_lose_75(place, name, rig)
    reading = Reading(rig, numbers(name), positions=positions)
    with pytest.raises(PositionLost, match=f"at {name}/0 offset 50: .*offsets 75 to 100 of partition 0"):
        reading.until_records(1)
    reading.close()


@pytest.mark.parametrize(("policy", "first", "lost"), [("earliest", 75, 25), ("latest", 100, 50)])
def test_case_20_by_policy_it_goes_on_and_counts_what_was_lost(
    place: str, topic: TopicFactory, policy: str, first: int, lost: int
) -> None:
    rig, name = Rig(place), topic("in")
    positions = read_to_50_then_lose_75(place, name, rig)
    reading = Reading(rig, numbers(name, out_of_retention=policy), positions=positions)
    reading.poll_until(lambda: rig.counted["positions_reset"] == 1, "the position is reset")
    rig.write(name, numbered(1, first=100))
    reading.until_records(101 - first)
    assert reading.values() == list(range(first, 101))
    assert rig.counted["records_lost"] == lost
    reading.close()


def test_case_20_also_while_the_job_runs(place: str, topic: TopicFactory) -> None:
    rig = Rig(place, consumer={"queued_records_min": 1, "fetch_size_per_partition_max": "1KiB"})
    name = topic("in")
    rig.write(name, [(0, b"%01000d" % n) for n in range(300)])
    reading = Reading(rig, numbers(name, out_of_retention="earliest"))
    reading.batches.extend(reading.reader.poll(10, 10_000))
    read = len(reading.values())
    assert read
    reading.reader.pause(frozenset({SplitId(f"{name}/0")}))
    delete_records(place, name, 0, 250)
    reading.reader.pause(frozenset())
    reading.poll_until(lambda: 299 in reading.values(), "the last record is read")
    values = reading.values()
    assert values == sorted(set(values)), "nothing twice, nothing out of order"
    assert rig.counted["records_lost"] == 300 - len(values), "what is missing was counted"
    assert rig.counted["positions_reset"] == 1
    reading.close()


def test_case_33_a_partition_found_later_is_read_from_its_first_record(
    place: str, topic: TopicFactory
) -> None:
    rig, name = Rig(place), topic("in", partitions=2)
    rig.write(name, numbered(10, 2))
    reading = Reading(rig, numbers(name, start=Latest()))
    known = reading.reader.positions()
    assert {p.next for p in known.values()} == {5}
    place_of(place).add_partitions(name, 3)
    rig.write(name, [(2, b"%d" % n) for n in range(100, 105)])
    new = place_of(place).until(lambda: reading.enumerator.discover(known), "the enumerator finds it")
    assert {split: p.next for split, p in new.items()} == {SplitId(f"{name}/2"): 0}
    reading.reader.assign(new)
    assert sorted(reading.until_records(5).values()) == [100, 101, 102, 103, 104]
    assert reading.enumerator.discover(reading.reader.positions()) == {}
    reading.close()


def test_a_topic_made_anew_is_refused_after_a_restart(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    rig.write(name, numbered(10))
    reading = Reading(rig, numbers(name)).until_records(10)
    known = reading.reader.positions()
    reading.enumerator.check(known)
    reading.reader.close()
    place_of(place).remake(name)
    rig.write(name, numbered(100))
    with pytest.raises(PositionLost, match=f"topic '{name}' was deleted and made again"):
        reading.enumerator.check(known)
    with pytest.raises(PositionLost, match="made again"):
        reading.enumerator.discover(known)
    reading.enumerator.close()


@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"])
def test_a_topic_made_anew_while_it_is_read_is_refused(place: str, topic: TopicFactory, policy: str) -> None:
    """Its old offsets are out of range in the new topic, which no policy may take for retention."""
    rig, name = Rig(place), topic("in")
    rig.write(name, numbered(10))
    reading = Reading(rig, numbers(name, out_of_retention=policy)).until_records(10)
    place_of(place).remake(name)
    with pytest.raises(PositionLost, match=f"topic '{name}' was deleted and made again"):
        reading.poll_until(lambda: False, "the reader finds out")
    reading.close()


def test_start_at_latest_skips_what_is_there(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    rig.write(name, numbered(10))
    reading = Reading(rig, numbers(name, start=Latest()))
    rig.write(name, numbered(3, first=10))
    assert reading.until_records(3).values() == [10, 11, 12]
    reading.close()


@pytest.mark.kafka
def test_start_and_end_by_time(kafka: str, topic: TopicFactory) -> None:
    rig, name = Rig(kafka), topic("in", config={"retention.ms": "-1"})
    noon = datetime(2024, 5, 17, 12, tzinfo=UTC)
    producer = rig.producer()
    for n in range(10):
        at = noon + timedelta(minutes=n)
        producer.produce(name, b"%d" % n, timestamp=int(at.timestamp() * 1_000))
    assert producer.flush(30) == 0
    source = numbers(
        name,
        start=FromTime(noon + timedelta(minutes=3)),
        until=UntilTime(noon + timedelta(minutes=6, seconds=30)),
    )
    reading = Reading(rig, source).to_end()
    assert reading.values() == [3, 4, 5, 6]
    reading.close()
    later = Reading(rig, numbers(name, start=FromTime(noon + timedelta(hours=1)), until=UntilEnd())).to_end()
    assert later.values() == []
    later.close()


def test_start_and_end_at_given_offsets(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in", partitions=2)
    rig.write(name, numbered(20, 2))
    source = numbers(
        name, start=FromOffsets({(name, 0): 4}, otherwise=Latest()), until=UntilOffsets({(name, 0): 6})
    )
    reading = Reading(rig, source).to_end()
    assert reading.values() == [8, 10]
    reading.close()


def test_offsets_for_a_partition_that_is_not_read_are_refused(place: str, topic: TopicFactory) -> None:
    rig, name = Rig(place), topic("in")
    source = numbers(name, start=FromOffsets({(name, 3): 4}))
    with pytest.raises(JobError, match=f"partition 3 of topic '{name}', which it does not read"):
        source.check(rig.source_context())


@pytest.mark.kafka
def test_start_at_the_offsets_of_a_group(kafka: str, topic: TopicFactory) -> None:
    rig, name, group = Rig(kafka), topic("in", partitions=2), f"old-{uuid.uuid4().hex}"
    rig.write(name, numbered(20, 2))
    other = Consumer({"bootstrap.servers": kafka, "group.id": group})
    other.commit(offsets=[TopicPartition(name, 0, 7)], asynchronous=False)
    other.close()
    source = numbers(name, start=FromGroup(group, otherwise=Earliest()), until=UntilEnd())
    reading = Reading(rig, source).to_end()
    assert sorted(reading.values()) == sorted([14, 16, 18, *list(range(1, 20, 2))])
    reading.close()


@pytest.mark.kafka
def test_published_positions_are_shown_to_lag_tools(kafka: str, topic: TopicFactory) -> None:
    rig, name = Rig(kafka), topic("in")
    rig.write(name, numbered(10))
    reading = Reading(rig, numbers(name)).until_records(10)
    reading.enumerator.published(reading.reader.positions())
    group = lag_group(reading.context.job, reading.context.step)
    tool = Consumer({"bootstrap.servers": kafka, "group.id": group})

    def committed() -> bool:
        (stored,) = tool.committed([TopicPartition(name, 0)], timeout=10)
        return bool(stored.offset == 10)

    wait_until(committed, 30, "the group's offset is the position")
    tool.close()
    reading.close()


def test_an_unknown_topic_is_refused_by_name(place: str) -> None:
    rig = Rig(place, topic_map={"written": "no-such-topic"})
    with pytest.raises(
        ExternalRefusal, match=r"step 'in': topic 'no-such-topic' \(which kafka.main.topic_map"
    ):
        numbers("written").check(rig.source_context())


def test_a_topic_of_the_job_may_be_mapped_to_another(place: str, topic: TopicFactory) -> None:
    name = topic("real")
    rig = Rig(place, topic_map={"written": name})
    rig.write(name, numbered(3))
    reading = Reading(rig, numbers("written", until=UntilEnd())).to_end()
    assert reading.values() == [0, 1, 2]
    assert set(reading.reader.positions()) == {SplitId(f"{name}/0")}
    reading.close()
