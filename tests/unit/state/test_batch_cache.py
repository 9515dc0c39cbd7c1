"""The layers one by one: which hides which, what is bounded, and who writes to the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from processor.state import batch_cache
from processor.state.batch_cache import CLEAN_GENERATIONS, BatchCache
from processor.state.memory_values import MemoryValues


class CountingStore:
    """A store that remembers what it was asked."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}
        self.reads: list[Any] = []
        self.writes = 0

    def read(self, key: Any) -> Any:
        self.reads.append(key)
        return self.entries.get(key)

    def write_in_steps(self, entries: dict[Any, Any]) -> Iterator[None]:
        for number, (key, value) in enumerate(entries.items()):
            if number % 2 == 0:
                self.writes += 1
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = value
            if number % 2 == 1:
                yield


def complete(cache: BatchCache) -> None:
    for part in cache.unwritten_parts():
        for _ in part.write_in_steps():
            pass


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


def test_the_cut_swaps_dicts_and_copies_nothing(store):
    cache = BatchCache(store, entries_max=100)
    changed = cache.changed
    cache.put("k", 1)
    cache.freeze()
    (part,) = cache.unwritten_parts()
    assert part.entries is changed
    assert cache.changed is not changed


def test_a_cut_without_changes_adds_no_layer(store):
    cache = BatchCache(store, entries_max=100)
    for _ in range(10):
        cache.freeze()
    assert cache.unwritten_parts() == ()


@pytest.mark.parametrize("merged", [True, False])
def test_a_written_value_hides_an_older_one_that_was_read_before(store, merged, monkeypatch):
    """Mutant: the written part goes below the clean entries, and the old value comes back."""
    if not merged:
        monkeypatch.setattr(batch_cache, "MERGE_ENTRIES_MAX", 0)
    store.entries["k"] = "old"
    cache = BatchCache(store, entries_max=100)
    assert cache.get("k") == "old"
    cache.put("k", "new")
    cache.freeze()
    complete(cache)
    cache.settle()
    assert cache.get("k") == "new"
    cache.remove("k")
    cache.freeze()
    complete(cache)
    cache.settle()
    assert cache.get("k") is None
    assert store.reads == ["k"], "all of it came from the layers"


def test_several_written_parts_hide_each_other_by_age(store, monkeypatch):
    monkeypatch.setattr(batch_cache, "MERGE_ENTRIES_MAX", 0)
    cache = BatchCache(store, entries_max=100)
    for value in (1, 2, 3):
        cache.put("k", value)
        cache.freeze()
        assert cache.get("k") == value
    complete(cache)
    cache.settle()
    assert cache.get("k") == 3
    assert store.entries == {"k": 3}


@pytest.mark.parametrize("merged", [True, False])
def test_dropping_clean_entries_never_uncovers_an_older_value(store, merged, monkeypatch):
    """Mutant: a younger generation is dropped before an older one."""
    if not merged:
        monkeypatch.setattr(batch_cache, "MERGE_ENTRIES_MAX", 0)
    store.entries["k"] = 0
    cache = BatchCache(store, entries_max=4 * CLEAN_GENERATIONS)
    for value in range(1, 50):
        assert cache.get("k") == value - 1
        cache.put("k", value)
        for other in range(value % 7):
            cache.get(f"other-{value}-{other}")
        cache.freeze()
        for other in range(value % 5):
            cache.put(f"more-{value}-{other}", value)
        complete(cache)
        cache.settle()
        assert cache.get("k") == value


def test_to_know_that_there_is_nothing_is_remembered(store):
    cache = BatchCache(store, entries_max=100)
    assert [cache.get("k") for _ in range(5)] == [None] * 5
    assert store.reads == ["k"]


def test_the_subtask_never_writes_to_the_store_and_evicts_nothing_unwritten(store):
    cache = BatchCache(store, entries_max=10)
    for key in range(1_000):
        cache.put(key, key)
        cache.get(-key)
        if key % 100 == 0:
            cache.freeze()
        cache.settle()
    assert store.writes == 0
    assert [cache.get(key) for key in range(1_000)] == list(range(1_000))
    assert cache.unwritten_entries() == 1_000


def held(cache: BatchCache) -> int:
    return sum(map(len, cache._clean)) + cache.unwritten_entries()


def test_clean_entries_are_bounded(store):
    cache = BatchCache(store, entries_max=100)
    for key in range(10_000):
        cache.get(key)
        assert held(cache) <= 100
    for key in range(60):
        cache.put(key, key)
    cache.settle()
    assert held(cache) <= 100
    cache.freeze()
    complete(cache)
    cache.settle()
    assert held(cache) <= 100
    for key in range(10_000):
        cache.get(key)
        assert held(cache) <= 100


def test_the_number_of_layers_is_bounded(store):
    cache = BatchCache(store, entries_max=10**9)
    for number in range(100):
        for key in range(batch_cache.MERGE_ENTRIES_MAX + 1):
            cache.put(key, number)
        cache.freeze()
        complete(cache)
        cache.settle()
    assert len(cache._layers) <= batch_cache.CLEAN_GENERATIONS_MAX


def test_a_part_given_up_half_way_is_written_whole_by_the_next_try(store):
    cache = BatchCache(store, entries_max=100)
    for key in range(6):
        cache.put(key, key)
    cache.freeze()
    (part,) = cache.unwritten_parts()
    next(part.write_in_steps())
    assert len(store.entries) == 2
    assert [part.written] == [False]
    assert [cache.get(key) for key in range(6)] == list(range(6))
    complete(cache)
    assert part.written
    assert store.entries == {key: key for key in range(6)}


def test_erase_leaves_a_deletion_only_where_something_lies_below(store):
    store.entries["stored"] = 1
    cache = MemoryValues(store)
    cache.put("frozen", 1)
    cache.freeze()
    cache.put("stored", 2)
    cache.put("frozen", 2)
    cache.put("new", 2)
    for key in ("stored", "frozen", "new", "never"):
        cache.erase(key)
        assert cache.get(key) is None
    assert cache.changed == {"stored": None, "frozen": None}
