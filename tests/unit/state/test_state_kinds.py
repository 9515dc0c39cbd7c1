"""Kinds of state beside a single value, over both backends: what is put in comes out, restored too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import add
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.contracts.state_store import StateBackend
from processor.errors import JobError, UserCodeError
from processor.ids import CheckpointId, StepName
from processor.operators.aggregates import Count
from processor.operators.aggregating_state import AggregatingState
from processor.state.declarations import State, ValueState, described_states
from processor.state.expiry import Expiries
from processor.state.keyed_view import CurrentKey
from processor.state.list_state import Listed, ListState
from processor.state.reducing_state import ReducingState
from tests.unit.state.fakes import Bound, Place, SetTimes


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)


class Mean:
    """An aggregate whose values, totals and results are of three types; its totals can be changed in place."""

    def create(self) -> list[int]:
        return [0, 0]

    def add(self, total: list[int], value: str, /) -> list[int]:
        total[0] += int(value)
        total[1] += 1
        return total

    def merge(self, left: list[int], right: list[int], /) -> list[int]:
        return [left[0] + right[0], left[1] + right[1]]

    def result(self, total: list[int], /) -> float:
        return total[0] / total[1]


class Forgetful(Count):
    def add(self, total: int, value: object, /) -> int:
        return cast(int, None)


def both_carts(left: Cart, right: Cart) -> Cart:
    left.items += right.items
    return left


class Function:
    numbers = ListState(int)
    maybe: Listed[int | None] = cast(Any, ListState(cast(Any, int | None)))
    carts = ListState(Cart)
    largest = ReducingState(int, max)
    cart = ReducingState(Cart, both_carts)
    count = AggregatingState(Count())
    mean = AggregatingState(Mean())
    forgetful = AggregatingState(Forgetful())
    broken = ReducingState(int, lambda _left, _right: cast(int, "no number"))


@pytest.fixture
def opened(backend: StateBackend, place: Place) -> Iterator[Callable[..., Bound]]:
    made: list[Bound] = []

    def open_(restored: Any = ()) -> Bound:
        made.append(Bound(Function(), backend.open(place.request_of(Function, restored))))
        return made[-1]

    yield open_
    for bound in made:
        bound.state.close()


def test_b4_absent_empty_null_and_falsy_lists_are_four_things(opened):
    bound = opened()
    function = bound.at("empty")
    function.numbers.set([])
    function.maybe.set([])
    bound.at("falsy").numbers.append(0)
    bound.at("null").maybe.append(None)

    def check(function: Callable[[str], Function]) -> None:
        assert function("absent").numbers.get() is None
        assert function("absent").maybe.get() is None
        assert function("empty").numbers.get() == []
        assert function("empty").maybe.get() == []
        assert function("falsy").numbers.get() == [0]
        assert function("null").maybe.get() == [None]

    check(bound.at)
    files = bound.cut()
    check(bound.at)
    restored = opened(files)
    check(restored.at)
    restored.at("empty").numbers.clear()
    assert restored.at("empty").numbers.get() is None
    assert opened(restored.cut(2)).at("empty").numbers.get() is None


def test_extending_by_nothing_begins_no_list(opened):
    numbers = opened().at("k").numbers
    numbers.extend([])
    assert numbers.get() is None
    numbers.set([1])
    numbers.extend(iter(()))
    assert numbers.get() == [1]


@given(
    parts=st.lists(
        st.one_of(st.lists(st.text(max_size=3), max_size=20), st.sampled_from([["x"] * 15, ["y"] * 65_536])),
        max_size=6,
    )
)
def test_a_list_grows_into_what_msgpack_makes_of_the_whole(parts: list[list[str]]) -> None:
    kept: dict[Any, Any] = {}

    class Table:
        def kept(self, key: Any) -> Any:
            return kept.get(key)

        def keep(self, key: Any, value: Any) -> None:
            kept[key] = value

    cell = CurrentKey()
    cell.key = "k"
    tables: Any = type("Tables", (), {"table": lambda self, name: Table()})()
    texts = ListState(str).handle(tables, "texts", cell, StepName("step"), Expiries(SetTimes()))
    whole: list[str] = []
    for part in parts:
        texts.extend(part)
        whole += part
        assert kept.get("k") == (msgspec.msgpack.encode(whole) if whole else None)


def test_what_an_author_holds_is_never_what_is_kept(opened):
    bound = opened()
    function, cart, items = bound.at("k"), Cart(["a"]), [1]
    function.carts.append(cart)
    function.numbers.set(items)
    function.cart.add(cart)
    cart.items.append("later")
    items.append(2)
    held = function.cart.get(), function.carts.get(), function.numbers.get()
    held[0].items.append("later")
    held[1][0].items.append("later")
    held[1].append(Cart())
    held[2].append(3)
    assert (function.cart.get(), function.carts.get()) == (Cart(["a"]), [Cart(["a"])])
    assert function.numbers.get() == [1]
    completion = bound.state.cut(CheckpointId(1))
    function.cart.add(Cart(["b"]))  # its reduce changes the total in place
    function.mean.add("4")
    function.carts.append(Cart(["b"]))
    restored = opened(completion.run()).at("k")
    assert (restored.cart.get(), restored.carts.get()) == (Cart(["a"]), [Cart(["a"])])
    assert restored.mean.get() is None
    assert function.cart.get() == Cart(["a", "b"])


def test_b4_values_are_folded_into_one(opened):
    bound = opened()
    function = bound.at("k")
    assert (function.largest.get(), function.count.get(), function.mean.get()) == (None, None, None)
    for value in (-3, 0, -5):
        function.largest.add(value)
        function.count.add(value)
        function.mean.add(str(value))
    assert (function.largest.get(), function.count.get(), function.mean.get()) == (0, 3, -8 / 3)
    restored = opened(bound.cut())
    again = restored.at("k")
    assert (again.largest.get(), again.count.get(), again.mean.get()) == (0, 3, -8 / 3)
    again.largest.add(7)
    again.count.clear()
    again.mean.clear()
    again.mean.add("9")
    assert (again.largest.get(), again.count.get(), again.mean.get()) == (7, None, 9.0)
    assert restored.at("other").largest.get() is None


def test_a_value_of_another_type_is_refused_and_changes_nothing(opened):
    function = opened().at("k")
    function.numbers.set([1])
    function.largest.add(1)
    for wrong in (lambda: function.numbers.append("2"), lambda: function.numbers.extend([2, "3"])):
        with pytest.raises(
            UserCodeError, match=r"'numbers' is declared as ListState\[int\] and was set to str"
        ):
            wrong()
    with pytest.raises(UserCodeError, match="was set to NoneType None"):
        function.numbers.set([2, None])
    with pytest.raises(UserCodeError, match=r"declared as ListState\[Cart.* and was set to NoneType"):
        function.carts.append(None)
    with pytest.raises(
        UserCodeError, match=r"'largest' is declared as ReducingState\[int\] and was set to str"
    ):
        function.largest.add("2")
    with pytest.raises(UserCodeError, match="was set to NoneType"):
        function.cart.add(None)
    assert (function.numbers.get(), function.largest.get(), function.carts.get()) == ([1], 1, None)
    assert function.cart.get() is None


def test_an_outcome_of_another_type_is_refused_and_changes_nothing(opened):
    function = opened().at("k")
    function.broken.add(1)
    with pytest.raises(UserCodeError, match=r"'broken' is declared as .* was set to str 'no number'"):
        function.broken.add(2)
    with pytest.raises(
        UserCodeError, match=r"'forgetful' is declared as AggregatingState\[int\] and was set to None"
    ):
        function.forgetful.add(1)
    assert (function.broken.get(), function.forgetful.get()) == (1, None)


def test_a_checkpoint_refuses_a_list_that_could_not_be_read_back(opened):
    bound = opened()
    bound.at("k").carts.append(Cart(cast(Any, [1])))
    with pytest.raises(UserCodeError, match="'carts'"):
        bound.cut()


@pytest.mark.parametrize(
    ("state", "described"),
    [
        (ValueState(list[int]), "list[int]"),
        (ListState(int), "ListState[int]"),
        (ReducingState(list[int], add), "ReducingState[list[int]]"),
        (AggregatingState(Count()), "AggregatingState[int]"),
        (AggregatingState(Mean()), "AggregatingState[list[int]]"),
    ],
)
def test_b4_the_kind_of_a_state_is_part_of_its_description(state: State[Any], described: str) -> None:
    """It is in manifests: changing one makes old checkpoints look incompatible."""
    assert state.described() == described


class Untyped(Count):
    def create(self):
        return 0


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (ReducingState(cast(Any, int | None), max), "declared as None | int and may be None"),
        (ReducingState(cast(Any, object), max), "cannot be kept"),
        (AggregatingState(cast(Any, Count)), "no aggregate but a class"),
        (AggregatingState(Untyped()), "Untyped does not say the type of its totals"),
        (ListState(object), "cannot be kept"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_name_of_the_state(state: State[Any], says: str) -> None:
    wrong = type("Wrong", (), {"thing": state})
    with pytest.raises(JobError) as caught:
        described_states(wrong)
    assert "the state 'thing' of Wrong: " in caught.value.message
    assert says in caught.value.message


@pytest.mark.parametrize("name", ["numbers", "largest", "count"])
def test_state_outside_of_a_running_job_says_so(name: str) -> None:
    with pytest.raises(JobError, match=f"state '{name}' of Function is used outside"):
        getattr(Function(), name)


def test_state_without_a_current_key_is_an_error_and_not_an_entry(opened):
    bound = opened()
    bound.cell.leave()
    for use in (
        lambda: bound.function.numbers.append(1),
        lambda: bound.function.numbers.set([1]),
        lambda: bound.function.largest.add(1),
        lambda: bound.function.count.add(1),
    ):
        with pytest.raises(JobError, match="no current key"):
            use()
