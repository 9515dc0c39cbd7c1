"""Checkpoints that overlap: what a snapshot builds on, whatever becomes of those before it (R22, design 0003)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.ids import CheckpointId
from processor.state import snapshot as snapshots


def cut(state: Any, number: int) -> Any:
    return state.cut(CheckpointId(number))


def decided(state: Any, number: int) -> None:
    state.decided(CheckpointId(number))


def names(files: Any) -> set[str]:
    return {ref.name for file in files for ref in file.files()}


def test_r22_a_cut_builds_on_the_decided_one_and_holds_what_changed_in_those_that_are_not(open_state):
    state = open_state({"n": int})
    table = state.table("n")
    table.put("first", 1)
    first = cut(state, 1)
    base = names(first.run())
    decided(state, 1)
    table.put("second", 2)
    second = cut(state, 2)
    table.put("third", 3)
    table.remove("first")
    third = cut(state, 3)
    second_files, third_files = second.run(), third.run()
    shared = names(second_files) & names(third_files)
    assert shared
    assert shared <= base, "what only the second has may come to nothing"
    restored = open_state({"n": int}, third_files).table("n")
    assert [restored.get(key) for key in ("first", "second", "third")] == [None, 2, 3]
    restored = open_state({"n": int}, second_files).table("n")
    assert [restored.get(key) for key in ("first", "second", "third")] == [1, 2, None]


def test_c6_a_full_snapshot_lists_nothing_that_was_there_and_the_next_builds_on_it(open_state):
    state = open_state({"n": int})
    state.table("n").put("first", 1)
    base = names(cut(state, 1).run())
    decided(state, 1)
    state.table("n").put("second", 2)
    state.start_anew()
    full = cut(state, 2).run()
    assert not names(full) & base
    state.table("n").put("third", 3)
    again = cut(state, 3).run()
    assert not names(again) & (base | names(full)), "it may come to nothing: so the next is full, too"
    decided(state, 3)
    state.table("n").put("fourth", 4)
    last = cut(state, 4).run()
    assert names(last) & names(again)
    restored = open_state({"n": int}, last).table("n")
    assert [restored.get(key) for key in ("first", "second", "third", "fourth")] == [1, 2, 3, 4]


class Life:
    """One keyed state through overlapping checkpoints, some decided in order, some given up, some failed."""

    def __init__(self, open_state: Any) -> None:
        self.open_state = open_state
        self.state = open_state({"n": int})
        self.values: dict[str, int] = {}
        self.next = 1
        self.cuts: list[tuple[int, Any, dict[str, int]]] = []
        """Cut, not decided: number, completion, what it must hold."""

    def put(self, key: str, value: int) -> None:
        if value:
            self.state.table("n").put(key, value)
            self.values[key] = value
        else:
            self.state.table("n").remove(key)
            self.values.pop(key, None)

    def cut(self) -> None:
        self.cuts.append((self.next, cut(self.state, self.next), dict(self.values)))
        self.next += 1

    def written(self, count: int) -> None:
        """Completions run in order."""
        for _, completion, _ in self.cuts[:count]:
            if completion.chain is None:
                completion.run()

    def fail(self) -> None:
        """The newest that is not written fails, and is discarded."""
        if self.cuts and self.cuts[-1][1].chain is None:
            self.cuts.pop()[1].discard()

    def decide(self, index: int, *, told: bool) -> None:
        if index >= len(self.cuts):
            return
        self.written(index + 1)
        number, completion, values = self.cuts[index]
        del self.cuts[: index + 1]
        restored = self.open_state({"n": int}, completion.files).table("n")
        assert {key: restored.get(key) for key in KEYS} == {key: values.get(key) for key in KEYS}
        if told:
            decided(self.state, number)


KEYS = ("a", "b", "c", "d")
ACTS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(KEYS), st.integers(0, 5)),
    st.tuples(st.just("cut")),
    st.tuples(st.just("written"), st.integers(0, 2)),
    st.tuples(st.just("decide"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("fail")),
)


@pytest.mark.parametrize("whole_after", [3, 10_000], ids=["often-whole", "never-whole"])
def test_r22_whatever_overlaps_a_decided_snapshot_holds_its_cut(open_state, monkeypatch, whole_after):
    monkeypatch.setattr(snapshots, "CHANGES_MIN", whole_after)

    @settings(max_examples=40)
    @given(acts=st.lists(ACTS, max_size=40))
    def lives(acts: list[tuple[Any, ...]]) -> None:
        life = Life(open_state)
        for name, *arguments in acts:
            if name == "decide":
                life.decide(arguments[0], told=arguments[1])
            else:
                getattr(life, name)(*arguments)
        life.put("a", 1)
        life.cut()
        life.decide(len(life.cuts) - 1, told=True)
        life.state.close()

    lives()
