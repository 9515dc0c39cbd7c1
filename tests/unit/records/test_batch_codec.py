"""A batch comes back with all its columns, and what is no batch never becomes one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.ids import SplitId
from processor.records.batch import NO_TIMESTAMP, Batch
from processor.records.batch_codec import decode_batch, encode_batch
from processor.records.value_codec import ValueCodec
from tests.unit.records.test_key_column import any_plain, texts

CODEC = ValueCodec(None, "here")


@st.composite
def batches(draw) -> Batch:
    records = draw(st.integers(1, 5))

    def column(of):
        return draw(st.lists(of, min_size=records, max_size=records))

    def perhaps(of):
        return column(of) if draw(st.booleans()) else None

    headers = st.lists(st.tuples(texts, st.one_of(st.none(), st.binary(max_size=3))), max_size=2).map(tuple)
    return Batch(
        values=column(st.one_of(st.none(), texts, st.integers(), st.binary(max_size=3))),
        timestamps=column(st.one_of(st.just(NO_TIMESTAMP), st.integers(-(2**63), 2**63 - 1))),
        keys=perhaps(any_plain),
        headers=perhaps(headers),
        split=draw(st.one_of(st.none(), texts.map(SplitId))),
        offsets=perhaps(st.integers(0, 2**63 - 1)),
    )


@given(batches())
def test_every_column_comes_back_and_none_stays_none(batch):
    encoded = encode_batch(batch, CODEC.encode(batch.values))
    assert decode_batch(memoryview(encoded), CODEC.decode) == batch


@given(batches())
def test_columns_of_any_sequence_are_taken(batch):
    as_tuples = Batch(
        values=tuple(batch.values),
        timestamps=range(len(batch)),
        keys=None if batch.keys is None else tuple(batch.keys),
        headers=None if batch.headers is None else tuple(batch.headers),
        split=batch.split,
        offsets=None if batch.offsets is None else tuple(batch.offsets),
    )
    found = decode_batch(encode_batch(as_tuples, CODEC.encode(as_tuples.values)), CODEC.decode)
    assert (found.values, found.keys, found.offsets) == (batch.values, batch.keys, batch.offsets)
    assert found.timestamps == list(range(len(batch)))


@given(st.binary(max_size=60))
def test_bytes_that_are_no_batch_are_refused(encoded):
    with pytest.raises(ValueError, match="no batch"):
        decode_batch(encoded, CODEC.verify)


@pytest.mark.parametrize(
    ("values", "timestamps", "keys", "headers", "offsets"),
    [
        ([], [], None, None, None),
        ([1], [1, 2], None, None, None),
        ([1], [1], ["a", "b"], None, None),
        ([1, 2], [1, 2], None, [()], None),
        ([1, 2], [1, 2], None, None, [1]),
    ],
)
def test_columns_of_other_lengths_are_refused(values, timestamps, keys, headers, offsets):
    wrong = Batch(values=values, timestamps=timestamps, keys=keys, headers=headers, offsets=offsets)
    with pytest.raises(ValueError, match="columns of other lengths"):
        decode_batch(encode_batch(wrong, CODEC.encode(values)), CODEC.decode)


def test_columns_of_other_types_are_refused():
    wrong = msgspec.msgpack.encode((CODEC.encode([1]), ["no time"], None, None, None, None))
    with pytest.raises(ValueError, match="no batch"):
        decode_batch(wrong, CODEC.decode)
