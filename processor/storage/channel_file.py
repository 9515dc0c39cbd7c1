"""The file of records in flight: what was on its way to one subtask over one edge, channel by channel.

A block is a batch, or a mark that stood between two batches. Values are encoded at the cut, in the subtask's
thread: the records go on their way while the file is being written, and their functions may change them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

import msgspec

from processor.contracts.file_store import FileStore
from processor.errors import JobError
from processor.ids import EdgeName, FileRef
from processor.invariant import invariant
from processor.records.batch import Batch
from processor.records.batch_codec import decode_batch, encode_batch
from processor.records.elements import Idle, Watermark
from processor.records.value_codec import ValueCodec
from processor.storage.block_file import (
    BLOCK_BYTES_MAX,
    BLOCK_BYTES_TARGET,
    BlockWriter,
    damaged,
    read_blocks,
)

CHANNEL_MAGIC = b"PXCHANL\n"
CHANNEL_VERSION = 2

_BLOCK = Struct("<IB")  # which channel of the header, what it is
_BATCH, _WATERMARK, _IDLE = range(3)

_encoder = msgspec.msgpack.Encoder()

InFlight = Batch[Any] | Watermark | Idle
"""What of a channel becomes part of a checkpoint. Barriers do not: each belongs to a checkpoint of its own. The end
of an input does not: who has ended says so again."""


class ChannelHead(msgspec.Struct, frozen=True, kw_only=True):
    """One channel as it stood at the cut, before what is in flight on it."""

    producer: int
    """Index of the subtask that sends on it."""
    watermark_ms: int | None = None
    """Event time it had told; None: none."""
    silent: bool = False
    """It held nobody back: it was idle, or had ended."""


class ChannelFileHeader(msgspec.Struct, frozen=True, kw_only=True):
    edge: EdgeName
    channels: tuple[ChannelHead, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenBatch:
    """A batch whose values are bytes already."""

    batch: Batch[Any]
    """For everything but its values."""
    values: bytes


_header_decoder = msgspec.msgpack.Decoder(ChannelFileHeader)
_watermark_decoder = msgspec.msgpack.Decoder(int)


def freeze(batch: Batch[Any], codec: ValueCodec) -> Iterator[FrozenBatch]:
    """The batch as one block or, when its values are larger than BLOCK_BYTES_TARGET, as several.

    Raises UserCodeError for values that cannot be encoded.
    """
    values = codec.encode(batch.values)
    if len(values) > BLOCK_BYTES_TARGET and len(batch) > 1:
        middle = len(batch) // 2
        yield from freeze(batch.slice(0, middle), codec)
        yield from freeze(batch.slice(middle, len(batch)), codec)
    else:
        yield FrozenBatch(batch=batch, values=values)


class ChannelFileWriter:
    """Writes one file. Used by one thread; ``finish`` or ``discard`` ends it."""

    def __init__(self, files: FileStore, name: str, header: ChannelFileHeader) -> None:
        """Begin the file ``name``. Raises DamagedFile when the name is taken, Unavailable."""
        self._header = header
        self._blocks = BlockWriter(
            files.create(name), magic=CHANNEL_MAGIC, version=CHANNEL_VERSION, header=_encoder.encode(header)
        )

    def write(self, channel: int, element: FrozenBatch | Watermark | Idle) -> None:
        """Append what was in flight on ``header.channels[channel]``, in order. Raises Unavailable; JobError when
        one record alone exceeds BLOCK_BYTES_MAX."""
        invariant(0 <= channel < len(self._header.channels), "a block names a channel of the header")
        match element:
            case FrozenBatch():
                self._batch(channel, element)
            case Watermark(time_ms=time_ms):
                self._blocks.block(_BLOCK.pack(channel, _WATERMARK) + _encoder.encode(time_ms))
            case Idle():
                self._blocks.block(_BLOCK.pack(channel, _IDLE))

    def _batch(self, channel: int, frozen: FrozenBatch) -> None:
        batch = frozen.batch
        invariant(batch.keys is not None, "batches on an edge that may be overtaken carry keys")
        body = encode_batch(batch, frozen.values)
        if len(body) > BLOCK_BYTES_MAX - _BLOCK.size:
            raise JobError(
                f"{len(batch)} records {self._header.edge} have {len(body)} bytes; a checkpoint takes up to "
                f"{BLOCK_BYTES_MAX} in one block.",
                remedy="Make the values smaller, or set checkpoint.unaligned to false.",
            )
        self._blocks.block(_BLOCK.pack(channel, _BATCH) + body)

    def finish(self) -> FileRef:
        """Make the file durable. Raises Unavailable."""
        return self._blocks.finish()

    def discard(self) -> None:
        """Give the file up; idempotent."""
        self._blocks.discard()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContent:
    """One channel as it is read back."""

    head: ChannelHead
    elements: tuple[InFlight, ...]


def read_channels(store: FileStore, ref: FileRef, codec: ValueCodec) -> tuple[ChannelContent, ...]:
    """All channels of a file, whole and checked.

    Raises DamagedFile by name; JobError for values of another type than the job now names.
    """
    parts = read_blocks(store, ref, magic=CHANNEL_MAGIC, version=CHANNEL_VERSION)
    try:
        header = _header_decoder.decode(next(parts))
    except msgspec.MsgspecError as error:
        raise damaged(ref.name, "has a header that is none") from error
    found: list[list[InFlight]] = [[] for _ in header.channels]
    for body in parts:
        if len(body) < _BLOCK.size:
            raise damaged(ref.name, "has a block that is too short")
        channel, what = _BLOCK.unpack_from(body)
        if channel >= len(found):
            raise damaged(ref.name, f"has a block of channel {channel}, which it does not have")
        found[channel].append(_element(what, body[_BLOCK.size :], ref.name, codec))
    return tuple(
        ChannelContent(head=head, elements=tuple(elements))
        for head, elements in zip(header.channels, found, strict=True)
    )


def _element(what: int, body: memoryview, name: str, codec: ValueCodec) -> InFlight:
    if what == _IDLE:
        return Idle()
    try:
        if what == _WATERMARK:
            return Watermark(_watermark_decoder.decode(body))
        if what != _BATCH:
            raise damaged(name, f"has a block of kind {what}")
        batch = decode_batch(body, codec.decode)
    except (msgspec.MsgspecError, ValueError) as error:
        raise damaged(name, "has a block that is none") from error
    if batch.keys is None:
        raise damaged(name, "has a batch without keys")
    return batch
