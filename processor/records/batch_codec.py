"""Between a batch and bytes, with all its columns: what a checkpoint keeps of it, and what another worker is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from processor.ids import SplitId
from processor.records.batch import Batch, Headers
from processor.records.columns import encodable
from processor.records.key_column import decode_keys, encode_keys

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(
    tuple[
        memoryview,  # values
        list[int],  # timestamps
        tuple[int, memoryview] | None,  # keys
        list[Headers] | None,
        str | None,  # split
        list[int] | None,  # offsets
    ]
)


def encode_batch(batch: Batch[Any], values: bytes) -> bytes:
    """The bytes of a batch whose values are bytes already. Raises JobError for what cannot be a key."""
    return _encoder.encode(
        (
            values,
            encodable(batch.timestamps),
            None if batch.keys is None else encode_keys(batch.keys),
            encodable(batch.headers),
            batch.split,
            encodable(batch.offsets),
        )
    )


def decode_batch(
    encoded: bytes | memoryview, decode_values: Callable[[memoryview], Sequence[Any]]
) -> Batch[Any]:
    """Inverse of ``encode_batch``. Raises ValueError for anything that it does not make, and whatever
    ``decode_values`` does."""
    try:
        values, timestamps, packed, headers, split, offsets = _decoder.decode(encoded)
    except msgspec.MsgspecError as error:
        raise ValueError(f"this is no batch: {error}") from error
    keys = None if packed is None else decode_keys(*packed)
    batch = Batch(
        values=decode_values(values),
        timestamps=timestamps,
        keys=keys,
        headers=headers,
        split=None if split is None else SplitId(split),
        offsets=offsets,
    )
    columns: tuple[Sequence[Any] | None, ...] = (timestamps, keys, headers, offsets)
    if len(batch) == 0 or any(column is not None and len(column) != len(batch) for column in columns):
        raise ValueError(f"a batch of {len(batch)} records has columns of other lengths")
    return batch
