"""Messages between coordinator and worker processes, to and from bytes: a name, and the fields of what it names."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from processor.errors import AttemptFailed
from processor.protocol.messages import Order, Report
from processor.protocol.worker_messages import FromWorker, ToWorker

Message = Order | Report | ToWorker | FromWorker

MESSAGE_BYTES_MAX: Final = 512 * 2**20
"""Of one message: the largest holds an entry of the decision log."""

_KINDS: Final[dict[str, Any]] = {kind.__name__: kind for kind in get_args(Message)}
_decoders: Final[dict[str, msgspec.msgpack.Decoder[Any]]] = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in _KINDS.items()
}
_encoder = msgspec.msgpack.Encoder()
_outer_decoder = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw])


def encode_message(message: Message) -> bytes:
    return _encoder.encode((type(message).__name__, message))


def decode_message(content: bytes) -> Message:
    """Inverse of ``encode_message``. Raises AttemptFailed for everything else."""
    try:
        name, fields = _outer_decoder.decode(content)
        decoder = _decoders.get(name)
        if decoder is None:
            raise _unreadable(f"there is no message '{name}'")
        message: Message = decoder.decode(fields)
    except msgspec.MsgspecError as error:
        raise _unreadable(str(error)) from error
    return message


def _unreadable(why: str) -> AttemptFailed:
    return AttemptFailed(
        f"a message between coordinator and worker cannot be read: {why}.",
        remedy="Run both with the same release.",
    )
