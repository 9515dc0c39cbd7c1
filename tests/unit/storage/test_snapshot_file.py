"""A snapshot gives back what was written, to whatever range asks, and nothing when it is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX, SnapshotFormat
from processor.errors import DamagedFile, EngineBug, JobError, Unavailable
from processor.ids import FileRef, KeyGroupRange, StepName, key_groups_of
from processor.records.batch import Key
from processor.records.key_groups import key_group
from processor.storage import block_file
from processor.storage.snapshot_file import (
    SnapshotFiles,
    SnapshotHeader,
    SnapshotTable,
    SnapshotWriter,
    read_snapshot,
    read_snapshot_header,
)
from tests.damage.ways import damages
from tests.unit.storage.memory_files import MemoryFiles

GROUPS = 16
ALL = KeyGroupRange(0, GROUPS)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
moments = st.datetimes(timezones=st.just(UTC))
plain_keys = st.one_of(
    texts,
    st.binary(max_size=8),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.uuids(),
    moments,
)
keys = st.one_of(plain_keys, st.lists(plain_keys, max_size=3).map(tuple))
key_lists = st.one_of(
    st.lists(texts, min_size=1),
    st.lists(st.integers(), min_size=1),
    st.lists(st.binary(max_size=8), min_size=1),
    st.lists(keys, min_size=1),
)


@dataclass
class Card:
    owner: str
    cents: int


def header(*tables: SnapshotTable) -> SnapshotHeader:
    return SnapshotHeader(
        step=StepName("watch"),
        max_parallelism=GROUPS,
        key_groups=ALL,
        tables=tables or (SnapshotTable(name="count", kind="int"),),
    )


def write(files: MemoryFiles, name: str, blocks: list[list[Key]]) -> FileRef:
    """Every key with its place in its block as its value."""
    writer = SnapshotWriter(files.create(name), header())
    for block in blocks:
        writer.block(0, ALL, block, list(range(len(block))))
    return writer.finish()


def entries(files: MemoryFiles, ref: FileRef, wanted: KeyGroupRange = ALL) -> list[tuple[type, Key, object]]:
    return [
        (type(key), key, value)
        for block in read_snapshot(files, ref, wanted, {"count": int})
        for key, value in zip(block.keys, block.values, strict=True)
    ]


def expected(blocks: list[list[Key]], wanted: KeyGroupRange = ALL) -> list[tuple[type, Key, object]]:
    return [
        (type(key), key, place)
        for block in blocks
        for place, key in enumerate(block)
        if key_group(key, GROUPS) in wanted
    ]


@given(st.lists(key_lists, max_size=4))
def test_keys_of_every_type_come_back_as_they_were(blocks):
    files = MemoryFiles(chunk_bytes=7)
    assert entries(files, write(files, "s", blocks)) == expected(blocks)


@given(st.lists(key_lists, max_size=3), st.integers(1, 5))
def test_every_entry_goes_to_exactly_one_subtask_of_any_parallelism(blocks, parallelism):
    files = MemoryFiles()
    ref = write(files, "s", blocks)
    for subtask in range(parallelism):
        wanted = key_groups_of(subtask, parallelism, GROUPS)
        assert entries(files, ref, wanted) == expected(blocks, wanted)


def test_a_block_of_other_key_groups_is_not_decoded():
    files = MemoryFiles()
    writer = SnapshotWriter(files.create("s"), header())
    low = [key for key in map(str, range(100)) if key_group(key, GROUPS) < 4]
    high = [key for key in map(str, range(100)) if key_group(key, GROUPS) >= 4]
    writer.block(0, KeyGroupRange(0, 4), low, ["not a number"] * len(low))
    writer.block(0, KeyGroupRange(4, GROUPS), high, [1] * len(high))
    ref = writer.finish()
    assert [key for _, key, _ in entries(files, ref, KeyGroupRange(4, GROUPS))] == high
    with pytest.raises(JobError):
        entries(files, ref)


def test_tables_keep_their_names_and_their_types():
    files = MemoryFiles()
    tables = (SnapshotTable(name="count", kind="int"), SnapshotTable(name="card", kind="Card"))
    writer = SnapshotWriter(files.create("s"), header(*tables))
    writer.block(1, ALL, ("a", "b"), (Card("x", 1), Card("", -5)))
    writer.block(0, ALL, [], [])
    writer.block(0, ALL, [UUID(int=5), datetime(2024, 1, 2, tzinfo=UTC)], [0, None])
    ref = writer.finish()
    found = list(read_snapshot(files, ref, ALL, {"count": int | None, "card": Card}))
    assert [(block.table, block.values) for block in found] == [
        ("card", [Card("x", 1), Card("", -5)]),
        ("count", [0, None]),
    ]
    assert read_snapshot_header(files, ref) == header(*tables)


def test_a_state_that_the_job_no_longer_declares_is_an_error_that_names_it():
    files = MemoryFiles()
    ref = write(files, "s", [["a"]])
    with pytest.raises(JobError, match="state 'count' of step 'watch'"):
        list(read_snapshot(files, ref, ALL, {}))


def test_values_of_another_type_are_an_error_that_names_both_types():
    files = MemoryFiles()
    ref = write(files, "s", [["a"]])
    with pytest.raises(JobError, match=r"written as int .* `str`"):
        list(read_snapshot(files, ref, ALL, {"count": str}))


def test_a_block_that_comes_out_too_large_is_cut(monkeypatch):
    monkeypatch.setattr("processor.storage.snapshot_file.BLOCK_BYTES_TARGET", 100)
    files = MemoryFiles()
    keys = [f"key-{n}" for n in range(200)]
    ref = write(files, "s", [list(keys)])
    assert [key for _, key, _ in entries(files, ref)] == keys
    assert len(list(read_snapshot(files, ref, ALL, {"count": int}))) > 10


def test_one_value_over_the_limit_is_an_error_that_names_the_key(monkeypatch):
    monkeypatch.setattr("processor.storage.snapshot_file.BLOCK_BYTES_MAX", 100)
    writer = SnapshotWriter(MemoryFiles().create("s"), header())
    with pytest.raises(JobError, match="'big'"):
        writer.block(0, ALL, ["big"], ["x" * 200])


def test_a_full_disk_leaves_nothing_to_read():
    files = MemoryFiles(room=2_000)
    with pytest.raises(Unavailable):
        write(files, "s", [[str(n) for n in range(1_000)]])
    assert files.content == {}


SAMPLE_BLOCKS: list[list[Key]] = [["a", "bc", "def"], [1, -2], [b"x"], [("t", 1), True]]


@given(st.data())
@settings(max_examples=300)
def test_r08_any_damage_is_found_by_name_even_without_the_hash_of_the_file(data):
    files = MemoryFiles(trusting=True, chunk_bytes=11)
    ref = write(files, "a7/watch-0/s.state", SAMPLE_BLOCKS)
    whole = files.content[ref.name]
    files.put(ref.name, data.draw(damages(whole)))
    if files.content[ref.name] == whole:
        return
    with pytest.raises(DamagedFile, match=r"a7/watch-0/s\.state"):
        entries(files, ref)


def test_r08_blocks_that_changed_places_are_found():
    files = MemoryFiles(trusting=True)
    ref = write(files, "s", [["a"], ["b"]])
    whole, end = files.content[ref.name], 12
    first = len(files.content[write(files, "empty", []).name]) - end
    size = (len(whole) - first - end) // 2
    one, two = whole[first : first + size], whole[first + size : -end]
    files.put(ref.name, whole[:first] + one + two + whole[-end:])
    assert len(entries(files, ref)) == 2
    files.put(ref.name, whole[:first] + two + one + whole[-end:])
    with pytest.raises(DamagedFile):
        entries(files, ref)


def test_a_length_out_of_bounds_takes_no_memory():
    files = MemoryFiles(trusting=True)
    ref = write(files, "s", [])
    whole = files.content[ref.name]
    at = block_file.MAGIC_BYTES + 4
    files.put(ref.name, whole[: at + 4] + b"\xff\xff\xff\x7f" + whole[at + 8 :])
    with pytest.raises(DamagedFile, match="2147483647 bytes"):
        entries(files, ref)


def test_values_that_are_encoded_already_go_in_and_come_out_as_bytes():
    """State that is kept as bytes is copied from store to snapshot and back without being decoded."""
    shape: SnapshotFormat = SnapshotFiles()
    files = MemoryFiles(chunk_bytes=9)
    raw = [msgspec.Raw(msgspec.msgpack.encode(n)) for n in (1, "x", None)]
    writer = shape.create(
        files.create("s"),
        step=StepName("watch"),
        max_parallelism=GROUPS,
        key_groups=ALL,
        tables=[("count", "int")],
    )
    writer.block(0, ALL, ["a", "b", "c"], raw)
    ref = writer.finish()
    (as_bytes,) = shape.read(files, ref, ALL, {"count": msgspec.Raw})
    assert [bytes(value) for value in as_bytes.values] == [bytes(value) for value in raw]
    (decoded,) = shape.read(files, ref, ALL, {"count": int | str | None})
    assert list(decoded.values) == [1, "x", None]


def test_a_block_too_large_to_let_others_run_is_a_bug():
    writer = SnapshotWriter(MemoryFiles().create("s"), header())
    too_many = list(range(BLOCK_ENTRIES_MAX + 1))
    with pytest.raises(EngineBug):
        writer.block(0, ALL, too_many, too_many)
