"""The subtask's thread reads and writes while a completion runs on another, as in production."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.ids import CheckpointId
from tests.unit.state.fakes import CompletionThread, Place, make_backend

ROUNDS = 25
KEYS = 400


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads change places every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", ["memory", "rocksdb"])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_b3_reads_are_right_at_every_moment_of_a_completion_and_every_snapshot_is_its_cut(
    name, seed, hurried, tmp_path_factory
):
    chance = random.Random(seed)
    place = Place()
    root = tmp_path_factory.mktemp("local")
    backend = make_backend(name, root, cache_entries_max=150)
    state = backend.open(place.request({"n": int, "items": list[int]}))
    model: dict[int, int] = {}
    lane = CompletionThread()
    numbers, items = state.table("n"), state.table("items")
    for number in range(1, ROUNDS + 1):
        for _ in range(chance.randrange(KEYS)):
            key = chance.randrange(KEYS)
            assert numbers.get(key) == model.get(key)
            held = items.get(key)
            assert held == (None if key not in model else [model[key]])
            if chance.random() < 0.2:
                numbers.remove(key)
                items.remove(key)
                model.pop(key, None)
            else:
                model[key] = model.get(key, 0) + 1
                numbers.put(key, model[key])
                items.put(key, [model[key]])
        state.pressed()
        completion = state.cut(CheckpointId(number))
        lane.put(completion, dict(model))
        if chance.random() < 0.3:
            completion.discard()  # perhaps before it runs, perhaps in its middle, perhaps after
    lane.join()
    assert not lane.failures, lane.failures
    assert len(lane.results) == ROUNDS
    for files, expected in lane.results[-6:]:
        if files:
            restored = backend.open(place.request({"n": int, "items": list[int]}, files))
            for key in range(KEYS):
                assert restored.table("n").get(key) == expected.get(key)
                assert restored.table("items").get(key) == ([expected[key]] if key in expected else None)
            restored.close()
    state.close()


@pytest.mark.parametrize("name", ["memory", "rocksdb"])
def test_b3_closing_while_a_completion_runs_ends_it_without_a_file_or_an_error(name, hurried, tmp_path):
    for number in range(10):
        place = Place()
        state = make_backend(name, tmp_path).open(place.request({"n": int}))
        for key in range(20_000):
            state.table("n").put(key, key)
        completion = state.cut(CheckpointId(1))
        found: list[Any] = []
        lane = Thread(target=lambda c=completion, f=found: f.append(c.run()))
        lane.start()
        for _ in range(number * 50):
            state.table("n").get(number)
        state.close()
        lane.join()
        assert len(found) == 1
        assert found[0] == () or found[0][0].file.name in place.files.content
        assert found[0] != () or place.files.content == {}
