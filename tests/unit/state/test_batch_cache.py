"""The layers one by one: which hides which, what is bounded, and who writes to the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from processor.state.batch_cache import BatchCache
from processor.state.map_cache import MapCache
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

    def some(self, places_max: int) -> list[tuple[Any, Any]]:
        return list(self.entries.items())[:places_max]

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


def test_of_what_the_store_gives_out_what_is_newer_here_counts(store):
    store.entries |= {"changed": 1, "removed": 1, "read": 1, "other": 1}
    cache = BatchCache(store, entries_max=100)
    cache.put("changed", 2)
    cache.put("new", 2)
    cache.remove("removed")
    cache.get("read")
    assert cache.some(9) == [("changed", 2), ("read", 1), ("other", 1)]


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


def test_a_written_value_hides_an_older_one_that_was_read_before(store):
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
    assert store.reads == ["k"], "all of it came from the cache"


def test_several_written_parts_hide_each_other_by_age(store):
    cache = BatchCache(store, entries_max=100)
    for value in (1, 2, 3):
        cache.put("k", value)
        cache.freeze()
        assert cache.get("k") == value
    complete(cache)
    cache.settle()
    assert cache.get("k") == 3
    assert store.entries == {"k": 3}


def test_eviction_never_uncovers_an_older_value(store):
    """Mutant: what changed or is frozen is evicted like any other entry, and the store has an older value."""
    store.entries["k"] = 0
    cache = BatchCache(store, entries_max=16)
    for value in range(1, 50):
        assert cache.get("k") == value - 1
        cache.put("k", value)
        for other in range(value % 7):
            cache.get(f"other-{value}-{other}")
        cache.freeze()
        for other in range(value % 5):
            cache.put(f"more-{value}-{other}", value)
        for other in range(40):
            cache.get(f"read-{value}-{other}")
        assert cache.get("k") == value
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
    return len(cache._values)


def test_what_is_held_is_bounded(store):
    cache = BatchCache(store, entries_max=100)
    for key in range(10_000):
        cache.get(key)
        assert held(cache) <= 100
    for key in range(60):
        cache.put(key, key)
    cache.settle()
    assert held(cache) <= 100
    cache.freeze()
    for key in range(1_000):
        cache.put(key, -key)
    complete(cache)
    cache.freeze()
    for key in range(10_000):
        cache.get(key)
        assert held(cache) <= 2_100, "unwritten entries and about as many more"
    complete(cache)
    cache.settle()
    assert held(cache) <= 100, "once they are written, the oldest may go"


def test_a_full_cache_of_unwritten_entries_is_not_looked_through_for_each_read(store):
    """Mutant: the next look does not wait; each read would move thousands of entries to the end."""
    cache = BatchCache(store, entries_max=1_000)
    for key in range(1_000):
        cache.put(key, key)
    looks = 0
    for key in range(1_000, 2_000):
        oldest = next(iter(cache._values))
        cache.get(key)
        looks += next(iter(cache._values)) != oldest
    assert 0 < looks < 50


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


class MapStore(CountingStore):
    """A store of maps that answers as it is told to."""

    scanned: tuple[tuple[Any, Any], ...] = (("e", "of the store"), ("other", "of the store"))

    def scan(self, key: Any) -> list[tuple[Any, Any]]:
        return list(self.scanned)


def test_of_a_map_only_what_is_not_yet_written_hides_the_store():
    store = MapStore()
    cache = MapCache(store, entries_max=100)
    cache.put(("k", "e"), "set")
    cache.remove(("k", "gone"))
    hidden = {"e": "set", "other": "of the store"}
    assert dict(cache.entries("k")) == hidden
    cache.freeze()
    assert dict(cache.entries("k")) == hidden
    cache.settle()
    assert dict(cache.entries("k")) == hidden
    complete(cache)
    cache.settle()
    assert dict(cache.entries("k")) == dict(store.scanned)
    assert cache.entries("another key") == list(store.scanned)


def test_case_28_entries_of_a_map_that_come_and_go_between_two_cuts_leave_nothing_behind():
    """Mutant: every one of them stays as a deletion, and looking through the map passes all of them."""
    store = MapStore()
    store.scanned = ()
    store.entries[("k", "stored")] = "of the store"
    cache = MapCache(store, entries_max=10_000)
    for number in range(1_000):
        cache.put(("k", number), "set")
        cache.remove(("k", number))
    assert (cache.changed, cache._changed_places) == ({}, {})
    assert cache.get(("k", 7)) is None
    cache.put(("k", "stored"), "changed")
    cache.remove(("k", "stored"))
    cache.put(("k", "frozen"), "set")
    cache.freeze()
    cache.put(("k", "frozen"), "changed")
    cache.remove(("k", "frozen"))
    cache.remove(("k", "never read"))
    assert cache.changed == {("k", "frozen"): None, ("k", "never read"): None}
    complete(cache)
    assert store.entries == {("k", "frozen"): "set"}
    cache.freeze()
    complete(cache)
    assert store.entries == {}
    assert cache.entries("k") == []
