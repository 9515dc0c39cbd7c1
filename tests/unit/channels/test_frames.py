"""Frames are found in any pieces, and what is none is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.channels.frames import BATCH_BYTES_MAX, HEADER, Frame, FrameKind, FrameReader, header
from processor.errors import AttemptFailed
from processor.ids import ChannelId, WorkerId
from tests.unit.channels.kit import EDGE

BODY_BYTES = {
    FrameKind.WATERMARK: 8,
    FrameKind.BARRIER: 18,
    FrameKind.IDLE: 0,
    FrameKind.END_OF_INPUT: 0,
    FrameKind.CREDIT: 8,
}
channels = st.builds(
    ChannelId,
    edge=st.integers(0, 2**16 - 1),
    producer=st.integers(0, 2**16 - 1),
    consumer=st.integers(0, 2**16 - 1),
)


@st.composite
def frames(draw) -> Frame:
    kind = draw(st.sampled_from(FrameKind))
    size = BODY_BYTES.get(kind)
    body = draw(st.binary(max_size=40) if size is None else st.binary(min_size=size, max_size=size))
    return Frame(kind=kind, channel=draw(channels), sequence=draw(st.integers(0, 2**64 - 1)), body=body)


def written(frame: Frame) -> bytes:
    return header(frame.kind, frame.channel, frame.sequence, len(frame.body)) + frame.body


@given(st.lists(frames(), max_size=8), st.lists(st.integers(1, 60)), st.booleans())
def test_frames_are_the_same_however_their_bytes_are_cut(sent, cuts, reuses):
    whole = b"".join(map(written, sent))
    reader = FrameReader(WorkerId(1))
    found: list[Frame] = []
    at = 0
    for size in [*cuts, len(whole)]:
        piece = bytearray(whole[at : at + size])
        found += reader.read(memoryview(piece))
        if reuses:  # a piece is valid until the next one comes
            piece[:] = bytes(len(piece))
        at += size
    assert found == sent


def test_a_frame_that_is_not_whole_is_none_yet():
    whole = header(FrameKind.BATCH, EDGE, 0, 5) + b"12345"
    reader = FrameReader(WorkerId(1))
    for byte in whole[:-1]:
        assert reader.read(bytes((byte,))) == []
    (found,) = reader.read(whole[-1:])
    assert found.body == b"12345"


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (HEADER.pack(0, 77, 0, 0, 0, 0), "unknown kind 77"),
        (HEADER.pack(BATCH_BYTES_MAX + 1, FrameKind.BATCH, 0, 0, 0, 0), "a batch of 268435457 bytes"),
        *((HEADER.pack(9, kind, 0, 0, 0, 0), f"of kind {kind.name} with 9 bytes") for kind in BODY_BYTES),
    ],
)
def test_a_header_that_cannot_be_is_refused_before_its_body_is_waited_for(sent, what):
    with pytest.raises(AttemptFailed, match=f"worker 4 sent .*{what}.* on channel 0 to 0 of edge 0"):
        FrameReader(WorkerId(4)).read(sent)
