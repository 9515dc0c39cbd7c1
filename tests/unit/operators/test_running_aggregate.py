"""Running totals: one result a record, with the stream's key."""

from __future__ import annotations

import pytest

from processor.contracts.policy import Skip
from processor.errors import UserCodeError
from processor.operators.aggregates import Count, Keyed, Sum
from processor.operators.running_aggregate import RunningAggregate
from tests.unit.operators.kit import Bench, batch


def counting() -> RunningAggregate:
    return RunningAggregate(Count(), total_type=int)


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_every_record_gives_the_new_total_of_its_key(backend, tmp_path):
    step = Bench(backend_name=backend, directory=tmp_path).run(counting())
    step.feed(batch(["x", "y", "z"], keys=["a", "b", "a"], headers=[(("h", b""),), (), ()], offset=4))
    assert step.out.rows == [
        (Keyed("a", 1), 4, "a", None, 4),
        (Keyed("b", 1), 5, "b", None, 5),
        (Keyed("a", 2), 6, "a", None, 6),
    ]
    step.operator.close()


def test_totals_come_back_from_a_snapshot():
    bench = Bench()
    step = bench.run(RunningAggregate(Sum[int](lambda v: v), total_type=int))
    step.feed(batch([5, 6], keys=["a", "a"]))
    snapshot = step.cut(1)
    assert bench.contents(snapshot, {"total": int}) == {"total": {"a": 11}}
    again = bench.run(RunningAggregate(Sum[int](lambda v: v), total_type=int), restored=snapshot.keyed)
    assert again.feed(batch([1], keys=["a"])).out.values == [Keyed("a", 12)]


def test_a_total_of_zero_is_a_total():
    step = Bench().run(RunningAggregate(Sum[int](lambda v: v), total_type=int))
    assert step.feed(batch([5, -5, 3], keys=["a"] * 3)).out.values == [
        Keyed("a", 5),
        Keyed("a", 0),
        Keyed("a", 3),
    ]


class Picky:
    """Adds whole numbers; shows no total of 13."""

    def create(self) -> int:
        return 0

    def add(self, total: int, value: int, /) -> int:
        return total + int(value)

    def merge(self, left: int, right: int, /) -> int:
        return left + right

    def result(self, total: int, /) -> int:
        if total == 13:
            raise ValueError("unlucky")
        return total


@pytest.mark.parametrize("bad", ["no number", 3])
def test_case_54_a_skipped_record_changes_no_total(bad):
    bench = Bench()
    step = bench.run(RunningAggregate(Picky(), total_type=int), policy=Skip())
    step.feed(batch([10, bad, 1], keys=["a", "a", "a"]))
    assert step.out.values == [Keyed("a", 10), Keyed("a", 11)]
    assert [row[4] for row in step.out.rows] == [0, 2]
    assert bench.counted == {"records_skipped": 1}


def test_case_55_a_record_that_raises_is_named():
    step = Bench().run(RunningAggregate(Picky(), total_type=int), step="sum")
    with pytest.raises(
        UserCodeError, match="step 'sum', at lines/0 offset 8: the aggregate raised ValueError"
    ):
        step.feed(batch([10, "x"], keys=["a", "a"], offset=7))


class Lost(Picky):
    def add(self, total: int, value: int, /) -> int:
        return None  # type: ignore[return-value]

    def result(self, total: int, /) -> int:
        return 0


def test_a_total_is_never_none():
    with pytest.raises(UserCodeError, match="never None"):
        Bench().run(RunningAggregate(Lost(), total_type=int)).feed(batch([1], keys=["a"]))


def test_merged_totals_are_the_total_of_both():
    for how, values in ((Count(), [1, 2, 3]), (Sum[int](lambda v: v), [4, 5, 6])):

        def total(some, how=how):
            kept = how.create()
            for value in some:
                kept = how.add(kept, value)
            return kept

        assert how.result(how.merge(total(values[:1]), total(values[1:]))) == how.result(total(values))
