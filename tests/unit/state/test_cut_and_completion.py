"""Cuts, completions and discards of one keyed state, on both backends."""

from __future__ import annotations

from typing import Any

import pytest

from processor.errors import DamagedFile, EngineBug
from processor.fault_points import FaultPoint
from processor.ids import CheckpointId, KeyGroupRange, key_groups_of
from processor.records.key_groups import key_group
from tests.unit.state.fakes import MAX_PARALLELISM, keys_of, make_backend


def cut(state: Any, number: int) -> Any:
    return state.cut(CheckpointId(number))


def test_a_snapshot_holds_the_state_of_its_cut_and_nothing_after(open_state):
    state = open_state({"n": int})
    table = state.table("n")
    table.put("kept", 1)
    table.put("changed", 1)
    table.put("removed", 1)
    completion = cut(state, 1)
    table.put("changed", 2)
    table.remove("removed")
    table.put("new", 2)
    old = open_state({"n": int}, completion.run()).table("n")
    assert [old.get(key) for key in ("kept", "changed", "removed", "new")] == [1, 1, 1, None]
    new = open_state({"n": int}, cut(state, 2).run()).table("n")
    assert [new.get(key) for key in ("kept", "changed", "removed", "new")] == [1, 2, None, 2]


def test_snapshots_are_whole_also_when_nothing_changed(open_state):
    state = open_state({"n": int})
    state.table("n").put("k", 1)
    cut(state, 1).run()
    assert open_state({"n": int}, cut(state, 2).run()).table("n").get("k") == 1


def test_a_state_file_says_what_it_holds(open_state, place):
    state = open_state({"n": int}, index=1, parallelism=3)
    (file,) = cut(state, 1).run()
    assert file.step == "count"
    assert file.key_groups == key_groups_of(1, 3, MAX_PARALLELISM)
    assert file.states == {"n": "int"}
    place.files.verify(file.file)


def test_r22_two_snapshots_never_share_a_name(open_state):
    state = open_state({"n": int})
    names = {cut(state, number).run()[0].file.name for number in range(1, 6)}
    assert len(names) == 5


@pytest.mark.parametrize("discards", [1, 3])
def test_b3_a_discarded_completion_is_folded_into_the_next(open_state, place, discards):
    state = open_state({"n": int})
    table = state.table("n")
    for number in range(1, discards + 1):
        table.put(f"k{number}", number)
        table.put("latest", number)
        completion = cut(state, number)
        completion.discard()
        completion.discard()
        assert completion.run() == ()
    assert place.files.content == {}
    assert [table.get(f"k{number}") for number in range(1, discards + 1)] == list(range(1, discards + 1))
    table.put("last", 9)
    restored = open_state({"n": int}, cut(state, 99).run()).table("n")
    assert [restored.get(f"k{number}") for number in range(1, discards + 1)] == list(range(1, discards + 1))
    assert restored.get("latest") == discards
    assert restored.get("last") == 9


@pytest.mark.parametrize("steps", range(6))
def test_b3_a_completion_discarded_half_way_loses_nothing(open_state, place, steps):
    state = open_state({"n": int, "m": int})
    for number in range(1_500):
        state.table("n").put(number, number)
        state.table("m").put(number, -number)
    first = cut(state, 1)
    work = first.steps()
    for _ in range(steps):
        next(work, None)
    state.table("n").put(0, 77)
    first.discard()
    assert next(work, None) is None
    assert state.table("n").get(3) == 3
    restored = open_state({"n": int, "m": int}, cut(state, 2).run())
    assert restored.table("n").get(0) == 77
    assert all(restored.table("n").get(number) == number for number in range(1, 1_500))
    assert all(restored.table("m").get(number) == -number for number in range(1_500))


def test_discard_after_run_leaves_the_file_to_those_who_condemn_files(open_state, place):
    state = open_state({"n": int})
    state.table("n").put("k", 1)
    completion = cut(state, 1)
    (file,) = completion.run()
    completion.discard()
    place.files.verify(file.file)


def test_completions_out_of_order_are_a_bug_of_the_engine(open_state):
    state = open_state({"n": int})
    state.table("n").put("k", 1)
    first = cut(state, 1)
    cut(state, 2).run()
    with pytest.raises(EngineBug, match="order of cuts"):
        first.run()


def test_a_completion_of_a_closed_state_writes_nothing(open_state, place):
    state = open_state({"n": int})
    state.table("n").put("k", 1)
    completion = cut(state, 1)
    work = completion.steps()
    next(work)
    state.close()
    state.close()
    assert next(work, None) is None
    assert cut_files(place) == []


def cut_files(place: Any) -> list[str]:
    return place.files.names("")


def test_b3_a_failed_write_of_the_file_keeps_the_state_and_the_next_completion_writes_it(open_state, place):
    state = open_state({"n": int})
    state.table("n").put("k", 1)
    completion = cut(state, 1)
    place.files.content["a1/count-0/00000000.state"] = b"somebody was here"
    with pytest.raises(DamagedFile):
        completion.run()
    completion.discard()
    assert state.table("n").get("k") == 1
    assert open_state({"n": int}, cut(state, 2).run()).table("n").get("k") == 1


def test_b5_r27_state_moves_by_ranges_of_key_groups(open_state):
    state = open_state({"n": int})
    keys: list[Any] = [f"user{number}" for number in range(300)] + list(range(300)) + [b"x", "", b""]
    for number, key in enumerate(keys):
        state.table("n").put(key, number)
    snapshot = cut(state, 1).run()
    parts = [open_state({"n": int}, snapshot, index=index, parallelism=5) for index in range(5)]
    for number, key in enumerate(keys):
        holders = [index for index, part in enumerate(parts) if part.table("n").get(key) == number]
        group = key_group(key, MAX_PARALLELISM)
        assert holders == [i for i in range(5) if group in key_groups_of(i, 5, MAX_PARALLELISM)]
    # And back together, from five files.
    files = [file for part in parts for file in cut(part, 1).run()]
    assert {file.key_groups for file in files} == {key_groups_of(i, 5, MAX_PARALLELISM) for i in range(5)}
    whole = open_state({"n": int}, files)
    assert all(whole.table("n").get(key) == number for number, key in enumerate(keys))


@pytest.mark.parametrize("kind", [int, list[int]])
def test_b1_b2_a_snapshot_of_either_backend_restores_into_the_other(tmp_path, place, kind):
    value = 5 if kind is int else [5]
    snapshot: Any = ()
    for number, name in enumerate(("memory", "rocksdb", "memory", "rocksdb"), 1):
        state = make_backend(name, tmp_path).open(place.request({"v": kind}, snapshot))
        if number > 1:
            assert state.table("v").get("k") == value
            assert state.table("v").get(("a", 1)) == value
        state.table("v").put("k", value)
        state.table("v").put(("a", 1), value)
        state.timers.add_event("k", 10)
        snapshot = cut(state, number).run()
        state.close()


def test_a_damaged_snapshot_is_refused_by_name(open_state, place):
    state = open_state({"n": int})
    state.table("n").put("k", 1)
    (file,) = cut(state, 1).run()
    place.files.content[file.file.name] = b"x" + place.files.content[file.file.name][1:]
    with pytest.raises(DamagedFile, match=file.file.name):
        open_state({"n": int}, [file])


def test_a_fault_hook_is_called_in_the_middle_of_a_restore(open_state):
    state = open_state({"n": int})
    state.table("n").put("k", 1)
    snapshot = cut(state, 1).run()
    seen: list[FaultPoint] = []
    open_state({"n": int}, snapshot, faults=seen.append)
    assert seen == [FaultPoint.RECOVERY_STATE_HALF_READ]


def test_r27_a_key_of_another_subtask_is_found_before_a_snapshot_holds_it(open_state):
    """A rescaled job would look for it elsewhere, and its state would be gone without a word."""
    state = open_state({"n": int}, index=0, parallelism=2)
    stray = next(key for key in range(100) if key not in set(keys_of(0, 2)))
    state.table("n").put(stray, 1)
    with pytest.raises(EngineBug, match="key groups"):
        cut(state, 1).run()


def test_b1_memory_is_never_pressed(tmp_path, place):
    state = make_backend("memory", tmp_path).open(place.request({"n": int}))
    for number in range(5_000):
        state.table("n").put(number, number)
    assert not state.pressed()


def test_b2_rocksdb_is_pressed_when_the_cache_is_full_of_unwritten_state_and_free_after_the_completion(
    tmp_path, place
):
    state = make_backend("rocksdb", tmp_path, cache_entries_max=100).open(place.request({"n": int}))
    for number in range(99):
        state.table("n").put(number, number)
    assert not state.pressed()
    state.table("n").put(99, 99)
    assert state.pressed()
    completion = cut(state, 1)
    assert state.pressed()  # frozen is still unwritten
    completion.run()
    assert not state.pressed()
    state.close()


def test_key_groups_of_a_request_may_be_narrower_than_a_file(open_state):
    state = open_state({"n": int})
    for number in range(100):
        state.table("n").put(number, number)
    snapshot = cut(state, 1).run()
    assert snapshot[0].key_groups == KeyGroupRange(0, MAX_PARALLELISM)
    part = open_state({"n": int}, snapshot, index=3, parallelism=4)
    held = {number for number in range(100) if part.table("n").get(number) is not None}
    assert held == {n for n in range(100) if key_group(n, MAX_PARALLELISM) in key_groups_of(3, 4, 16)}
