"""What goes over a connection between two workers: frames of fixed layout, each of one channel, with its length.

A frame of a batch or of a mark goes from producer to consumer, one of credit the other way. Each channel counts its
frames in either direction, so that one that is lost, doubled or out of turn is found at that frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final

from processor.contracts.connection import Bytes
from processor.errors import AttemptFailed
from processor.ids import ChannelId, WorkerId

BATCH_BYTES_MAX: Final = 256 * 2**20
"""Of the bytes of one batch: no more memory is taken on the word of a length."""


class FrameKind(IntEnum):
    BATCH = 1
    WATERMARK = 2
    BARRIER = 3
    IDLE = 4
    END_OF_INPUT = 5
    CREDIT = 6


HEADER: Final = Struct("<IBHHHQ")
"""Bytes of the body, kind, edge, producer, consumer, sequence number."""

WATERMARK_BODY: Final = Struct("<q")
BARRIER_BODY: Final = Struct("<QQBB")
CREDIT_BODY: Final = Struct("<Q")

_BODY_BYTES: Final[Mapping[int, int]] = {
    FrameKind.WATERMARK: WATERMARK_BODY.size,
    FrameKind.BARRIER: BARRIER_BODY.size,
    FrameKind.IDLE: 0,
    FrameKind.END_OF_INPUT: 0,
    FrameKind.CREDIT: CREDIT_BODY.size,
}
"""Of all kinds whose bodies have one length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    kind: FrameKind
    channel: ChannelId
    sequence: int
    body: bytes


def header(kind: FrameKind, channel: ChannelId, sequence: int, body_bytes: int) -> bytes:
    """What stands in front of a body."""
    return HEADER.pack(body_bytes, kind, channel.edge, channel.producer, channel.consumer, sequence)


class FrameReader:
    """Finds the frames in pieces of any size of what one worker sends."""

    def __init__(self, peer: WorkerId) -> None:
        self._peer = peer
        self._rest = bytearray()
        """Of a frame that has not arrived whole."""
        self._needed = 0
        """Bytes with which it is worth looking again."""

    def read(self, piece: Bytes) -> list[Frame]:
        """The frames that are whole with this piece. Raises AttemptFailed, naming the peer, for what is none."""
        if not self._rest:
            frames, end = self._split(piece)
            self._rest += memoryview(piece)[end:]
            return frames
        self._rest += piece
        if len(self._rest) < self._needed:
            return []
        frames, end = self._split(self._rest)
        del self._rest[:end]
        return frames

    def _split(self, data: Bytes) -> tuple[list[Frame], int]:
        frames: list[Frame] = []
        at, end = 0, len(data)
        self._needed = HEADER.size
        with memoryview(data) as view:
            while at + HEADER.size <= end:
                length, number, edge, producer, consumer, sequence = HEADER.unpack_from(view, at)
                channel = ChannelId(edge=edge, producer=producer, consumer=consumer)
                kind = self._checked(number, length, channel)
                start = at + HEADER.size
                if start + length > end:
                    self._needed = HEADER.size + length
                    break
                # A copy: a view would keep all of the piece for as long as the smallest batch in it waits.
                body = bytes(view[start : start + length])
                frames.append(Frame(kind=kind, channel=channel, sequence=sequence, body=body))
                at = start + length
        return frames, at

    def _checked(self, number: int, length: int, channel: ChannelId) -> FrameKind:
        try:
            kind = FrameKind(number)
        except ValueError:
            raise malformed(self._peer, channel, f"a frame of the unknown kind {number}") from None
        if kind is FrameKind.BATCH:
            if length > BATCH_BYTES_MAX:
                raise malformed(
                    self._peer, channel, f"a batch of {length} bytes, and {BATCH_BYTES_MAX} is the limit"
                )
        elif length != _BODY_BYTES[kind]:
            raise malformed(
                self._peer,
                channel,
                f"a frame of kind {kind.name} with {length} bytes, not {_BODY_BYTES[kind]}",
            )
        return kind


def malformed(peer: WorkerId, channel: ChannelId, what: str) -> AttemptFailed:
    """The error for what a worker must not have sent; what came before it is good."""
    return AttemptFailed(
        f"worker {peer} sent {what} on {channel}.",
        remedy="The job restarts from its newest checkpoint. If it happens again, look whether all workers run the "
        "same release.",
    )
