"""Maps over both backends: entries one by one, whole maps, what is under way, and restores into any store."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.contracts.state_store import StateBackend
from processor.errors import JobError, UserCodeError
from processor.ids import CheckpointId
from processor.state.declarations import described_states
from processor.state.map_state import Mapped, MapState
from tests.unit.state.fakes import Bound, CompletionThread, Place, keys_of, make_backend

BACKENDS = ("memory", "rocksdb")


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)


class Function:
    texts = MapState(str, int)
    numbers = MapState(int, str)
    raw = MapState(bytes, int)
    flags = MapState(bool, int)
    ids = MapState(UUID, int)
    moments = MapState(datetime, int)
    pairs = MapState(tuple[str, int], int)
    carts = MapState(str, Cart)
    maybe: Mapped[str, int | None] = cast(Any, MapState(str, cast(Any, int | None)))


@pytest.fixture
def opened(backend: StateBackend, place: Place) -> Iterator[Callable[..., Bound]]:
    made: list[Bound] = []

    def open_(restored: Any = (), **more: Any) -> Bound:
        made.append(Bound(Function(), backend.open(place.request_of(Function, restored, **more))))
        return made[-1]

    yield open_
    for bound in made:
        bound.state.close()


def test_absent_null_falsy_and_empty_are_told_apart(opened):
    bound = opened()
    function = bound.at("k")
    function.maybe.set("null", None)
    function.maybe.set("zero", 0)
    function.texts.set("", 0)
    function.numbers.set(0, "")
    function.raw.set(b"", 0)
    function.flags.set(False, 0)
    function.carts.set("empty", Cart())

    def check(function: Function) -> None:
        assert ("null" in function.maybe, "zero" in function.maybe, "none" in function.maybe) == (
            True,
            True,
            False,
        )
        assert (function.maybe.get("null"), function.maybe.get("zero")) == (None, 0)
        assert function.maybe.items(ordered=True) == [("null", None), ("zero", 0)]
        assert (function.texts.items(), function.texts.get("x")) == ([("", 0)], None)
        assert (function.numbers.items(), 1 in function.numbers) == ([(0, "")], False)
        assert (function.raw.items(), function.flags.items()) == ([(b"", 0)], [(False, 0)])
        assert (function.carts.get("empty"), function.carts.get("none")) == (Cart(), None)

    check(function)
    files = bound.cut()
    check(bound.at("k"))
    restored = opened(files)
    check(restored.at("k"))
    function = restored.at("k")
    function.maybe.remove("null")
    function.texts.clear()
    function.maybe.remove("never")
    assert ("null" in function.maybe, "" in function.texts, function.texts.keys()) == (False, False, [])
    again = opened(restored.cut(2)).at("k")
    assert ("null" in again.maybe, "" in again.texts, again.maybe.items()) == (False, False, [("zero", 0)])


def test_keys_come_in_their_own_order_when_asked_for(opened):
    bound = opened()
    numbers = [0, -1, 1, 255, 256, -256, 2**63, 2**80, -(2**80), 70_000]
    texts = ["b", "", "é", "a\x00", "a", "\U0001f600", "\uffff"]
    pairs = [("b", 1), ("a", 300), ("a", -2), ("ab", 0), ("", 5)]
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number) for number in (5, 0, -9)]

    def check(function: Function) -> None:
        assert function.numbers.keys(ordered=True) == sorted(numbers)
        assert function.numbers.values(ordered=True) == [str(number) for number in sorted(numbers)]
        assert function.texts.keys(ordered=True) == sorted(texts)
        assert function.pairs.items(ordered=True) == [(pair, pair[1]) for pair in sorted(pairs)]
        assert function.moments.keys(ordered=True) == sorted(moments)
        assert function.ids.keys(ordered=True) == [UUID(int=1), UUID(int=256)]
        assert function.flags.keys(ordered=True) == [False, True]
        assert sorted(function.numbers) == sorted(function.numbers.keys()) == sorted(numbers)

    function = bound.at("k")
    for number in numbers:
        function.numbers.set(number, str(number))
    for text in texts:
        function.texts.set(text, 1)
    for pair in pairs:
        function.pairs.set(pair, pair[1])
    for moment in moments:
        function.moments.set(moment.astimezone(timezone(timedelta(hours=2))), 1)
    for number in (256, 1):
        function.ids.set(UUID(int=number), number)
    function.flags.set(True, 1)
    function.flags.set(False, 1)
    check(function)
    files = bound.cut()
    check(function)
    check(opened(files).at("k"))


def test_maps_of_keys_whose_bytes_begin_alike_do_not_meet(opened):
    """A key's bytes may be the start of another's, and the key of an entry may look like the end of a key."""
    keys: list[Any] = [
        "",
        "a",
        "ab",
        "a\x00",
        b"a",
        b"a\xff",
        b"\xff\xff",
        0,
        1,
        True,
        False,
        (),
        ("a",),
        ("a", "b"),
        2**80,
    ]
    bound = opened()
    for number, key in enumerate(keys):
        bound.at(key).texts.set("b", number)
        bound.at(key).texts.set("", number)
    files = bound.cut()
    restored = opened(files)
    for state in (bound, restored):
        for number, key in enumerate(keys):
            assert state.at(key).texts.items(ordered=True) == [("", number), ("b", number)], key
        state.at("a").texts.clear()
        assert state.at("a").texts.keys() == []
        assert state.at("ab").texts.keys(ordered=True) == ["", "b"]


def test_what_an_author_holds_is_never_what_is_kept(opened):
    bound = opened()
    function, cart = bound.at("k"), Cart(["a"])
    function.carts.set("c", cart)
    cart.items.append("later")
    held = function.carts.items()
    held[0][1].items.append("later")
    held.clear()
    cast(Any, function.carts.get("c")).items.append("later")
    assert function.carts.values() == [Cart(["a"])]
    completion = bound.state.cut(CheckpointId(1))
    function.carts.set("c", Cart(["b"]))
    assert opened(completion.run()).at("k").carts.get("c") == Cart(["a"])


def test_a_map_may_be_changed_while_it_is_looked_through(opened):
    texts = opened().at("k").texts
    for number in range(10):
        texts.set(str(number), number)
    for key, value in texts.items():
        texts.set(key + "x", value)
        texts.remove(key)
    assert texts.keys(ordered=True) == [f"{number}x" for number in range(10)]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (
            lambda f: f.texts.set(1, 1),
            r"declared as MapState\[str, int\] and was asked for the key 1 of type int",
        ),
        (lambda f: f.texts.get(None), "the key None of type NoneType"),
        (lambda f: f.numbers.remove(True), "the key True of type bool"),
        (lambda f: 1 in f.flags, "the key 1 of type int"),
        (lambda f: f.pairs.set(("a", "b"), 1), "of type tuple: Expected `int`"),
        (lambda f: f.pairs.get(("a",)), "of type tuple: Expected `array` of length 2"),
        (lambda f: f.moments.get(datetime(2026, 1, 1)), "without a time zone"),
        (lambda f: f.texts.set("a", "b"), r"declared as MapState\[str, int\] and was set to str 'b'"),
        (lambda f: f.texts.set("a", None), "was set to NoneType"),
        (lambda f: f.carts.set("a", None), "was set to NoneType"),
    ],
)
def test_what_is_not_of_the_declared_types_is_refused_and_changes_nothing(opened, use, says):
    function = opened().at("k")
    with pytest.raises(UserCodeError, match=says):
        use(function)
    assert [function.texts.keys(), function.pairs.keys(), function.carts.keys()] == [[], [], []]


def test_a_checkpoint_refuses_an_entry_that_could_not_be_read_back(opened):
    bound = opened()
    bound.at("k").carts.set("c", Cart(cast(Any, [1])))
    with pytest.raises(UserCodeError, match="'carts'"):
        bound.cut()


@pytest.mark.parametrize(
    "keys", [float, list[int], int | None, str | int, tuple[float, ...], tuple[()], Cart]
)
def test_keys_without_an_order_of_their_own_are_refused(keys: Any) -> None:
    wrong = type("Wrong", (), {"thing": MapState(keys, int)})
    with pytest.raises(JobError, match="the state 'thing' of Wrong: keys of a map cannot be of type"):
        described_states(wrong)


def test_a_map_is_described_by_both_its_types() -> None:
    """It is in manifests: changing one makes old checkpoints look incompatible."""
    assert MapState(str, int).described() == "MapState[str, int]"
    assert MapState(tuple[str, int], list[int]).described() == "MapState[tuple[str, int], list[int]]"


@pytest.mark.parametrize("one", BACKENDS)
@pytest.mark.parametrize("other", BACKENDS)
def test_r27_maps_move_between_stores_by_the_key_groups_of_their_keys(one, other, tmp_path):
    place = Place()
    before = Bound(Function(), make_backend(one, tmp_path / "one").open(place.request_of(Function)))
    keys = [key for index in (0, 1, 2) for key in keys_of(index, 3)]
    for key in keys:
        for number in range(3):
            before.at(key).numbers.set(number - key, str(number))
            before.at(key).carts.set(str(number), Cart([str(key)]))
    first = before.cut(1)
    before.state.decided(CheckpointId(1))
    for key in keys:
        before.at(key).numbers.remove(-key)
        before.at(key).numbers.set(1 - key, "changed")
    files = before.cut(2)
    assert len(files) == len(first) + 1, "the second file holds only what changed"
    before.state.close()
    for index in range(3):
        request = place.request_of(Function, files, index=index, parallelism=3)
        after = Bound(Function(), make_backend(other, tmp_path / f"other-{index}").open(request))
        mine = keys_of(index, 3)
        for key in keys:
            there = key in mine
            expected = [(1 - key, "changed"), (2 - key, "2")] if there else []
            assert after.at(key).numbers.items(ordered=True) == expected
            assert after.at(key).carts.get("1") == (Cart([str(key)]) if there else None)
        after.state.close()


entries = st.tuples(st.sampled_from("ab"), st.integers(0, 5))
acts = st.lists(
    st.one_of(
        st.tuples(st.just("set"), entries, st.integers(0, 9)),
        st.tuples(st.just("set"), entries, st.integers(0, 9)),
        st.tuples(st.just("remove"), entries),
        st.tuples(st.just("clear"), st.sampled_from("ab")),
        st.tuples(st.sampled_from(["cut", "run", "discard", "settle", "restore"])),
    ),
    max_size=40,
)


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=60)
@given(history=acts)
def test_a_map_is_whole_at_every_moment_between_cut_and_completion(name, history, tmp_path_factory):
    """Against a dict, over a cache so small that entries leave it as soon as they may."""
    place = Place()
    backend = make_backend(name, tmp_path_factory.mktemp("local"), cache_entries_max=9)
    bound = Bound(Function(), backend.open(place.request_of(Function)))
    model: dict[str, dict[int, str]] = {"a": {}, "b": {}}
    waiting: list[Any] = []
    checkpoint = 0
    for act in history:
        match act:
            case ["set", (key, entry), value]:
                bound.at(key).numbers.set(entry, str(value))
                model[key][entry] = str(value)
            case ["remove", (key, entry)]:
                bound.at(key).numbers.remove(entry)
                model[key].pop(entry, None)
            case ["clear", key]:
                bound.at(key).numbers.clear()
                model[key].clear()
            case ["cut"]:
                checkpoint += 1
                waiting.append(bound.state.cut(CheckpointId(checkpoint)))
            case ["run"] if waiting:
                waiting.pop(0).run()
            case ["discard"] if waiting:
                waiting.pop(0).discard()
            case ["settle"]:
                bound.state.pressed()
            case ["restore"]:
                for completion in waiting:
                    completion.run()
                waiting.clear()
                checkpoint += 1
                files = bound.cut(checkpoint)
                bound.state.close()
                bound = Bound(Function(), backend.open(place.request_of(Function, files)))
        for key, expected in model.items():
            assert bound.at(key).numbers.items(ordered=True) == sorted(expected.items())
    bound.state.close()


@pytest.mark.parametrize("name", BACKENDS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_maps_are_whole_while_a_completion_runs_on_another_thread(name, seed, tmp_path_factory):
    chance = random.Random(seed)
    place = Place()
    backend = make_backend(name, tmp_path_factory.mktemp("local"), cache_entries_max=150)
    bound = Bound(Function(), backend.open(place.request_of(Function)))
    model: dict[int, dict[int, str]] = {key: {} for key in range(8)}
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    lane = CompletionThread()
    try:
        for number in range(1, 20):
            for _ in range(chance.randrange(300)):
                key, entry = chance.randrange(8), chance.randrange(60)
                numbers = bound.at(key).numbers
                if chance.random() < 0.1:
                    assert numbers.items(ordered=True) == sorted(model[key].items())
                assert numbers.get(entry) == model[key].get(entry)
                if chance.random() < 0.3:
                    numbers.remove(entry)
                    model[key].pop(entry, None)
                elif chance.random() < 0.02:
                    numbers.clear()
                    model[key].clear()
                else:
                    numbers.set(entry, str(number))
                    model[key][entry] = str(number)
            bound.state.pressed()
            completion = bound.state.cut(CheckpointId(number))
            lane.put(completion, {key: dict(entries) for key, entries in model.items()})
            if chance.random() < 0.3:
                completion.discard()  # perhaps before it runs, perhaps in its middle, perhaps after
    finally:
        lane.join()
        sys.setswitchinterval(switch)
    assert not lane.failures, lane.failures
    for files, expected in lane.results[-4:]:
        if files:
            restored = Bound(Function(), backend.open(place.request_of(Function, files)))
            for key, entries_of_key in expected.items():
                assert restored.at(key).numbers.items(ordered=True) == sorted(entries_of_key.items())
            restored.state.close()
    bound.state.close()
