"""Output made again is found in what came then, or what differs is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from processor.audit.outcome import compared
from processor.contracts.topic_reader import TopicChunk
from processor.ids import SplitId

Record = tuple[bytes | None, bytes | None]

KEYS = st.sampled_from([b"a", b"b", None])
VALUES = st.sampled_from([b"1", b"2", b"", None])


def chunk(records: Iterable[Record]) -> TopicChunk:
    found = list(records)
    return TopicChunk(
        split=SplitId("out/0"),
        offsets=range(len(found)),
        keys=[key for key, _ in found],
        values=[value for _, value in found],
        headers=[None] * len(found),
        timestamps=[0] * len(found),
    )


def different(then: Sequence[Record], again: Sequence[Record]) -> int:
    return compared([chunk(then)], [chunk(again)]).different


@given(st.lists(st.tuples(KEYS, VALUES)), st.data())
def test_c07_any_stretch_of_what_came_is_what_came(then, data):
    start = data.draw(st.integers(0, len(then)))
    stop = data.draw(st.integers(start, len(then)))
    found = compared([chunk(then)], [chunk(then[start:stop])])
    assert (found.different, found.records) == (0, stop - start)


def test_c07_a_record_that_is_new_lost_doubled_or_out_of_order_is_told():
    then = [(b"k", b"1"), (b"k", b"2"), (b"k", b"3"), (b"k", b"4")]
    for again in (["1", "3"], ["2", "2"], ["3", "2"], ["2", "5", "3"], ["1", "2", "3", "4", "5"]):
        assert different(then, [(b"k", value.encode()) for value in again]) == 1
    found = compared([chunk(then)], [chunk([(b"k", b"2"), (b"k", b"3"), (b"k", b"9")])])
    assert found.shown == ("record 3 of key 'k' is not what came then: '9'",)
    assert compared([chunk(then)], [chunk([(b"other", b"1")])]).different == 1


def test_c07_records_without_a_key_are_compared_as_a_multiset():
    then: list[Record] = [(None, b"1"), (None, b"2"), (None, b"1")]
    assert different(then, [(None, b"2"), (None, b"1"), (None, b"1")]) == 0
    found = compared([chunk(then)], [chunk([(None, b"2")] * 3)])
    assert found.shown == ("a record without key, 2 times more than then: '2'",)


def test_c07_values_that_only_look_alike_differ():
    assert different([(b"k", None)], [(b"k", b"")]) == 1
    assert different([(b"k", b"12")], [(b"k", b"1"), (b"k", b"2")]) == 1


def test_c07_headers_belong_to_a_record():
    def with_headers(headers):
        return TopicChunk(
            split=SplitId("out/0"), offsets=[0], keys=[b"k"], values=[b"1"], headers=[headers], timestamps=[0]
        )

    assert compared([with_headers([("a", b"1")])], [with_headers([("a", b"1")])]).different == 0
    for other in (None, [], [("a", None)], [("a", b"1"), ("a", b"1")]):
        assert compared([with_headers([("a", b"1")])], [with_headers(other)]).different == 1


def test_only_the_first_differences_are_shown():
    found = compared([], [chunk([(b"%d" % n, b"1") for n in range(50)])])
    assert (found.different, len(found.shown)) == (50, 10)
