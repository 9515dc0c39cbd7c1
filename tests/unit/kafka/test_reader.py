"""From messages to batches: split by partition, decoded, positions moved, whatever comes in one poll."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.cluster import Partition, TopicDescription, split_of
from connectors.kafka.reader import KafkaReader
from connectors.kafka.settings import OutOfRetention
from processor.contracts.policy import Fail, Policy, Skip
from processor.contracts.source import SourceContext
from processor.errors import BadRecord, EngineBug, ExternalRefusal, PositionLost
from processor.ids import JobName, Position, StepName
from tests.unit.kafka.pretend_cluster import Error, PretendCluster, Record, end_of, records

A0, A1, B0 = Partition("a", 0), Partition("a", 1), Partition("b", 0)


class Opened:
    def __init__(
        self,
        starts: dict[Partition, Position],
        *,
        policy: Policy | None = None,
        tombstones: bool = False,
        lost: OutOfRetention = OutOfRetention.FAIL,
    ) -> None:
        self.cluster = PretendCluster()
        self.counted: Counter[str] = Counter()
        context = SourceContext(
            job=JobName("job"),
            step=StepName("in"),
            settings={},
            policy=policy or Fail(),
            clock=self.cluster.clock,
            count=self.count,
        )
        self.reader: KafkaReader[int] = KafkaReader(
            self.cluster, context, group="g", decode=int, tombstones=tombstones, out_of_retention=lost
        )
        self.reader.assign({split_of(at): position for at, position in starts.items()})

    def count(self, name: str, by: int) -> None:
        self.counted[name] += by

    def poll(self, messages: list[Record]) -> dict[str, list[int]]:
        self.cluster.reading.coming.append(messages)
        return {split: list(batch.values) for split, batch in self.reader.poll(1_000, 0)}

    def next(self, at: Partition) -> int:
        return self.reader.positions()[split_of(at)].next


def test_messages_of_several_partitions_become_one_batch_each() -> None:
    opened = Opened({A0: Position(next=0), A1: Position(next=5), B0: Position(next=0)})
    polled = opened.poll(
        [
            *records(A0, 0, [b"1", b"2"]),
            *records(B0, 0, [b"7"]),
            *records(A1, 5, [b"3"]),
            *records(A0, 2, [b"4"]),
        ]
    )
    assert polled == {"a/0": [1, 2, 4], "b/0": [7], "a/1": [3]}
    assert (opened.next(A0), opened.next(A1), opened.next(B0)) == (3, 6, 1)


@given(st.lists(st.tuples(st.sampled_from([A0, A1, B0]), st.integers(0, 99)), max_size=60), st.data())
def test_any_interleaving_gives_each_partition_its_records_in_order(
    arrivals: list[tuple[Partition, int]], data: st.DataObject
) -> None:
    opened = Opened({at: Position(next=0) for at in (A0, A1, B0)})
    expected: dict[str, list[int]] = {"a/0": [], "a/1": [], "b/0": []}
    messages = []
    for at, value in arrivals:
        messages.append(Record(at, len(expected[split_of(at)]), b"%d" % value))
        expected[split_of(at)].append(value)
    seen: dict[str, list[int]] = {split: [] for split in expected}
    while messages:
        size = data.draw(st.integers(1, len(messages)))
        for split, polled in opened.poll(messages[:size]).items():
            seen[split] += polled
        messages = messages[size:]
    assert seen == expected
    assert {split: p.next for split, p in opened.reader.positions().items()} == {
        split: len(values) for split, values in expected.items()
    }


def test_the_leader_epoch_of_the_last_record_is_kept() -> None:
    opened = Opened({A0: Position(next=0, identity="id")})
    opened.poll(records(A0, 0, [b"1"]))
    assert opened.reader.positions()[split_of(A0)] == Position(next=1, identity="id", leader_epoch=3)


def test_a_record_that_was_read_already_is_a_bug() -> None:
    opened = Opened({A0: Position(next=5)})
    with pytest.raises(EngineBug, match="no record is read twice"):
        opened.poll(records(A0, 4, [b"1"]))


def test_case_17_the_end_of_a_partition_moves_the_position() -> None:
    opened = Opened({A0: Position(next=0, end=10)})
    assert opened.poll([*records(A0, 0, [b"1"]), end_of(A0, 4)]) == {"a/0": [1]}
    assert opened.next(A0) == 4
    assert opened.poll([end_of(A0, 3)]) == {}
    assert opened.next(A0) == 4, "it never goes back"
    assert opened.poll([end_of(A0, 12)]) == {}
    assert opened.reader.positions()[split_of(A0)].next == 10
    assert ("unassign", [A0]) in opened.cluster.reading.calls


def test_case_17_a_record_behind_the_end_ends_the_split() -> None:
    opened = Opened({A0: Position(next=0, end=3)})
    assert opened.poll([Record(A0, 1, b"1"), Record(A0, 7, b"7")]) == {"a/0": [1]}
    assert opened.reader.positions()[split_of(A0)].at_end
    assert opened.next(A0) == 3
    assert opened.poll([Record(A0, 8, b"8"), end_of(A0, 9)]) == {}


def test_a_split_that_has_ended_before_it_began_is_not_read() -> None:
    opened = Opened({A0: Position(next=3, end=3), A1: Position(next=0)})
    assert opened.cluster.reading.calls == [("assign", {A1: (0, -1)})]
    opened.reader.pause(frozenset({split_of(A0), split_of(A1)}))
    opened.reader.pause(frozenset())
    assert opened.cluster.reading.calls[1:] == [("pause", [A1]), ("resume", [A1])]


def test_only_what_changes_is_paused_and_resumed() -> None:
    opened = Opened({A0: Position(next=0), A1: Position(next=0), B0: Position(next=0)})
    opened.cluster.reading.calls.clear()
    opened.reader.pause(frozenset({split_of(A0), split_of(A1)}))
    opened.reader.pause(frozenset({split_of(A1), split_of(B0)}))
    assert opened.cluster.reading.calls == [("pause", [A0, A1]), ("pause", [B0]), ("resume", [A0])]


def test_case_16_a_batch_of_which_nothing_is_left_moves_the_position() -> None:
    opened = Opened({A0: Position(next=0)}, policy=Skip())
    assert opened.poll(records(A0, 0, [b"x", b"y"])) == {}
    assert opened.next(A0) == 2
    assert opened.counted == {"records_skipped": 2}


def test_skipped_records_leave_the_columns_aligned() -> None:
    opened = Opened({A0: Position(next=0)}, policy=Skip())
    messages = [
        Record(A0, 0, b"1", named=b"k0", marks=(("h", b"0"),), time=(1, 10)),
        Record(A0, 1, b"x", named=b"k1", time=(1, 11)),
        Record(A0, 2, None, named=b"k2", time=(1, 12)),
        Record(A0, 3, b"4", named=None, time=(0, 0)),
    ]
    opened.cluster.reading.coming.append(messages)
    ((_, batch),) = opened.reader.poll(10, 0)
    assert list(batch.values) == [1, 4]
    assert list(batch.keys or ()) == [b"k0", None]
    assert list(batch.headers or ()) == [(("h", b"0"),), ()]
    assert list(batch.timestamps) == [10, -1]
    assert list(batch.offsets or ()) == [0, 3]


def test_the_first_record_that_cannot_be_decoded_is_named() -> None:
    opened = Opened({A0: Position(next=0), A1: Position(next=0)})
    with pytest.raises(BadRecord) as bad:
        opened.poll([*records(A1, 0, [b"1"]), *records(A0, 0, [b"1", b"x", b"y"])])
    assert (bad.value.where.step, bad.value.where.split, bad.value.where.offset) == ("in", "a/0", 1)
    assert isinstance(bad.value.__cause__, ValueError)


def test_case_49_with_tombstones_the_decoder_does_not_see_them() -> None:
    opened = Opened({A0: Position(next=0)}, tombstones=True)
    assert opened.poll(records(A0, 0, [b"1", None, b"3"])) == {"a/0": [1, None, 3]}


def lost(at: Partition) -> Record:
    return Record(at, 50, failed=Error("_AUTO_OFFSET_RESET"))


@pytest.mark.parametrize("policy", list(OutOfRetention))
def test_a_topic_made_anew_is_lost_whatever_the_policy(policy: OutOfRetention) -> None:
    opened = Opened({A0: Position(next=50, identity="old")}, lost=policy)
    opened.cluster.topics["a"] = TopicDescription(topic_id="new", partitions=1, may=None)
    opened.cluster.ranges[A0] = (0, 10)
    with pytest.raises(PositionLost, match="made again"):
        opened.poll([lost(A0)])


def test_case_20_a_reset_keeps_the_split_paused() -> None:
    opened = Opened({A0: Position(next=50, identity="id")}, lost=OutOfRetention.EARLIEST)
    opened.cluster.topics["a"] = TopicDescription(topic_id="id", partitions=1, may=None)
    opened.cluster.ranges[A0] = (75, 100)
    opened.reader.pause(frozenset({split_of(A0)}))
    opened.cluster.reading.calls.clear()
    opened.poll([lost(A0)])
    assert opened.next(A0) == 75
    assert opened.cluster.reading.calls == [
        ("unassign", [A0]),
        ("assign", {A0: (75, -1)}),
        ("pause", [A0]),
    ]
    assert opened.counted == {"positions_reset": 1, "records_lost": 25}


def test_case_20_a_reset_never_goes_past_the_end_of_a_bounded_split() -> None:
    opened = Opened({A0: Position(next=50, end=60, identity="id")}, lost=OutOfRetention.LATEST)
    opened.cluster.topics["a"] = TopicDescription(topic_id="id", partitions=1, may=None)
    opened.cluster.ranges[A0] = (75, 100)
    opened.poll([lost(A0)])
    assert opened.reader.positions()[split_of(A0)].at_end
    assert opened.next(A0) == 60


def test_rights_taken_away_stop_the_job_by_name() -> None:
    opened = Opened({A0: Position(next=0)})
    with pytest.raises(ExternalRefusal, match="reading topic 'a'"):
        opened.poll([Record(A0, -1, failed=Error("TOPIC_AUTHORIZATION_FAILED"))])


def test_trouble_that_the_client_mends_itself_is_counted() -> None:
    opened = Opened({A0: Position(next=0)})
    assert opened.poll([Record(A0, -1, failed=Error("_TRANSPORT")), *records(A0, 0, [b"1"])]) == {"a/0": [1]}
    assert opened.counted == {"consumer_errors": 1}
