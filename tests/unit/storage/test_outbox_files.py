"""What was just written is published from memory, and from its file whenever it is not there any more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.errors import DamagedFile, Unavailable
from processor.records.rows import RowBlock
from processor.storage.outbox import encode_block
from processor.storage.outbox_files import OutboxFiles
from tests.unit.storage.memory_files import MemoryFiles


def block(*values: bytes) -> bytes:
    return encode_block(RowBlock(topic="t", values=list(values)))


def read(outboxes: OutboxFiles, ref, from_row: int = 0) -> list[bytes | None]:
    return [value for part in outboxes.read(ref, from_row) for value in part.decode().values]


@given(st.lists(st.lists(st.binary(max_size=3), min_size=1, max_size=4), min_size=1, max_size=4), st.data())
def test_r16_memory_and_file_give_the_same_rows_from_any_row_on(blocks, data):
    files = MemoryFiles()
    outboxes = OutboxFiles(files)
    ref, rows = outboxes.write("o", [block(*values) for values in blocks])
    every = [value for values in blocks for value in values]
    assert rows == len(every)
    start = data.draw(st.integers(0, rows))
    assert read(outboxes, ref, start) == read(OutboxFiles(files), ref, start) == every[start:]


def test_r16_it_is_a_durable_file_before_anybody_may_read_it_from_memory():
    files = MemoryFiles(room=60)
    outboxes = OutboxFiles(files)
    with pytest.raises(Unavailable):
        outboxes.write("o", [block(b"x" * 50)])
    assert files.content == {}


def test_what_was_written_does_not_need_its_file_until_it_is_forgotten():
    files = MemoryFiles()
    outboxes = OutboxFiles(files)
    ref, _ = outboxes.write("o", [block(b"1"), block(b"2")])
    files.put(ref.name, b"damaged")
    assert read(outboxes, ref) == [b"1", b"2"]
    outboxes.forget(ref)
    outboxes.forget(ref)
    with pytest.raises(DamagedFile, match="o"):
        read(outboxes, ref)


def test_more_than_may_be_kept_is_read_from_its_file():
    files = MemoryFiles()
    outboxes = OutboxFiles(files, kept_bytes_max=100)
    first, _ = outboxes.write("a", [block(b"1" * 10)])
    second, _ = outboxes.write("b", [block(b"2" * 10)])
    assert read(outboxes, first) == [b"1" * 10]
    assert read(outboxes, second) == [b"2" * 10]
    files.put(first.name, b"damaged")
    files.put(second.name, b"damaged")
    assert read(outboxes, first) == [b"1" * 10]
    with pytest.raises(DamagedFile):
        read(outboxes, second)


def test_r16_resuming_behind_the_last_row_is_damage_from_memory_too():
    outboxes = OutboxFiles(MemoryFiles())
    ref, _ = outboxes.write("o", [block(b"1")])
    with pytest.raises(DamagedFile, match="fewer than the 2 rows"):
        read(outboxes, ref, 2)
