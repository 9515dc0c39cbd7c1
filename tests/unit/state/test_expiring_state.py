"""State that expires, of every kind over both backends: what is over is absent, and does not stay for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.contracts.clock import TimeDomain
from processor.contracts.state_store import StateBackend
from processor.errors import JobError, UserCodeError
from processor.ids import CheckpointId
from processor.operators.aggregates import Count
from processor.operators.aggregating_state import AggregatingState
from processor.state.declarations import State, ValueState, described_states
from processor.state.expiry import Expiry
from processor.state.list_state import ListState
from processor.state.map_state import Mapped, MapState
from processor.state.reducing_state import ReducingState
from processor.state.stamped import apart, joined, left_of_items
from processor.state.sweep import LOOKS_MIN, Sweep
from tests.unit.state.fakes import Bound, Place, SetTimes, keys_of, make_backend

BACKENDS = ("memory", "rocksdb")
TEN = timedelta(milliseconds=10)
READ = Expiry(TEN, reads_renew=True)
BY_EVENT_TIME = Expiry(TEN, by=TimeDomain.EVENT)


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)


def more(left: Cart, right: Cart) -> Cart:
    return Cart(left.items + right.items)


class Function:
    number = ValueState(int, expires_after=TEN)
    maybe = ValueState(cast(Any, int | None), expires_after=TEN)
    cart = ValueState(Cart, expires_after=TEN)
    texts = ListState(str, expires_after=TEN)
    carts = MapState(str, Cart, expires_after=TEN)
    nothing: Mapped[str, int | None] = cast(Any, MapState(str, cast(Any, int | None), expires_after=TEN))
    counts = MapState(int, int, expires_after=TEN)
    largest = ReducingState(int, max, expires_after=TEN)
    all_carts = ReducingState(Cart, more, expires_after=TEN)
    visits = AggregatingState(Count(), expires_after=TEN)
    read_number = ValueState(int, expires_after=READ)
    read_cart = ValueState(Cart, expires_after=READ)
    read_texts = ListState(str, expires_after=READ)
    read_counts = MapState(int, int, expires_after=READ)
    timed = ValueState(int, expires_after=BY_EVENT_TIME)
    lasting = ValueState(int)


class World:
    """One state after another over the same files, and the time it is for all of them."""

    def __init__(self, backend: StateBackend, place: Place) -> None:
        self.backend, self.place, self.times = backend, place, SetTimes()
        self.opened: list[Bound] = []

    def open(self, restored: Any = (), **more: Any) -> Bound:
        request = self.place.request_of(Function, restored, **more)
        self.opened.append(Bound(Function(), self.backend.open(request), self.times))
        return self.opened[-1]

    def at(self, now_ms: int, domain: TimeDomain = TimeDomain.PROCESSING) -> None:
        self.times.now[domain] = now_ms


@pytest.fixture
def world(backend: StateBackend, place: Place) -> Iterator[World]:
    made = World(backend, place)
    yield made
    for bound in made.opened:
        bound.state.close()


def write_all(function: Any) -> None:
    function.number.set(0)
    function.maybe.set(0)
    function.cart.set(Cart())
    function.texts.append("")
    function.carts.set("", Cart())
    function.nothing.set("", None)
    function.counts.set(0, 0)
    function.largest.add(0)
    function.all_carts.add(Cart())
    function.visits.add(None)


def read_all(function: Any) -> list[Any]:
    return [
        function.number.get(),
        function.maybe.get(),
        function.cart.get(),
        function.texts.get(),
        function.carts.get(""),
        function.carts.items(),
        function.nothing.items(),
        "" in function.nothing,
        function.counts.get(0),
        function.counts.keys(),
        function.largest.get(),
        function.all_carts.get(),
        function.visits.get(),
    ]


ALL = [0, 0, Cart(), [""], Cart(), [("", Cart())], [("", None)], True, 0, [0], 0, Cart(), 1]
NONE: list[Any] = [None, None, None, None, None, [], [], False, None, [], None, None, None]


def test_b4_what_is_over_is_absent_to_the_millisecond_and_after_a_restore(world: World) -> None:
    world.at(100)
    bound = world.open()
    write_all(bound.at("k"))
    world.at(109)
    assert read_all(bound.at("k")) == ALL
    files = bound.cut()
    restored = world.open(files)
    assert read_all(restored.at("k")) == ALL
    world.at(110)
    assert read_all(bound.at("k")) == read_all(restored.at("k")) == NONE
    # Written again, it begins anew.
    write_all(restored.at("k"))
    world.at(119)
    assert read_all(restored.at("k")) == ALL
    world.at(120)
    assert read_all(world.open(restored.cut(2)).at("k")) == NONE


def test_what_is_over_adds_nothing_to_what_comes(world: World) -> None:
    world.at(100)
    function = world.open().at("k")
    function.largest.add(9)
    function.visits.add(None)
    function.texts.append("old")
    function.counts.set(1, 1)
    world.at(105)
    function.texts.append("young")
    function.counts.set(2, 2)
    world.at(110)
    function.largest.add(1)
    function.visits.add(None)
    assert (function.largest.get(), function.visits.get()) == (1, 1)
    assert function.texts.get() == ["young"], "each item is over by itself"
    assert function.counts.items() == [(2, 2)], "each entry is over by itself"
    function.counts.clear()
    assert function.counts.items() == []


def test_b4_reading_renews_where_it_was_asked_for(world: World) -> None:
    world.at(100)
    bound = world.open()
    function = bound.at("k")

    def touched() -> tuple[Any, ...]:
        return (
            function.read_number.get(),
            function.read_cart.get(),
            function.read_texts.get(),
            function.read_counts.get(1),
            function.read_counts.items(),
        )

    function.read_number.set(1)
    function.read_cart.set(Cart(["a"]))
    function.read_texts.extend(["a", "b"])
    function.read_counts.set(1, 1)
    function.number.set(1)
    there = (1, Cart(["a"]), ["a", "b"], 1, [(1, 1)])
    for now_ms in (109, 118, 127):
        world.at(now_ms)
        assert touched() == there
        assert (function.number.get() is None) is (now_ms > 109), "others are read and not renewed"
    restored = world.open(bound.cut())
    function = restored.at("k")
    world.at(136)
    assert touched() == there
    world.at(146)
    assert touched() == (None, None, None, None, [])


def test_r27_r28_the_two_times_do_not_meet(world: World) -> None:
    world.at(100)
    world.at(5_000, TimeDomain.EVENT)
    function = world.open().at("k")
    function.timed.set(1)
    function.number.set(1)
    world.at(10_000)
    assert (function.timed.get(), function.number.get()) == (1, None)
    world.at(5_009, TimeDomain.EVENT)
    assert function.timed.get() == 1
    world.at(5_010, TimeDomain.EVENT)
    assert function.timed.get() is None


def test_clear_and_none_are_what_they_are_without_a_time(world: World) -> None:
    function = world.open().at("k")
    write_all(function)
    function.maybe.set(None)
    function.number.clear()
    function.number.clear()
    function.texts.set([])
    function.carts.clear()
    function.largest.clear()
    function.visits.clear()
    found = [function.maybe, function.number, function.texts, function.largest, function.visits]
    assert [state.get() for state in found] == [None] * 5
    assert function.carts.items() == []


def test_what_an_author_holds_is_never_what_is_kept(world: World) -> None:
    function, cart = world.open().at("k"), Cart(["a"])
    function.cart.set(cart)
    function.carts.set("c", cart)
    cart.items.append("later")
    cast(Any, function.cart.get()).items.append("later")
    function.carts.items()[0][1].items.append("later")
    assert (function.cart.get(), function.carts.get("c")) == (Cart(["a"]), Cart(["a"]))


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda f: f.number.set("1"), "declared as int, expires by processing time and was set to str '1'"),
        (lambda f: f.number.set(None), "was set to NoneType"),
        (lambda f: f.cart.set(None), "was set to NoneType"),
        (lambda f: f.texts.append(1), r"declared as ListState\[str\], expires by .* was set to int 1"),
        (lambda f: f.counts.set(1, "1"), "was set to str '1'"),
        (lambda f: f.largest.add("1"), "was set to str '1'"),
    ],
)
def test_a_value_of_another_type_is_refused_and_changes_nothing(world: World, use: Any, says: str) -> None:
    function = world.open().at("k")
    with pytest.raises(UserCodeError, match=says):
        use(function)
    assert read_all(function) == NONE


def test_a_checkpoint_refuses_a_value_that_could_not_be_read_back(world: World) -> None:
    bound = world.open()
    bound.at("k").cart.set(Cart(cast(Any, [1])))
    with pytest.raises(UserCodeError, match=r"'cart' is declared as Cart.*, expires by processing time"):
        bound.cut()


# --- cleaning


def held(world: World, files: Any, table: str) -> int:
    """Entries of a table in the files of one snapshot."""
    found = 0
    for state in files:
        names = {spec.name: spec.kind for spec in world.place.request_of(Function).tables}
        codecs = dict.fromkeys((*names, "timers/event", "timers/processing"), msgspec.Raw)
        codecs |= {f"{name}/removed": msgspec.Raw for name in codecs}
        for entries in world.place.reader().entries(state, state.key_groups, codecs):
            found += len(entries.keys) if entries.table == table else 0
    return found


def test_b4_a_whole_snapshot_leaves_out_what_is_over(world: World) -> None:
    world.at(100)
    bound = world.open()
    for key in range(20):
        write_all(bound.at(key))
        bound.at(key).lasting.set(key)
    world.at(105)
    for key in range(3):
        write_all(bound.at(key))
    world.at(110)
    files = bound.cut()
    # Own files are taken as they are: there it is the sweep that clears up.
    left = 3 if files[0].database is None else 20
    for table in ("number", "cart", "carts", "nothing", "counts", "largest", "visits"):
        assert held(world, files, table) == left, table
    assert held(world, files, "texts") == left
    assert held(world, files, "lasting") == 20
    restored = world.open(files)
    assert [restored.at(key).number.get() for key in range(5)] == [0, 0, 0, None, None]
    assert restored.at(0).texts.get() == [""], "of the list only the item that is left"


def sweep_of(bound: Bound) -> Sweep:
    specs = [state.spec(name) for name, state in vars(Function).items() if isinstance(state, State)]
    return Sweep(bound.state, specs, bound.expiries)


def kept(bound: Bound, name: str) -> int:
    """How many entries a state has, over or not, by looking at each once."""
    return len({place for place, _ in bound.state.some(name, 1_000_000)})


def test_b4_state_that_expires_does_not_grow_for_ever(world: World) -> None:
    """New keys for ever, of which so many are alive: no more than about twice as many are kept."""
    bound = world.open()
    sweep = sweep_of(bound)
    alive = 500
    per_batch = 50
    most = 0
    for batch in range(60):
        world.at(1_000 + batch)
        for key in range(batch * per_batch, (batch + 1) * per_batch):
            function = bound.at(key)
            function.number.set(key)
            function.cart.set(Cart())
            function.texts.append("x")
            function.counts.set(key, key)
        sweep.after_batch()
        if batch % 5 == 4:
            bound.cut(batch)
            bound.state.decided(CheckpointId(batch))
            bound.state.pressed()
        if batch > 25 and batch % 8 == 0:
            most = max(most, *(kept(bound, name) for name in ("number", "cart", "texts", "counts")))
    assert alive <= most <= 3 * alive
    assert [bound.at(key).number.get() for key in (0, 2_999)] == [None, 2_999]
    assert all(bound.at(key).cart.get() == Cart() for key in range(2_550, 3_000))


def test_it_does_not_grow_where_a_batch_writes_a_great_many(tmp_path: Any) -> None:
    """Mutant: looks behind one batch have a limit of their own."""
    place, times = Place(), SetTimes()
    bound = Bound(Function(), make_backend("memory", tmp_path).open(place.request_of(Function)), times)
    sweep = sweep_of(bound)
    per_batch = 6_000
    for batch in range(60):
        times.now[TimeDomain.PROCESSING] = 1_000 + 5 * batch  # so that two batches are alive
        for key in range(batch * per_batch, (batch + 1) * per_batch):
            bound.at(key).number.set(key)
        sweep.after_batch()
    assert 2 * per_batch <= kept(bound, "number") <= 5 * per_batch
    bound.state.close()


def test_what_is_over_goes_without_anything_being_written(world: World) -> None:
    world.at(100)
    bound = world.open()
    sweep = sweep_of(bound)
    for key in range(50):
        bound.at(key).number.set(1)
        bound.at(key).texts.append("old")
        bound.at(key).counts.set(1, 1)
    world.at(105)
    bound.at(0).texts.append("young")
    bound.cut()
    bound.state.pressed()
    world.at(110)
    for _ in range(LOOKS_MIN):
        sweep.after_batch()
    bound.cut(2)  # a store on disk hears of it in the completion
    bound.state.pressed()
    assert (kept(bound, "number"), kept(bound, "counts")) == (0, 0)
    assert kept(bound, "texts") == 1
    assert bound.at(0).texts.get() == ["young"]
    assert left_of_items(dict(bound.state.some("texts", 9))[0], 0) is not None


def test_a_sweep_takes_nothing_that_was_touched_again(world: World) -> None:
    world.at(100)
    bound = world.open()
    sweep = sweep_of(bound)
    for key in range(LOOKS_MIN):
        bound.at(key).number.set(key)
    bound.cut()
    bound.state.pressed()
    world.at(110)
    bound.at(7).number.set(7)  # newer than what the store has of it
    for _ in range(3 * LOOKS_MIN):
        sweep.after_batch()
    assert [bound.at(key).number.get() for key in (6, 7, 8)] == [None, 7, None]


@pytest.mark.parametrize("one", BACKENDS)
@pytest.mark.parametrize("other", BACKENDS)
def test_b4_b5_times_move_between_stores_and_subtasks(one: str, other: str, tmp_path: Any) -> None:
    place, times = Place(), SetTimes()
    before = Bound(Function(), make_backend(one, tmp_path / "one").open(place.request_of(Function)), times)
    keys = [key for index in (0, 1, 2) for key in keys_of(index, 3)]
    for now_ms, some in ((100, keys[::2]), (105, keys[1::2])):
        times.now[TimeDomain.PROCESSING] = now_ms
        for key in some:
            write_all(before.at(key))
    before.cut(1)
    before.state.decided(CheckpointId(1))
    times.now[TimeDomain.PROCESSING] = 107
    before.at(keys[0]).number.set(0)
    files = before.cut(2)
    before.state.close()
    times.now[TimeDomain.PROCESSING] = 112
    for index in range(3):
        request = place.request_of(Function, files, index=index, parallelism=3)
        after = Bound(Function(), make_backend(other, tmp_path / f"other-{index}").open(request), times)
        for number, key in enumerate(keys):
            if key in keys_of(index, 3) and number:
                assert read_all(after.at(key)) == (ALL if number % 2 else NONE)
        if keys[0] in keys_of(index, 3):
            assert (after.at(keys[0]).number.get(), after.at(keys[0]).cart.get()) == (0, None)
        after.state.close()


class Short:
    number = ValueState(int, expires_after=TEN)
    texts = ListState(str, expires_after=TEN)


class Long:
    number = ValueState(int, expires_after=5 * TEN)
    texts = ListState(str, expires_after=Expiry(5 * TEN, reads_renew=True))


def test_how_long_it_lasts_may_change_at_a_restore(backend: StateBackend, place: Place) -> None:
    assert described_states(Short) == described_states(Long)
    times = SetTimes()
    short = Bound(Short(), backend.open(place.request_of(Short)), times)
    short.at("k").number.set(1)
    short.at("k").texts.append("a")
    files = short.cut()
    long = Bound(Long(), backend.open(place.request_of(Long, files)), times)
    times.now[TimeDomain.PROCESSING] += 49
    assert (short.at("k").number.get(), short.at("k").texts.get()) == (None, None)
    assert (long.at("k").number.get(), long.at("k").texts.get()) == (1, ["a"])
    times.now[TimeDomain.PROCESSING] += 1
    assert (long.at("k").number.get(), long.at("k").texts.get()) == (None, ["a"])
    short.state.close()
    long.state.close()


# --- declarations


@pytest.mark.parametrize(
    ("state", "described"),
    [
        (ValueState(int, expires_after=TEN), "int, expires by processing time"),
        (ValueState(int, expires_after=BY_EVENT_TIME), "int, expires by event time"),
        (ListState(int, expires_after=READ), "ListState[int], expires by processing time"),
        (MapState(str, int, expires_after=TEN), "MapState[str, int], expires by processing time"),
        (ReducingState(int, max, expires_after=TEN), "ReducingState[int], expires by processing time"),
        (AggregatingState(Count(), expires_after=TEN), "AggregatingState[int], expires by processing time"),
    ],
)
def test_by_what_it_expires_is_part_of_its_description_and_how_long_is_not(
    state: State[Any], described: str
) -> None:
    """It is in manifests: changing one makes old checkpoints look incompatible."""
    assert state.described() == described


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        (timedelta(0), "expire after datetime.timedelta"),
        (timedelta(microseconds=999), "expire after"),
        (-TEN, "expire after"),
        (10, "expire after 10"),
        ("1h", "expire after '1h'"),
    ],
)
def test_a_duration_that_is_none_is_refused(given_: Any, says: str) -> None:
    with pytest.raises(JobError, match=says):
        ValueState(int, expires_after=given_)


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(JobError, match="expire by 'event'"):
        Expiry(TEN, by=cast(Any, "event"))


@settings(deadline=None, max_examples=50)
@given(touched_ms=st.integers(-(2**63), 2**63 - 1), value=st.binary(max_size=9))
def test_the_time_of_a_pair_is_read_whoever_encoded_it(touched_ms: int, value: bytes) -> None:
    encoded = msgspec.msgpack.encode(value)
    pair = joined(touched_ms, encoded)
    assert pair == msgspec.msgpack.encode((touched_ms, value))
    found_ms, value_at = apart(pair)
    assert (found_ms, pair[value_at:]) == (touched_ms, encoded)
    for width in (b"\xd3",):  # as another encoder may write it
        wide = b"\x92" + width + touched_ms.to_bytes(8, "big", signed=True) + encoded
        assert apart(wide) == (touched_ms, 10)


acts = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("ab"), st.integers(0, 5)),
        st.tuples(st.just("set"), st.sampled_from("ab"), st.integers(0, 5)),
        st.tuples(st.just("remove"), st.sampled_from("ab"), st.integers(0, 5)),
        st.tuples(st.just("pass"), st.integers(1, 12)),
        st.tuples(st.sampled_from(["cut", "run", "discard", "sweep", "restore"])),
    ),
    max_size=40,
)


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=30)
@given(history=acts)
def test_b4_at_every_moment_there_is_what_was_touched_last_within_the_time(
    name: str, history: list[Any], tmp_path_factory: Any
) -> None:
    """Against a dict of times, over a cache so small that entries leave it as soon as they may."""
    place, times = Place(), SetTimes()
    backend = make_backend(name, tmp_path_factory.mktemp("local"), cache_entries_max=9)
    bound = Bound(Function(), backend.open(place.request_of(Function)), times)
    sweep = sweep_of(bound)
    model: dict[str, dict[int, int]] = {"a": {}, "b": {}}
    now_ms = times.now[TimeDomain.PROCESSING]
    waiting: list[Any] = []
    checkpoint = 0
    for act in history:
        match act:
            case ["set", key, entry]:
                bound.at(key).counts.set(entry, now_ms)
                bound.at(key).texts.append(str(entry))
                model[key][entry] = now_ms
            case ["remove", key, entry]:
                bound.at(key).counts.remove(entry)
                model[key].pop(entry, None)
            case ["pass", by_ms]:
                now_ms += by_ms
                times.now[TimeDomain.PROCESSING] = now_ms
            case ["cut"]:
                checkpoint += 1
                waiting.append(bound.state.cut(CheckpointId(checkpoint), bound.expiries.over_ms()))
            case ["run"] if waiting:
                waiting.pop(0).run()
            case ["discard"] if waiting:
                waiting.pop(0).discard()
            case ["sweep"]:
                bound.state.pressed()
                for _ in range(LOOKS_MIN // 16):
                    sweep.after_batch()
            case ["restore"]:
                for completion in waiting:
                    completion.run()
                waiting.clear()
                checkpoint += 1
                files = bound.cut(checkpoint)
                bound.state.close()
                bound = Bound(Function(), backend.open(place.request_of(Function, files)), times)
                sweep = sweep_of(bound)
        for key, touched in model.items():
            expected = sorted((entry, at) for entry, at in touched.items() if at > now_ms - 10)
            assert bound.at(key).counts.items(ordered=True) == expected
    bound.state.close()
