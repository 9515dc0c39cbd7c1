"""An outbox gives back its rows byte for byte, from any row on, and nothing when it is damaged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.errors import BadRecord, DamagedFile, Unavailable
from processor.ids import FileRef
from processor.records.rows import RowBlock
from processor.storage.outbox import OutboxWriter, encode_block, encode_blocks, read_outbox
from tests.damage.ways import damages
from tests.unit.storage.memory_files import MemoryFiles

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
octets = st.binary(max_size=6)
nullable = st.one_of(st.none(), octets)
headers = st.lists(st.tuples(texts, nullable), max_size=3).map(tuple)


@st.composite
def row_blocks(draw) -> RowBlock:
    rows = draw(st.integers(1, 8))

    def column(of):
        return draw(st.one_of(st.none(), st.lists(of, min_size=rows, max_size=rows)))

    return RowBlock(
        topic=draw(texts),
        values=draw(st.lists(nullable, min_size=rows, max_size=rows)),
        keys=column(nullable),
        timestamps=column(st.integers(-1, 2**63 - 1)),
        headers=column(headers),
        partitions=column(st.one_of(st.none(), st.integers(0, 2**31 - 1))),
    )


def write(files: MemoryFiles, name: str, blocks: list[RowBlock]) -> FileRef:
    writer = OutboxWriter(files, name)
    for block in blocks:
        writer.write(encode_block(block))
    assert writer.rows == sum(map(len, blocks))
    return writer.finish()


def rows(blocks) -> list[tuple[object, ...]]:
    return [
        (
            block.topic,
            block.values[n],
            None if block.keys is None else block.keys[n],
            None if block.timestamps is None else block.timestamps[n],
            None if block.headers is None else block.headers[n],
            None if block.partitions is None else block.partitions[n],
        )
        for block in blocks
        for n in range(len(block))
    ]


@given(st.lists(row_blocks(), max_size=4))
def test_r16_rows_come_back_as_they_were(blocks):
    files = MemoryFiles(chunk_bytes=7)
    found = [part.decode() for part in read_outbox(files, write(files, "o", blocks))]
    assert found == blocks


@given(st.lists(row_blocks(), max_size=4), st.data())
def test_r16_reading_goes_on_from_any_row(blocks, data):
    files = MemoryFiles()
    ref = write(files, "o", blocks)
    every = rows(blocks)
    start = data.draw(st.integers(0, len(every)))
    assert rows([part.decode() for part in read_outbox(files, ref, start)]) == every[start:]


def test_r16_a_resume_behind_the_last_row_is_damage():
    files = MemoryFiles()
    ref = write(files, "o", [RowBlock(topic="t", values=[b"1"])])
    with pytest.raises(DamagedFile, match="fewer than the 2 rows"):
        list(read_outbox(files, ref, 2))


def test_case_52_headers_with_nulls_and_repeated_names_stay_in_order():
    files = MemoryFiles()
    listed = (("a", b"1"), ("a", b"2"), ("b", None), ("", b""))
    ref = write(files, "o", [RowBlock(topic="t", values=[b"v", None], headers=[listed, ()])])
    (found,) = [part.decode() for part in read_outbox(files, ref)]
    assert found.headers == [listed, ()]


def test_case_49_null_and_empty_are_two_values_and_two_keys():
    files = MemoryFiles()
    ref = write(files, "o", [RowBlock(topic="t", values=[None, b""], keys=(b"", None))])
    (found,) = [part.decode() for part in read_outbox(files, ref)]
    assert (found.values, found.keys) == ([None, b""], [b"", None])


def test_a_block_that_comes_out_too_large_is_cut_into_rows(monkeypatch):
    monkeypatch.setattr("processor.storage.outbox.BLOCK_BYTES_TARGET", 100)
    block = RowBlock(topic="t", values=[b"x" * n for n in range(60)], timestamps=list(range(60)))
    files = MemoryFiles()
    writer = OutboxWriter(files, "o")
    encoded = encode_blocks(block)
    for part in encoded:
        writer.write(part)
    assert len(encoded) > 10
    assert rows([part.decode() for part in read_outbox(files, writer.finish())]) == rows([block])


def test_one_row_over_the_limit_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("processor.storage.outbox.BLOCK_BYTES_TARGET", 100)
    monkeypatch.setattr("processor.storage.outbox.BLOCK_BYTES_MAX", 200)
    with pytest.raises(BadRecord, match="'t'"):
        encode_blocks(RowBlock(topic="t", values=[b"", b"x" * 300]))


def test_a_full_disk_leaves_nothing_to_read():
    files = MemoryFiles(room=150)
    with pytest.raises(Unavailable):
        write(files, "o", [RowBlock(topic="t", values=[b"x" * 50])] * 5)
    assert files.content == {}


def test_r16_the_outbox_of_somebody_else_is_refused_at_its_first_byte():
    files = MemoryFiles()
    write(files, "a1/x", [RowBlock(topic="t", values=[b"1"])])
    ref = write(files, "a1/y", [RowBlock(topic="t", values=[b"2"])])
    files.put(ref.name, files.content["a1/x"])
    files.trusting = True
    with pytest.raises(DamagedFile, match="holds the outbox 'a1/x'"):
        next(read_outbox(files, ref))


SAMPLE = [
    RowBlock(topic="t", values=[b"1", None, b""], keys=[None, b"", b"k"], timestamps=[0, 1, 2]),
    RowBlock(topic="u", values=[b"4"], headers=[(("a", None), ("a", b""))], partitions=[None]),
]


@given(st.data())
@settings(max_examples=300)
def test_r16_no_row_of_a_damaged_block_is_handed_out(data):
    """Even before the hash of the file is compared: what comes out is a prefix of what was written."""
    files = MemoryFiles(trusting=True, chunk_bytes=13)
    ref = write(files, "a7/sink-0/o.outbox", SAMPLE)
    whole = files.content[ref.name]
    files.put(ref.name, data.draw(damages(whole)))
    if files.content[ref.name] == whole:
        return
    found: list[RowBlock] = []
    with pytest.raises(DamagedFile, match=r"a7/sink-0/o\.outbox"):
        found.extend(part.decode() for part in read_outbox(files, ref))
    assert found == SAMPLE[: len(found)]
