"""Splits that were found: handed out until they are read, and part of every checkpoint until then (A7)."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from processor.errors import PositionLost
from processor.ids import Position, SplitId, StepName, SubtaskId
from processor.protocol.entries import CheckpointEntry, SourceState, SubtaskSnapshot
from processor.runtime.discovery import Discovery
from processor.telemetry.log import get_log
from tests.protocol.coordinator_rig import recovered
from tests.unit.task.kit import OnDemand

READ = StepName("read")
INTERVAL_MS = 100
A, B = SplitId("lines/0"), SplitId("lines/1")


class Enumerator:
    """Finds what the test says; begins at the earliest record there is by then."""

    def __init__(self) -> None:
        self.splits: dict[SplitId, Position] = {A: Position(next=0)}
        self.gone_below = 0
        self.checked: list[dict[SplitId, Position]] = []

    def start(self):
        return dict(self.splits)

    def check(self, known):
        self.checked.append(dict(known))
        for split, position in known.items():
            if position.next < self.gone_below:
                raise PositionLost(f"{split} begins at {self.gone_below} by now.")

    def discover(self, known):
        return {s: replace(p, next=self.gone_below) for s, p in self.splits.items() if s not in known}

    def published(self, positions):
        return None

    def close(self):
        return None


def entry_with(*splits: SplitId) -> CheckpointEntry:
    """A checkpoint whose source has positions of these."""
    state = SourceState(step=READ, positions={split: Position(next=3) for split in splits})
    subtask = SubtaskSnapshot(subtask=SubtaskId(READ, 0), sources=(state,))
    return replace(recovered().entry, subtasks=(subtask,))


class Bench:
    def __init__(self, enumerator: Enumerator) -> None:
        self.executor = OnDemand()
        self.sent: list[list[SplitId]] = []
        read = SimpleNamespace(source=SimpleNamespace(bounded=False))
        chain: Any = SimpleNamespace(parallelism=1, name=READ, steps=(read,))
        self.discovery = Discovery(
            {READ: (cast(Any, enumerator), chain)},
            executor=self.executor,
            interval_ms=INTERVAL_MS,
            found=lambda step, splits: self.sent.append(sorted(splits)),
            log=get_log("test"),
        )
        self.now_ms = 0

    def look(self) -> None:
        self.now_ms += INTERVAL_MS
        self.discovery.tick(self.now_ms)
        self.executor.settle()

    def kept(self) -> dict[str, bytes]:
        return {state.name: state.data for state in self.discovery.take()}


def found_one() -> tuple[Enumerator, Bench]:
    enumerator = Enumerator()
    bench = Bench(enumerator)
    bench.discovery.restored(entry_with(A), {})
    bench.look()
    enumerator.splits[B] = Position(next=0)
    bench.look()
    assert bench.sent == [[B]]
    return enumerator, bench


def test_a07_a_split_that_was_found_is_handed_out_before_every_barrier_until_it_is_published():
    _, bench = found_one()
    for _ in range(2):  # the orders were lost
        assert bench.kept()
    assert bench.sent == [[B]] * 3
    bench.discovery.published(entry_with(A))
    assert bench.kept(), "it is in no position yet"
    bench.discovery.published(entry_with(A, B))
    assert bench.kept() == {}
    assert bench.sent == [[B]] * 4


def test_a07_what_was_found_begins_after_a_restart_where_it_began():
    enumerator, bench = found_one()
    kept = bench.kept()
    again = Bench(enumerator)
    again.discovery.restored(entry_with(A), kept)
    assert enumerator.checked[-1] == {A: Position(next=3), B: Position(next=0)}
    again.discovery.deployed()
    assert again.sent == [[B]]
    again.look()
    again.look()
    assert again.sent == [[B]], "it is known, and not found a second time"


def test_a07_what_was_found_and_has_gone_since_is_lost_loudly_and_not_begun_behind_the_gap():
    enumerator, bench = found_one()
    kept = bench.kept()
    enumerator.gone_below = 2
    with pytest.raises(PositionLost, match="lines/1"):
        Bench(enumerator).discovery.restored(entry_with(A), kept)


def test_r04_the_start_of_a_source_that_was_added_is_resolved_once():
    enumerator = Enumerator()
    first = Bench(enumerator)
    first.discovery.restored(recovered().entry, {})
    kept = first.kept()
    enumerator.splits[A] = Position(next=50)  # "latest", some time later
    second = Bench(enumerator)
    second.discovery.restored(recovered().entry, kept)
    second.discovery.deployed()
    assert second.sent == [[A]]
    assert second.kept() == kept
