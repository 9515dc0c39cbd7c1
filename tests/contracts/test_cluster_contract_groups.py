"""Offsets of groups, as the seam promises them, on a real Kafka and a simulated one: markers live there (R15)."""

from __future__ import annotations

from connectors.kafka.cluster import Partition
from connectors.kafka.doctor import examine_cluster
from processor.errors import ProcessorError
from tests.contracts.cluster_rigs import TIMEOUT_MS, Lab, refusal, rows, stored

PENDING_MS = 1_000


def test_a_group_that_stored_nothing_answers_so(lab: Lab) -> None:
    partitions = [lab.marker_at, lab.nonce_at, Partition("no-such-topic", 0)]
    assert lab.group(lab.id()).read(partitions, TIMEOUT_MS) == dict.fromkeys(partitions)


def test_r15_a_plain_commit_is_seen_by_the_read_behind_it(lab: Lab) -> None:
    """The nonce is committed without waiting, and read together with the marker. (The very first commit may
    come after the read: the client does not know the coordinator yet. Reading again shows it.)"""
    group = lab.group(lab.id())
    group.read([lab.marker_at], TIMEOUT_MS)
    for number in range(20):
        group.begin_commit({lab.nonce_at: stored(0, f"nonce-{number}")})
        found = group.read([lab.marker_at, lab.nonce_at], TIMEOUT_MS)
        assert found == {lab.marker_at: None, lab.nonce_at: stored(0, f"nonce-{number}")}


def test_r15_offsets_become_visible_with_the_records_of_their_transaction(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    group = lab.group(name)
    producer = lab.sent(name, topic, b"row")
    producer.send_offsets({lab.marker_at: stored(7, "seven")}, group.identity(), TIMEOUT_MS)
    producer.commit(TIMEOUT_MS)
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: stored(7, "seven")}
    assert lab.values(topic, 2) == [b"row"]


def test_r15_neither_is_visible_when_it_is_aborted(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    group = lab.group(name)
    producer = lab.sent(name, topic, b"row")
    producer.send_offsets({lab.marker_at: stored(7)}, group.identity(), TIMEOUT_MS)
    lab.ready(name)
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: None}
    assert lab.values(topic, 2) == []


def test_r15_while_a_marker_is_pending_there_is_no_answer(lab: Lab) -> None:
    name = lab.id()
    group, looking = lab.group(name), lab.group(name, waits=False)
    group.read([lab.marker_at], TIMEOUT_MS)
    group.begin_commit({lab.marker_at: stored(1, "one")})
    group.read([lab.marker_at], TIMEOUT_MS)
    producer = lab.begun(name)
    producer.send_offsets({lab.marker_at: stored(2, "two")}, group.identity(), TIMEOUT_MS)
    silence = ("Unavailable", "_TIMED_OUT")
    assert refusal(lambda: group.read([lab.marker_at], PENDING_MS)) == silence
    assert refusal(lambda: group.read([lab.marker_at, lab.nonce_at], PENDING_MS)) == silence
    assert group.read([lab.nonce_at], TIMEOUT_MS) == {lab.nonce_at: None}, "of others there is"
    assert looking.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: stored(1, "one")}
    producer.commit(TIMEOUT_MS)
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: stored(2, "two")}


def test_r11_taking_over_ends_a_pending_marker(lab: Lab) -> None:
    name = lab.id()
    group = lab.group(name)
    producer = lab.begun(name)
    producer.send_offsets({lab.marker_at: stored(2)}, group.identity(), TIMEOUT_MS)
    lab.ready(name)
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: None}
    offsets = {lab.marker_at: stored(3)}
    assert refusal(lambda: producer.send_offsets(offsets, group.identity(), TIMEOUT_MS)) == (
        "Retriable",
        "_FENCED",
    )


def test_a_plain_commit_made_later_outlives_the_transaction(lab: Lab) -> None:
    """What counts is when an offset was sent, not when its transaction was committed."""
    name = lab.id()
    group = lab.group(name)
    producer = lab.begun(name)
    producer.send_offsets({lab.marker_at: stored(8)}, group.identity(), TIMEOUT_MS)
    group.begin_commit({lab.marker_at: stored(9)})
    looking = lab.group(name, waits=False)
    lab.place.until(
        lambda: looking.read([lab.marker_at], TIMEOUT_MS)[lab.marker_at] == stored(9), "it is committed"
    )
    producer.commit(TIMEOUT_MS)
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: stored(9)}


def test_a_group_that_is_deleted_has_stored_nothing(lab: Lab) -> None:
    name = lab.id()
    group = lab.group(name)
    group.read([lab.marker_at], TIMEOUT_MS)
    group.begin_commit({lab.marker_at: stored(1)})
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: stored(1)}
    lab.cluster.forget_group(name)
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: None}
    unknown = ("Retriable", "GROUP_ID_NOT_FOUND")
    assert refusal(lambda: lab.cluster.forget_group(name)) == unknown
    assert refusal(lambda: lab.cluster.forget_group(lab.id())) == unknown


def test_deleting_a_topic_drops_what_groups_stored_against_it(lab: Lab) -> None:
    topic, group = lab.topic(), lab.group(lab.id())
    at = Partition(topic, 0)
    group.begin_commit({at: stored(1), lab.nonce_at: stored(2)})
    lab.place.until(
        lambda: group.read([at, lab.nonce_at], TIMEOUT_MS) == {at: stored(1), lab.nonce_at: stored(2)},
        "both are stored",
    )
    lab.place.delete_topic(topic)
    lab.place.until(
        lambda: group.read([at, lab.nonce_at], TIMEOUT_MS) == {at: None, lab.nonce_at: stored(2)},
        "it is dropped",
    )


def read_after_failure(lab: Lab, group, kind: str) -> None:
    """A plain commit's failure is raised by a later read."""

    def failed() -> bool:
        try:
            group.read([lab.marker_at], TIMEOUT_MS)
        except ProcessorError as failure:
            return kind in failure.message
        return False

    lab.place.until(failed, "the failure is told")


def test_offsets_against_a_topic_that_is_not_there_are_refused(lab: Lab) -> None:
    name = lab.id()
    group = lab.group(name)
    missing = {Partition("no-such-topic", 0): stored(1)}
    group.begin_commit(missing)
    read_after_failure(lab, group, "UNKNOWN_TOPIC_OR_PART")
    producer = lab.begun(name)
    error = ("ExternalRefusal", "UNKNOWN_TOPIC_OR_PART")
    assert refusal(lambda: producer.send_offsets(missing, group.identity(), 1_000)) == error
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == error


def test_metadata_that_is_too_large_is_refused(lab: Lab) -> None:
    name = lab.id()
    group = lab.group(name)
    large = {lab.marker_at: stored(1, "x" * 5_000)}
    group.begin_commit(large)
    read_after_failure(lab, group, "OFFSET_METADATA_TOO_LARGE")
    producer = lab.begun(name)
    error = ("Retriable", "OFFSET_METADATA_TOO_LARGE")
    assert refusal(lambda: producer.send_offsets(large, group.identity(), TIMEOUT_MS)) == error
    assert refusal(lambda: producer.commit(TIMEOUT_MS)) == error
    fitting = {lab.marker_at: stored(1, "x" * 4_000)}
    again = lab.begun(name)
    again.send_offsets(fitting, group.identity(), TIMEOUT_MS)
    again.commit(TIMEOUT_MS)
    assert lab.group(name).read([lab.marker_at], TIMEOUT_MS) == fitting


def test_offsets_of_several_groups_do_not_meet(lab: Lab) -> None:
    topic, one, other = lab.topic(), lab.id(), lab.id()
    first, second = lab.group(one), lab.group(other)
    producer = lab.sent(one, topic, b"row")
    producer.send_offsets({lab.marker_at: stored(1)}, first.identity(), TIMEOUT_MS)
    assert second.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: None}, "not even pending"
    producer.commit(TIMEOUT_MS)
    assert first.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: stored(1)}


def test_r31_the_doctor_finds_what_exactly_once_rests_on(lab: Lab) -> None:
    topic = lab.topic()  # the brokers have made their own topics once something was written
    lab.committed(lab.id(), topic, b"row")
    lab.group(lab.id()).begin_commit({lab.marker_at: stored(1)})
    findings = list(examine_cluster(lab.cluster, lab.settings.main))
    assert [finding for finding in findings if not finding.passed] == []
    assert len(findings) >= 12


def test_values_and_offsets_of_many_transactions_in_a_row(lab: Lab) -> None:
    topic, name = lab.topic(), lab.id()
    group = lab.group(name)
    for checkpoint in range(1, 11):
        producer = lab.begun(name)
        producer.produce(rows(topic, b"%d" % checkpoint), TIMEOUT_MS)
        producer.send_offsets({lab.marker_at: stored(checkpoint)}, group.identity(), TIMEOUT_MS)
        producer.commit(TIMEOUT_MS)
    assert group.read([lab.marker_at], TIMEOUT_MS) == {lab.marker_at: stored(10)}
    assert lab.values(topic, 20) == [b"%d" % checkpoint for checkpoint in range(1, 11)]
