"""State that was kept under another schema is read as the types of now, and goes on as one of them (B7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from processor.contracts.state_store import StateBackend
from processor.operators.aggregating_state import AggregatingState
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.state.reducing_state import ReducingState
from tests.unit.state.fakes import Bound, Place


class OldCart(msgspec.Struct):
    items: list[str]
    gone: int = 7


class OldSeen(msgspec.Struct, frozen=True):
    at: int
    by: str


class Totals:
    """Totals as the first release kept them."""

    def create(self) -> OldCart:
        return OldCart([])

    def add(self, total: OldCart, value: str, /) -> OldCart:
        total.items.append(value)
        return total

    def merge(self, left: OldCart, right: OldCart, /) -> OldCart:
        return OldCart(left.items + right.items)

    def result(self, total: OldCart, /) -> int:
        return len(total.items)


class Old:
    count = ValueState(int)
    seen = ValueState(OldSeen)
    cart = ValueState(OldCart)
    lengths = ListState(int)
    pages = MapState(str, int)
    carts = MapState(str, OldCart)
    most = ReducingState(int, max)
    all = AggregatingState(Totals())


class Seen(msgspec.Struct, frozen=True):
    by: str | None
    at: float
    new: str = "new"


@dataclass(slots=True)
class Cart:
    note: str = "none"
    items: tuple[str, ...] = ()


class TotalsNow:
    """The same totals, as they are kept now."""

    def create(self) -> Cart:
        return Cart()

    def add(self, total: Cart, value: str, /) -> Cart:
        return replace(total, items=(*total.items, value))

    def merge(self, left: Cart, right: Cart, /) -> Cart:
        return replace(left, items=left.items + right.items)

    def result(self, total: Cart, /) -> int:
        return len(total.items)


class Now:
    count = ValueState(float)
    seen = ValueState(Seen)
    cart = ValueState(Cart)
    lengths = ListState(float)
    pages = MapState(str, float)
    carts = MapState(str, Cart)
    most = ReducingState(float, max)
    all = AggregatingState(TotalsNow())


class LastCart(msgspec.Struct):
    """What the one before has not, it would take from the release before that: under a name of another type."""

    note: str
    gone: str = "fresh"


class Last:
    count = ValueState(float)
    seen = ValueState(Seen)
    cart = ValueState(LastCart)
    lengths = ListState(float)
    pages = MapState(str, float)
    carts = MapState(str, LastCart)
    most = ReducingState(float, max)
    all = AggregatingState(TotalsNow())


class Renamed:
    counted = ValueState(int)
    seen = ValueState(OldSeen)
    cart = ValueState(OldCart)
    lengths = ListState(int)
    pages = MapState(str, int)
    carts = MapState(str, OldCart)
    most = ReducingState(int, max)
    all = AggregatingState(Totals())


@pytest.fixture
def opened(backend: StateBackend, place: Place) -> Iterator[Callable[..., Bound]]:
    made: list[Bound] = []

    def open_(function: type, restored: Any = ()) -> Bound:
        made.append(Bound(function(), backend.open(place.request_of(function, restored))))
        return made[-1]

    yield open_
    for bound in made:
        bound.state.close()


def filled(opened: Callable[..., Bound]) -> Any:
    before = opened(Old)
    old = before.at("k")
    old.count.set(3)
    old.seen.set(OldSeen(at=5, by="me"))
    old.cart.set(OldCart(["a"], gone=8))
    for length in (1, 2):
        old.lengths.append(length)
    old.pages.set("x", 1)
    old.carts.set("y", OldCart(["b"], gone=9))
    old.most.add(4)
    old.all.add("one")
    return before.cut()


def test_b7_every_kind_of_state_is_read_under_the_schema_of_now(opened):
    now = opened(Now, filled(opened)).at("k")
    assert (now.count.get(), type(now.count.get())) == (3.0, float)
    assert now.seen.get() == Seen(by="me", at=5.0)
    assert now.cart.get() == Cart(items=("a",))
    assert list(now.lengths.get()) == [1.0, 2.0]
    assert now.pages.get("x") == 1.0
    assert now.carts.get("y") == Cart(items=("b",))
    assert now.most.get() == 4.0
    now.all.add("two")
    assert now.all.get() == 2


def test_b7_what_was_read_is_kept_under_the_schema_of_now(opened):
    """Else a field that was dropped would come back, of another type, when a later release has one of its name."""
    restored = opened(Now, filled(opened)).cut()
    assert {state: file.states[state] for file in restored for state in ("cart", "count")} == {
        "cart": 'Cart(note: str = "\\"none\\"", items: tuple[str, ...] = "[]")',
        "count": "float",
    }
    last = opened(Last, restored).at("k")
    assert last.cart.get() == LastCart(note="none", gone="fresh")
    assert last.carts.get("y") == LastCart(note="none", gone="fresh")


def test_b7_a_state_of_another_name_is_read_from_where_it_was_kept(opened):
    files = [
        replace(
            file,
            states={"counted" if name == "count" else name: kind for name, kind in file.states.items()},
            kept_as={"counted": "count"},
        )
        for file in filled(opened)
    ]
    now = opened(Renamed, files).at("k")
    assert now.counted.get() == 3
    assert now.cart.get() == OldCart(["a"], gone=8)
