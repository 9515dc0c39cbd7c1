"""All channels of one attempt between this worker and the others, over one connection to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from processor.channels.frames import HEADER, Frame, FrameKind, FrameReader, header, malformed
from processor.channels.receiving import ReceivingChannel
from processor.channels.sending import SendingChannel
from processor.contracts.channel import ChannelReceiver, ChannelSender
from processor.contracts.connection import Bytes, Connection
from processor.ids import ChannelId, WorkerId
from processor.invariant import invariant
from processor.records.elements import Element
from processor.records.value_codec import ValueCodec


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingFigures:
    """Of one channel to another worker."""

    peer: WorkerId
    channel: ChannelId
    in_flight_bytes: int
    """Sent, and not yet taken by the consumer as far as this worker knows."""


class Exchange:
    """Made with every channel of the attempt before the first ``turn``: a frame of a channel that is not there is an
    error. Used by the thread that steps subtasks; no call blocks.
    """

    def __init__(self, connections: Mapping[WorkerId, Connection], *, window_bytes: int) -> None:
        """``window_bytes``: how much may be on its way on each channel, the same in every worker."""
        self._peers = {peer: _Peer(peer, connections[peer], window_bytes) for peer in sorted(connections)}

    def sender(self, peer: WorkerId, channel: ChannelId, codec: ValueCodec) -> ChannelSender:
        """The end here of a channel to a consumer there."""
        return self._peers[peer].sender(channel, codec)

    def receiver(
        self, peer: WorkerId, channel: ChannelId, codec: ValueCodec, begins: Sequence[Element] = ()
    ) -> ChannelReceiver:
        """The end here of a channel from a producer there. ``begins``: what a restored checkpoint has on it, in front
        of everything that arrives; it costs no credit."""
        return self._peers[peer].receiver(channel, codec, begins)

    def turn(self) -> bool:
        """Read all that is there, write all that waits, as far as it goes; True when anything moved.

        Raises AttemptFailed, naming the peer, for a connection that is broken and for anything that a worker must not
        have sent.
        """
        moved = False
        for peer in self._peers.values():
            moved = peer.read() or moved
            moved = peer.write() or moved
        return moved

    @property
    def in_flight_bytes(self) -> int:
        """Of all channels to other workers together."""
        return sum(
            sender.in_flight_bytes for peer in self._peers.values() for sender in peer.senders.values()
        )

    @property
    def waiting_bytes(self) -> int:
        """Of all channels from other workers together: arrived, and not taken."""
        return sum(
            receiver.waiting_bytes for peer in self._peers.values() for receiver in peer.receivers.values()
        )

    def figures(self) -> tuple[SendingFigures, ...]:
        """Of every channel to another worker, by worker and channel."""
        return tuple(
            SendingFigures(peer=worker, channel=channel, in_flight_bytes=sender.in_flight_bytes)
            for worker, peer in self._peers.items()
            for channel, sender in sorted(peer.senders.items())
        )


class _Peer:
    """One other worker: its connection, and the channels to and from it."""

    def __init__(self, peer: WorkerId, connection: Connection, window_bytes: int) -> None:
        self._peer = peer
        self._connection = connection
        self._window_bytes = window_bytes
        self._frames = FrameReader(peer)
        self._parts: list[Bytes] = []
        """Of the frames since the last write: many small ones leave together."""
        self._parts_bytes = 0
        self._unwritten_bytes = 0
        """What the connection took and could not write yet."""
        self.senders: dict[ChannelId, SendingChannel] = {}
        self.receivers: dict[ChannelId, ReceivingChannel] = {}

    def sender(self, channel: ChannelId, codec: ValueCodec) -> SendingChannel:
        invariant(channel not in self.senders, "a channel has one producer's end")
        made = SendingChannel(
            self._peer, channel, codec, window_bytes=self._window_bytes, send=self._send_frame
        )
        self.senders[channel] = made
        return made

    def receiver(self, channel: ChannelId, codec: ValueCodec, begins: Sequence[Element]) -> ReceivingChannel:
        invariant(channel not in self.receivers, "a channel has one consumer's end")
        made = ReceivingChannel(
            self._peer,
            channel,
            codec,
            begins=begins,
            window_bytes=self._window_bytes,
            send=self._send_frame,
        )
        self.receivers[channel] = made
        return made

    def read(self) -> bool:
        """Everything that is at hand, whatever the consumers are doing: all of it has room, and a channel that waits
        must not hold another one back."""
        moved = False
        while piece := self._connection.receive():
            moved = True
            for frame in self._frames.read(piece):
                self._arrived(frame)
        return moved

    def write(self) -> bool:
        waiting_bytes = self._unwritten_bytes + self._parts_bytes
        if waiting_bytes == 0:
            return False
        if self._parts:
            parts, self._parts = self._parts, []
            self._parts_bytes = 0
            self._connection.send(parts)
        self._unwritten_bytes = self._connection.flush()
        return self._unwritten_bytes < waiting_bytes

    def _send_frame(self, kind: FrameKind, channel: ChannelId, sequence: int, body: bytes) -> None:
        self._parts.append(header(kind, channel, sequence, len(body)))
        if body:
            self._parts.append(body)
        self._parts_bytes += HEADER.size + len(body)

    def _arrived(self, frame: Frame) -> None:
        if frame.kind is FrameKind.CREDIT:
            sender = self.senders.get(frame.channel)
            if sender is None:
                raise malformed(self._peer, frame.channel, "credit, and nothing is sent there,")
            sender.credited(frame)
        else:
            receiver = self.receivers.get(frame.channel)
            if receiver is None:
                raise malformed(self._peer, frame.channel, f"a frame of kind {frame.kind.name}, unasked,")
            receiver.arrived(frame)
