"""The producer's end of a channel to another worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from processor.channels.credits import SendWindow, cost
from processor.channels.frames import BATCH_BYTES_MAX, CREDIT_BODY, Frame, FrameKind, malformed
from processor.channels.marks import encode_mark
from processor.errors import UserCodeError
from processor.ids import ChannelId, WorkerId
from processor.records.batch import Batch
from processor.records.batch_codec import encode_batch
from processor.records.elements import Element
from processor.records.value_codec import ValueCodec

SendFrame = Callable[[FrameKind, ChannelId, int, bytes], None]
"""Takes kind, channel, sequence number and body."""


class SendingChannel:
    """See ``processor.contracts.channel.ChannelSender``. Batches are encoded as they are sent."""

    def __init__(
        self, peer: WorkerId, channel: ChannelId, codec: ValueCodec, *, window_bytes: int, send: SendFrame
    ) -> None:
        self._peer = peer
        self._channel = channel
        self._codec = codec
        self._window = SendWindow(window_bytes)
        self._send = send
        self._sequence = 0
        self._credits = 0

    @property
    def in_flight_bytes(self) -> int:
        """Costs of what the consumer has not taken, as far as it has told."""
        return self._window.in_flight_bytes

    def ready(self) -> bool:
        return self._window.open()

    def send(self, element: Element) -> None:
        """Raises UserCodeError for values that are not of the type that the job names."""
        if isinstance(element, Batch):
            for body in self._bodies(element):
                self._window.sent(cost(len(body)))
                self._frame(FrameKind.BATCH, body)
        else:
            self._frame(*encode_mark(element))

    def credited(self, frame: Frame) -> None:
        """A frame of credit has arrived. Raises AttemptFailed for one that cannot be."""
        if frame.sequence != self._credits:
            raise malformed(self._peer, self._channel, f"credit {frame.sequence} instead of {self._credits}")
        self._credits += 1
        try:
            self._window.granted(*CREDIT_BODY.unpack(frame.body))
        except ValueError as error:
            raise malformed(self._peer, self._channel, str(error)) from error

    def _frame(self, kind: FrameKind, body: bytes) -> None:
        self._send(kind, self._channel, self._sequence, body)
        self._sequence += 1

    def _bodies(self, batch: Batch[Any]) -> Iterator[bytes]:
        """The batch as one body or, when it is larger than one may be, as several."""
        body = encode_batch(batch, self._codec.encode(batch.values))
        if len(body) <= BATCH_BYTES_MAX:
            yield body
        elif len(batch) > 1:
            middle = len(batch) // 2
            yield from self._bodies(batch.slice(0, middle))
            yield from self._bodies(batch.slice(middle, len(batch)))
        else:
            raise UserCodeError(
                f"a record has {len(body)} bytes; to another worker go up to {BATCH_BYTES_MAX}.",
                remedy="Make its value smaller.",
                where=batch.where(0),
            )
