"""The consumer's end of a channel from another worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from processor.channels.credits import ReceiveWindow, cost
from processor.channels.frames import CREDIT_BODY, Frame, FrameKind, malformed
from processor.channels.marks import Mark, decode_mark
from processor.channels.queue import ElementQueue
from processor.channels.sending import SendFrame
from processor.ids import ChannelId, WorkerId
from processor.records.batch import Batch
from processor.records.batch_codec import decode_batch
from processor.records.elements import Barrier, Element
from processor.records.value_codec import ValueCodec


@dataclass(slots=True)
class _Arrived:
    """A batch: as it came until somebody looks at it, then decoded."""

    cost_bytes: int
    found: bytes | Batch[Any]


class ReceivingChannel:
    """See ``processor.contracts.channel.ChannelReceiver``.

    A barrier is seen as soon as it has arrived, whatever is in front of it, for everything is taken in as it arrives:
    the sender's window bounds it. Batches are decoded at their turn, or when a barrier overtakes them.
    """

    def __init__(
        self,
        peer: WorkerId,
        channel: ChannelId,
        codec: ValueCodec,
        *,
        begins: Sequence[Element],
        window_bytes: int,
        send: SendFrame,
    ) -> None:
        """``begins``: what a restored checkpoint has in front of everything that arrives; it costs no credit."""
        self._peer = peer
        self._channel = channel
        self._codec = codec
        self._window = ReceiveWindow(window_bytes)
        self._send = send
        self._sequence = 0
        self._credits = 0
        self._queue: ElementQueue[Batch[Any] | Mark | _Arrived] = ElementQueue()
        for element in begins:
            self._queue.put(element)
        self.waiting_bytes = 0
        """Costs of the batches that have arrived and not been taken."""

    def arrived(self, frame: Frame) -> None:
        """A frame of a batch or of a mark. Raises AttemptFailed for one that cannot be."""
        if frame.sequence != self._sequence:
            raise malformed(
                self._peer, self._channel, f"frame {frame.sequence} where {self._sequence} is the next"
            )
        self._sequence += 1
        if frame.kind is FrameKind.BATCH:
            arrived = _Arrived(cost(len(frame.body)), frame.body)
            self.waiting_bytes += arrived.cost_bytes
            self._queue.put(arrived)
            return
        try:
            self._queue.put(decode_mark(frame))
        except ValueError as error:
            raise malformed(self._peer, self._channel, str(error)) from error

    def peek(self) -> Element | None:
        """Raises AttemptFailed for bytes that are no batch, UserCodeError for values of another type than the job
        names."""
        front = self._queue.front()
        return self._batch(front) if isinstance(front, _Arrived) else front

    def take(self) -> Element:
        element = self._queue.pop()
        if not isinstance(element, _Arrived):
            return element
        batch = self._batch(element)
        self.waiting_bytes -= element.cost_bytes
        granted = self._window.taken(element.cost_bytes)
        if granted:
            self._send(FrameKind.CREDIT, self._channel, self._credits, CREDIT_BODY.pack(granted))
            self._credits += 1
        return batch

    def barriers(self) -> Sequence[Barrier]:
        return self._queue.barriers()

    def overtake(self, barrier: Barrier) -> tuple[Element, ...]:
        return tuple(
            self._batch(element) if isinstance(element, _Arrived) else element
            for element in self._queue.pull(barrier)
        )

    def _batch(self, arrived: _Arrived) -> Batch[Any]:
        found = arrived.found
        if isinstance(found, bytes):
            try:
                arrived.found = found = decode_batch(found, self._codec.verify)
            except ValueError as error:
                raise malformed(self._peer, self._channel, f"bytes that are no batch ({error})") from error
        return found
