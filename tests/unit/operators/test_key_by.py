"""Keys: every kind that has stable bytes, and what becomes of a record without one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import pytest

from processor.contracts.policy import Skip
from processor.errors import JobError, UserCodeError
from processor.operators.key_by import KeyBy
from tests.unit.operators.kit import Bench, batch


def keyed(values, policy=None, key=lambda v: v, bench=None, type_known=True):
    bench = bench or Bench()
    return bench.run(KeyBy(key, type_known=type_known), step="by", policy=policy).feed(
        batch(values, offset=5)
    )


GOOD = [
    "a",
    "",
    b"",
    0,
    -5,
    2**70,
    True,
    False,
    UUID(int=1),
    datetime(2024, 1, 1, tzinfo=UTC),
    ("a", 1, b"x"),
    (),
    (UUID(int=2), datetime(2024, 1, 1, tzinfo=UTC)),
]


def test_every_kind_of_key_is_a_key_also_mixed():
    assert [row[2] for row in keyed(GOOD).out.rows] == GOOD
    for key in GOOD:
        assert [row[2] for row in keyed([key, key]).out.rows] == [key, key]


def test_values_headers_and_places_stay():
    assert [row[:2] for row in keyed(["a", "b"]).out.rows] == [("a", 5), ("b", 6)]


def test_case_51_falsy_keys_are_keys_and_none_is_an_error_with_its_place():
    assert [row[2] for row in keyed([0, "", b""]).out.rows] == [0, "", b""]
    with pytest.raises(UserCodeError, match=r"step 'by', at lines/0 offset 8: .* returned None") as caught:
        keyed([0, "", b"", None])
    assert "on_error=Skip()" in str(caught.value)


def test_case_51_none_keys_are_skipped_and_counted_by_policy():
    bench = Bench()
    rows = keyed([0, "", b"", None, 1], policy=Skip(), bench=bench).out.rows
    assert [row[2] for row in rows] == [0, "", b"", 1]
    assert bench.counted == {"records_skipped": 1}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (1.5, "float"),
        ([1], "list"),
        (datetime(2024, 1, 1), "without a time zone"),
        (("a", 1.5), "float"),
        (("a", None), "NoneType"),
        ("\ud800", "surrogate"),
        (("\ud800",), "surrogate"),
    ],
)
def test_what_has_no_stable_bytes_is_no_key(bad, says):
    with pytest.raises(UserCodeError, match=says) as caught:
        keyed(["a", bad])
    assert caught.value.where.offset == 6
    bench = Bench()
    assert keyed(["a", bad, "b"], policy=Skip(), bench=bench).out.values == ["a", "b"]
    assert bench.counted == {"records_skipped": 1}


def test_a_batch_of_nothing_but_none_keys_sends_nothing():
    assert keyed([None, None], policy=Skip()).out.batches == []


def test_a_key_function_that_raises_goes_by_the_policy():
    with pytest.raises(UserCodeError, match="key function raised ZeroDivisionError") as caught:
        keyed([1, 0], key=lambda v: 1 // v)
    assert caught.value.where.offset == 6
    bench = Bench()
    assert keyed([1, 0, None, 1], key=lambda v: v and 1 // v, policy=Skip(), bench=bench).out.values == [
        1,
        0,
        1,
    ]


@dataclass
class Order:
    cents: int


def test_values_of_a_type_nobody_named_must_be_plain():
    plain = ["a", b"b", 1, 1.5, True, None, [1, [2]], {"a": (1, None)}, ()]
    assert keyed(plain, key=lambda v: 1, type_known=False).out.values == plain
    with pytest.raises(JobError, match="type list") as caught:
        keyed(["a", [Order(1)]], key=lambda v: 1, type_known=False)
    for way in (".returns(T)", "annotation", "format"):
        assert way in str(caught.value)
