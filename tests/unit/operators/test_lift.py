"""map, filter, flat_map, map_batch: what they keep, and what becomes of a record whose function raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from processor.contracts.policy import Skip
from processor.errors import Unavailable, UserCodeError
from processor.operators.emitted import EMIT_RECORDS_MAX
from processor.operators.lift import Filter, FlatMap, Map, MapBatch, Union
from tests.unit.operators.kit import Bench, batch

HEADERS = [(("a", b"1"), ("a", b"2"), ("b", None)), (), (("c", b""),)]


def three(values=(1, 2, 3)):
    return batch(values, keys=["x", "y", "z"], headers=HEADERS, offset=10)


def test_map_keeps_key_headers_timestamp_and_place():
    rows = Bench().run(Map(str)).feed(three()).out.rows
    assert rows == [
        ("1", 10, "x", HEADERS[0], 10),
        ("2", 11, "y", HEADERS[1], 11),
        ("3", 12, "z", HEADERS[2], 12),
    ]


def test_filter_keeps_whole_records():
    rows = Bench().run(Filter(lambda v: v != 2)).feed(three()).out.rows
    assert rows == [(1, 10, "x", HEADERS[0], 10), (3, 12, "z", HEADERS[2], 12)]


def test_a_filter_that_keeps_all_hands_the_batch_itself_on():
    fed = three()
    assert Bench().run(Filter(lambda v: True)).feed(fed).out.batches == [fed]


def test_a_filter_that_keeps_none_sends_nothing():
    assert Bench().run(Filter(lambda v: False)).feed(three()).out.batches == []


def test_filter_takes_truth_and_not_only_bools():
    def keep(value: int) -> Any:
        return "" if value == 1 else [value]

    assert Bench().run(Filter(keep)).feed(three()).out.values == [2, 3]


def test_flat_map_copies_key_headers_timestamp_and_place():
    rows = Bench().run(FlatMap(lambda v: [v] * (v - 1))).feed(three()).out.rows
    assert rows == [
        (2, 11, "y", HEADERS[1], 11),
        (3, 12, "z", HEADERS[2], 12),
        (3, 12, "z", HEADERS[2], 12),
    ]


def test_flat_map_takes_generators_and_sends_nothing_for_nothing():
    def none(value: int) -> Iterator[int]:
        yield from ()

    assert Bench().run(FlatMap(none)).feed(three()).out.batches == []


def test_flat_map_cuts_a_large_result_into_pieces():
    running = Bench().run(FlatMap(lambda v: range(EMIT_RECORDS_MAX))).feed(three())
    assert running.out.values == [*range(EMIT_RECORDS_MAX)] * 3
    assert max(map(len, running.out.batches)) == EMIT_RECORDS_MAX


def test_map_batch_gives_one_result_a_record():
    rows = Bench().run(MapBatch(lambda values: [v * 2 for v in values])).feed(three()).out.rows
    assert [row[:3] for row in rows] == [(2, 10, "x"), (4, 11, "y"), (6, 12, "z")]


def test_map_batch_with_another_number_of_results_is_an_error():
    with pytest.raises(UserCodeError, match="2 results for 3 records"):
        Bench().run(MapBatch(lambda values: values[:2])).feed(three())


def test_union_hands_on_every_input():
    running = Bench().run(Union()).feed(three(), input=0).feed(three((4, 5, 6)), input=1)
    assert running.out.values == [1, 2, 3, 4, 5, 6]


def test_case_49_none_values_flow_through_like_any_other():
    bench = Bench()
    assert bench.run(Map(lambda v: v)).feed(batch([1, None, 3])).out.values == [1, None, 3]
    assert bench.run(Filter(lambda v: v is None)).feed(batch([1, None, 3])).out.values == [None]
    assert bench.run(FlatMap(lambda v: [v, None])).feed(batch([None])).out.values == [None, None]
    assert bench.run(MapBatch(list)).feed(batch([None, 2])).out.values == [None, 2]


def test_case_52_headers_stay_byte_for_byte_in_order_with_duplicates_and_nulls():
    out = Bench().run(FlatMap(lambda v: [v])).feed(three()).out
    out = Bench().run(Map(lambda v: v)).feed(out.batches[0]).out
    out = Bench().run(Filter(lambda v: v == 1)).feed(out.batches[0]).out
    assert out.rows[0][3] == (("a", b"1"), ("a", b"2"), ("b", None))


def fails_at(bad: int, error: Exception):
    def function(value: int) -> int:
        if value == bad:
            raise error
        return value

    return function


def flat_fails_at(bad: int, error: Exception):
    def function(value: int) -> Iterator[int]:
        yield value
        if value == bad:
            raise error
        yield value

    return function


@pytest.mark.parametrize(
    "operator",
    [
        Map(fails_at(3, ValueError("no"))),
        Filter(fails_at(3, ValueError("no"))),
        FlatMap(flat_fails_at(3, ValueError("no"))),
    ],
)
@pytest.mark.parametrize("as_type", [list, tuple])
def test_case_55_a_function_that_raises_stops_at_the_record_and_names_it(operator, as_type):
    running = Bench().run(operator, step="double")
    fed = batch([1, 2, 3, 4, 5], split="clicks/7", offset=40)
    fed = type(fed)(
        values=as_type(fed.values), timestamps=fed.timestamps, split=fed.split, offsets=fed.offsets
    )
    with pytest.raises(UserCodeError) as caught:
        running.feed(fed)
    assert "step 'double', at clicks/7 offset 42: the function raised ValueError: no." in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    assert running.out.batches == []


@pytest.mark.parametrize("bad", [1, 3, 5])
def test_case_54_a_skipped_record_is_counted_and_the_rest_goes_on(bad):
    fed = batch([1, 2, 3, 4, 5], keys=list("abcde"), offset=40)
    good = [v for v in (1, 2, 3, 4, 5) if v != bad]
    places = [(v, 39 + v, "abcde"[v - 1]) for v in good]
    bench = Bench()
    error = ValueError("no")

    rows = bench.run(Map(fails_at(bad, error)), policy=Skip()).feed(fed).out.rows
    assert [row[:3] for row in rows] == places

    rows = bench.run(Filter(fails_at(bad, error)), policy=Skip()).feed(fed).out.rows
    assert [row[:3] for row in rows] == places

    rows = bench.run(FlatMap(flat_fails_at(bad, error)), policy=Skip()).feed(fed).out.rows
    assert [row[:3] for row in rows] == [place for place in places for _ in range(2)]

    def many(values):
        return [fails_at(bad, error)(value) for value in values]

    rows = bench.run(MapBatch(many), policy=Skip()).feed(fed).out.rows
    assert [row[:3] for row in rows] == places
    assert bench.counted == {"records_skipped": 4}


def test_a_batch_of_nothing_but_bad_records_sends_nothing():
    bench = Bench()
    for operator in (Map(fails_at(1, KeyError())), FlatMap(flat_fails_at(1, KeyError()))):
        assert bench.run(operator, policy=Skip()).feed(batch([1, 1])).out.batches == []
    assert bench.counted == {"records_skipped": 4}


def test_a_function_that_raises_stop_iteration_loses_no_record():
    """Under ``map()`` or in a generator it would end the batch as if it had been shorter."""
    with pytest.raises(UserCodeError, match="StopIteration"):
        Bench().run(Map(fails_at(2, StopIteration()))).feed(batch([1, 2, 3]))
    bench = Bench()
    assert bench.run(Map(fails_at(2, StopIteration())), policy=Skip()).feed(batch([1, 2, 3])).out.values == [
        1,
        3,
    ]


def test_an_error_of_the_outside_is_neither_wrapped_nor_skipped():
    for operator in (Map(fails_at(2, Unavailable("x"))), FlatMap(flat_fails_at(2, Unavailable("x")))):
        with pytest.raises(Unavailable):
            Bench().run(operator, policy=Skip()).feed(batch([1, 2, 3]))
    with pytest.raises(Unavailable):
        Bench().run(Map(fails_at(2, Unavailable("x")))).feed(batch([1, 2, 3]))


def test_a_function_runs_once_for_each_record_under_either_policy():
    for policy in (None, Skip()):
        seen: list[int] = []

        def function(value: int, seen: list[int] = seen) -> int:
            seen.append(value)
            return value

        Bench().run(Map(function), policy=policy).feed(batch([1, 2, 3]))
        assert seen == [1, 2, 3]


def test_map_batch_names_the_batch_for_it_cannot_know_the_record():
    def many(values):
        raise ValueError("no")

    with pytest.raises(
        UserCodeError, match="for a batch of 3 records up to offset 42, raised ValueError"
    ) as error:
        Bench().run(MapBatch(many), step="b").feed(batch([1, 2, 3], offset=40))
    assert error.value.where.offset == 40
