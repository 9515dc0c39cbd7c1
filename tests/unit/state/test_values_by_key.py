"""What both backends promise about values: absent, falsy, deleted, keys that Python takes for one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import msgspec
import pytest

from processor.errors import JobError, UserCodeError
from processor.ids import CheckpointId
from processor.state.stored_keys import author_key, normalise, normalise_key

CP = CheckpointId(1)


def run_cut(state: Any, checkpoint: int = 1) -> Any:
    return state.cut(CheckpointId(checkpoint)).run()


def test_case_27_get_after_delete_in_one_batch_is_none_then_the_new_value(open_state):
    state = open_state({"n": int})
    table = state.table("n")
    table.put("k", 1)
    run_cut(state)  # the old value lies in the store
    assert table.get("k") == 1
    table.remove("k")
    assert table.get("k") is None
    table.put("k", 2)
    assert table.get("k") == 2
    table.remove("k")
    assert table.get("k") is None
    restored = open_state({"n": int}, run_cut(state, 2))
    assert restored.table("n").get("k") is None


def test_a_deletion_hides_the_stored_value_while_it_is_frozen(open_state):
    state = open_state({"n": int})
    table = state.table("n")
    table.put("k", 1)
    run_cut(state)
    table.remove("k")
    completion = state.cut(CheckpointId(2))
    assert table.get("k") is None
    completion.run()
    assert table.get("k") is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 0),
        (str, ""),
        (bytes, b""),
        (bool, False),
        (float, 0.0),
        (list[int], []),
        (dict[str, int], {}),
        (tuple[int, ...], ()),
    ],
)
def test_falsy_values_are_values_and_not_absence(open_state, kind, value):
    state = open_state({"v": kind})
    table = state.table("v")
    assert table.get("k") is None
    table.put("k", value)
    assert table.get("k") == value
    assert type(table.get("k")) is type(value)
    restored = open_state({"v": kind}, run_cut(state))
    assert restored.table("v").get("k") == value
    assert type(restored.table("v").get("k")) is type(value)


EVERY_KEY: list[Any] = [
    "",
    b"",
    0,
    False,
    1,
    True,
    "1",
    b"1",
    "0",
    -1,
    2**63,
    2**64 - 1,
    -(2**63),
    2**80,
    (1, "a"),
    (True, "a"),
    (),
    ("",),
    (b"",),
    (0,),
    (False,),
    UUID(int=0),
    UUID(int=1),
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    ("a", datetime(2026, 1, 2, tzinfo=UTC)),
    "é\x00\U0001f600",
    b"\xff\x00",
]


def test_case_51_falsy_keys_and_keys_that_python_takes_for_one_are_keys_of_their_own(open_state):
    state = open_state({"n": int})
    stored = normalise(EVERY_KEY)
    assert len(set(stored)) == len(EVERY_KEY)
    for number, key in enumerate(stored):
        state.table("n").put(key, number)
    for number, key in enumerate(normalise(EVERY_KEY)):
        assert state.table("n").get(key) == number
    restored = open_state({"n": int}, run_cut(state))
    for number, key in enumerate(normalise(EVERY_KEY)):
        assert restored.table("n").get(key) == number, key


def test_stored_keys_give_the_author_keys_back_with_their_types():
    for key in EVERY_KEY:
        back = author_key(normalise_key(key))
        assert back == key
        assert type(back) is type(key)
    nested: Any = author_key(normalise_key((True, 1)))
    assert [type(part) for part in nested] == [bool, int]


def test_normalising_twice_changes_nothing():
    once = normalise(EVERY_KEY)
    assert [normalise_key(key) for key in once] == list(once)


def test_a_batch_of_plain_keys_is_handed_back_itself():
    keys: list[Any] = ["a", "b", 3, b"c"]
    assert normalise(keys) is keys


def test_one_moment_is_one_key_whatever_its_time_zone():
    here = datetime(2026, 5, 5, 12, tzinfo=timezone(timedelta(hours=2)))
    assert normalise_key(here) == normalise_key(datetime(2026, 5, 5, 10, tzinfo=UTC))


@pytest.mark.parametrize("key", [None, 1.0, ["a"], ("a", None), datetime(2026, 1, 1)])
def test_what_cannot_be_a_key_is_refused_rather_than_taken_for_another(key: Any):
    with pytest.raises(JobError):
        normalise(("a", key))


@dataclass
class Basket:
    items: list[str]


@dataclass(frozen=True)
class Seen:
    at_ms: int
    page: str


class Total(msgspec.Struct, frozen=True):
    cents: int
    pages: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("kind", "make", "mutate"),
    [
        (list[int], lambda: [1], lambda v: v.append(2)),
        (dict[str, int], lambda: {"a": 1}, lambda v: v.update(b=2)),
        (set[int], lambda: {1}, lambda v: v.add(2)),
        (Basket, lambda: Basket(["a"]), lambda v: v.items.append("b")),
        (tuple[list[int], ...], lambda: ([1],), lambda v: v[0].append(2)),
    ],
)
def test_a_value_changed_in_place_without_set_changes_no_state(open_state, kind, make, mutate):
    """And the cut between get and set, which is where it would end up in the wrong checkpoint."""
    state = open_state({"v": kind})
    table = state.table("v")
    given = make()
    table.put("k", given)
    mutate(given)
    assert table.get("k") == make()
    completion = state.cut(CP)
    taken = table.get("k")
    mutate(taken)
    assert table.get("k") == make()
    table.put("k", taken)
    assert table.get("k") == taken != make()
    first = completion.run()
    assert open_state({"v": kind}, first).table("v").get("k") == make()
    assert open_state({"v": kind}, run_cut(state, 2)).table("v").get("k") == taken


@pytest.mark.parametrize(
    ("kind", "value"), [(Seen, Seen(1, "a")), (Total, Total(5, ("a",))), (str, "x"), (int | None, 3)]
)
def test_records_come_back_equal_and_of_their_class(open_state, kind, value):
    state = open_state({"v": kind})
    state.table("v").put("k", value)
    back = open_state({"v": kind}, run_cut(state)).table("v").get("k")
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "7"),
        (int, True),
        (int, 1.5),
        (str, b"x"),
        (bool, 1),
        (Seen, Total(1)),
        (int, None),
        (float, "1"),
    ],
)
def test_a_value_of_another_type_is_refused_by_set_with_state_value_and_remedy(open_state, kind, value):
    state = open_state({"total": kind})
    with pytest.raises(UserCodeError, match=r"state 'total' is declared as .*Set a value"):
        state.table("total").put("k", value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (list[int], ["a"]),
        (Seen, Seen("not a number", "a")),  # type: ignore[arg-type]
        (tuple[int, str], (1, 2)),
        (int, 2**70),
    ],
)
def test_a_value_that_cannot_be_read_back_never_gets_into_a_snapshot(open_state, place, kind, value):
    """A checkpoint with it would be decided, and no restart could ever succeed."""
    state = open_state({"total": kind})
    state.table("total").put("k", value)
    completion = state.cut(CP)
    with pytest.raises(UserCodeError, match="state 'total'"):
        completion.run()
    assert place.files.content == {}


def test_tables_of_one_step_do_not_mix(open_state):
    state = open_state({"a": int, "b": str, "c": list[int]})
    state.table("a").put("k", 1)
    state.table("b").put("k", "x")
    assert state.table("c").get("k") is None
    restored = open_state({"a": int, "b": str, "c": list[int]}, run_cut(state))
    assert restored.table("a").get("k") == 1
    assert restored.table("b").get("k") == "x"
    assert restored.table("c").get("k") is None
