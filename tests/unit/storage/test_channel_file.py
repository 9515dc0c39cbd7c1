"""A file of records in flight gives back what was on each channel, in order, and nothing when it is damaged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.errors import DamagedFile, JobError, Unavailable
from processor.ids import EdgeName, FileRef, SplitId, StepName
from processor.records.batch import Batch
from processor.records.elements import Idle, Watermark
from processor.records.value_codec import ValueCodec
from processor.storage import channel_file
from processor.storage.channel_file import (
    ChannelFileHeader,
    ChannelFileWriter,
    ChannelHead,
    InFlight,
    freeze,
    read_channels,
)
from tests.damage.ways import damages
from tests.unit.storage.memory_files import MemoryFiles

EDGE = EdgeName(origin=StepName("by-key"), output="", target=StepName("count"), input=0)
CODEC = ValueCodec(str, str(EDGE))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
keys = st.one_of(texts, st.integers(), st.binary(max_size=3), st.tuples(texts, st.integers()))


@st.composite
def batches(draw) -> Batch:
    records = draw(st.integers(1, 5))

    def column(of):
        return draw(st.lists(of, min_size=records, max_size=records))

    headers = st.lists(st.tuples(texts, st.one_of(st.none(), st.binary(max_size=3))), max_size=2).map(tuple)
    return Batch(
        values=column(texts),
        timestamps=column(st.integers(-1, 2**62)),
        keys=column(keys),
        headers=draw(st.one_of(st.none(), st.just(column(headers)))),
        split=draw(st.one_of(st.none(), texts.map(SplitId))),
        offsets=draw(st.one_of(st.none(), st.just(column(st.integers(0, 2**40))))),
    )


elements = st.one_of(
    batches(), batches(), st.builds(Watermark, st.integers(-(2**62), 2**62)), st.just(Idle())
)
heads = st.builds(
    ChannelHead,
    producer=st.integers(0, 100),
    watermark_ms=st.one_of(st.none(), st.integers(0, 2**40)),
    silent=st.booleans(),
)
channels = st.lists(st.tuples(heads, st.lists(elements, max_size=4)), min_size=1, max_size=3)


def write(files: MemoryFiles, content: Sequence[tuple[ChannelHead, Sequence[InFlight]]]) -> FileRef:
    header = ChannelFileHeader(edge=EDGE, channels=tuple(head for head, _ in content))
    writer = ChannelFileWriter(files, "c", header)
    for index, (_, found) in enumerate(content):
        for element in found:
            for part in freeze(element, CODEC) if isinstance(element, Batch) else (element,):
                writer.write(index, part)
    return writer.finish()


@given(channels)
def test_every_channel_comes_back_as_it_was(content):
    files = MemoryFiles(chunk_bytes=7)
    found = read_channels(files, write(files, content), CODEC)
    assert [(channel.head, list(channel.elements)) for channel in found] == content


@settings(max_examples=300)
@given(channels, st.data())
def test_r08_damage_is_refused_by_name(content, data):
    files = MemoryFiles(trusting=True)
    ref = write(files, content)
    whole = files.content["c"]
    changed = data.draw(damages(whole))
    if changed == whole:
        return
    files.content["c"] = changed
    with pytest.raises((DamagedFile, JobError)) as found:
        read_channels(files, ref, CODEC)
    assert isinstance(found.value, JobError) or "'c'" in str(found.value)


def test_a_batch_too_large_for_a_block_comes_back_in_pieces(monkeypatch):
    monkeypatch.setattr(channel_file, "BLOCK_BYTES_TARGET", 40)
    batch = Batch(values=["x" * 15] * 8, timestamps=list(range(8)), keys=[f"k{n}" for n in range(8)])
    files = MemoryFiles()
    (channel,) = read_channels(files, write(files, [(ChannelHead(producer=0), [batch])]), CODEC)
    assert len(channel.elements) > 1
    whole = [part for part in channel.elements if isinstance(part, Batch)]
    assert [value for part in whole for value in part.values] == batch.values
    assert [time for part in whole for time in part.timestamps] == batch.timestamps
    assert [key for part in whole for key in part.keys or ()] == batch.keys


def test_values_are_those_of_the_moment_of_the_cut():
    """Functions behind the channel may change them in place as soon as it is over."""
    values = [[1], [2]]
    codec = ValueCodec(list[int], "here")
    batch = Batch(values=values, timestamps=[0, 0], keys=["a", "b"])
    (frozen,) = freeze(batch, codec)
    values[0].append(99)
    assert codec.decode(frozen.values) == [[1], [2]]


def test_a_full_disk_leaves_nothing():
    files = MemoryFiles(room=20)
    with pytest.raises(Unavailable):
        write(files, [(ChannelHead(producer=0), [Batch(values=["v"], timestamps=[0], keys=["k"])])])
