"""Which kind of channel joins two subtasks, and the ends of it that are in this worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from processor.channels.memory import MemoryChannel
from processor.contracts.channel import ChannelReceiver, ChannelSender
from processor.ids import ChannelId, SubtaskId, WorkerId
from processor.invariant import invariant
from processor.plan.execution import ExecutionPlan
from processor.plan.placement import Placement
from processor.plan.subtasks import Link
from processor.records.elements import Element
from processor.records.value_codec import ValueCodec
from processor.settings.model import RuntimeSettings


class ChannelsElsewhere(Protocol):
    """The ends of channels whose other end is in another worker (``processor.channels.exchange``)."""

    def sender(self, peer: WorkerId, channel: ChannelId, codec: ValueCodec) -> ChannelSender: ...

    def receiver(
        self, peer: WorkerId, channel: ChannelId, codec: ValueCodec, begins: Sequence[Element]
    ) -> ChannelReceiver: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """None: that end is elsewhere."""

    sender: ChannelSender | None
    receiver: ChannelReceiver | None


class ChannelEnds:
    """Of one worker and one attempt."""

    def __init__(
        self,
        plan: ExecutionPlan,
        placement: Placement,
        worker: WorkerId,
        settings: RuntimeSettings,
        elsewhere: ChannelsElsewhere | None = None,
    ) -> None:
        """``elsewhere`` may be None when the worker is the only one."""
        self._plan = plan
        self._placement = placement
        self._worker = worker
        self._settings = settings
        self._elsewhere = elsewhere
        self._codecs: dict[int, ValueCodec] = {}

    def here(self, subtask: SubtaskId) -> bool:
        """Whether the subtask runs in this worker."""
        return self._placement.of(subtask) == self._worker

    def of(self, link: Link, begins: Sequence[Element]) -> Ends:
        """The ends of a channel that begins with what was in flight on it."""
        sends, receives = self.here(link.producer), self.here(link.consumer)
        if sends and receives:
            channel = MemoryChannel(self._settings.channel_batches_max)
            for element in begins:
                channel.send(element)
            return Ends(sender=channel, receiver=channel)
        if not sends and not receives:
            return Ends(sender=None, receiver=None)
        elsewhere = self._elsewhere
        invariant(elsewhere is not None, "who is not alone has channels to the others")
        assert elsewhere is not None
        codec = self._codec(link.edge)
        id = ChannelId(edge=link.edge, producer=link.producer.index, consumer=link.consumer.index)
        if sends:
            sender = elsewhere.sender(self._placement.of(link.consumer), id, codec)
            return Ends(sender=sender, receiver=None)
        receiver = elsewhere.receiver(self._placement.of(link.producer), id, codec, begins)
        return Ends(sender=None, receiver=receiver)

    def _codec(self, edge: int) -> ValueCodec:
        if edge not in self._codecs:
            channel = self._plan.channels[edge]
            self._codecs[edge] = ValueCodec(channel.value_type, str(channel.name))
        return self._codecs[edge]
