"""The marks between batches as bodies of frames."""

from __future__ import annotations

from typing import Final, assert_never

from processor.channels.frames import BARRIER_BODY, WATERMARK_BODY, Frame, FrameKind
from processor.ids import Attempt, CheckpointId
from processor.protocol.messages import CheckpointKind
from processor.records.elements import Barrier, EndOfInput, Idle, Watermark

Mark = Watermark | Barrier | Idle | EndOfInput

_KINDS: Final = tuple(CheckpointKind)
"""A kind travels as its number here: both ends are of one release."""


def encode_mark(mark: Mark) -> tuple[FrameKind, bytes]:
    match mark:
        case Watermark(time_ms=time_ms):
            return FrameKind.WATERMARK, WATERMARK_BODY.pack(time_ms)
        case Barrier(attempt=attempt, checkpoint=checkpoint, kind=kind, overtakes=overtakes):
            return FrameKind.BARRIER, BARRIER_BODY.pack(attempt, checkpoint, _KINDS.index(kind), overtakes)
        case Idle():
            return FrameKind.IDLE, b""
        case EndOfInput():
            return FrameKind.END_OF_INPUT, b""
        case _:
            assert_never(mark)


def decode_mark(frame: Frame) -> Mark:
    """Inverse of ``encode_mark``; the lengths of bodies are checked already. Raises ValueError for anything that it
    does not make."""
    match frame.kind:
        case FrameKind.WATERMARK:
            (time_ms,) = WATERMARK_BODY.unpack(frame.body)
            return Watermark(time_ms)
        case FrameKind.BARRIER:
            attempt, checkpoint, kind, overtakes = BARRIER_BODY.unpack(frame.body)
            if kind >= len(_KINDS) or overtakes > 1:
                raise ValueError(f"a barrier of the unknown kind {kind}, {overtakes}")
            return Barrier(
                attempt=Attempt(attempt),
                checkpoint=CheckpointId(checkpoint),
                kind=_KINDS[kind],
                overtakes=bool(overtakes),
            )
        case FrameKind.IDLE:
            return Idle()
        case FrameKind.END_OF_INPUT:
            return EndOfInput()
        case FrameKind.BATCH | FrameKind.CREDIT:
            raise ValueError(f"a frame of kind {frame.kind.name} is no mark")
        case _:
            assert_never(frame.kind)
