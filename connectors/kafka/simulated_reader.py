"""Reading partitions of a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from connectors.kafka.cluster import Message, Partition
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_client import ANSWER_WAIT_MS, SimulatedClient
from connectors.kafka.simulated_log import PartitionLog
from connectors.kafka.simulated_records import LEADER_EPOCH, SimulatedError, SimulatedMessage
from connectors.kafka.simulated_topics import Topic
from processor.invariant import invariant

FETCH_RECORDS_MAX: Final = 1_000
"""Most records of one partition in one answer, so that none keeps the others waiting."""

WAIT_SLICES: Final = 4
"""A consumer that waits looks so often whether there is something."""


@dataclass(slots=True, kw_only=True)
class ReadPartition:
    position: int
    leader_epoch: int
    paused: bool = False
    stopped: bool = False
    """After its position was refused; until it is assigned anew."""
    told_end: int | None = None
    """The position of which it was said that nothing is behind it."""
    told_denied: bool = False


class SimulatedReader:
    """See ``cluster.RecordConsumer``. It reads nothing ahead: what ``consume`` returns was asked for in it.

    Nothing is asked while there is nothing new, as a broker holds such an answer back.
    """

    def __init__(self, broker: SimulatedBroker, client: SimulatedClient) -> None:
        self._broker = broker
        self._client = client
        self._read: dict[Partition, ReadPartition] = {}
        self._turn = 0
        self._next_try_ms = 0

    def assign(self, starts: Mapping[Partition, tuple[int, int]]) -> None:
        for at, (offset, leader_epoch) in starts.items():
            invariant(at not in self._read, "a partition is assigned once")
            self._read[at] = ReadPartition(position=offset, leader_epoch=leader_epoch)

    def unassign(self, partitions: Sequence[Partition]) -> None:
        for at in partitions:
            del self._read[at]

    def pause(self, partitions: Sequence[Partition]) -> None:
        for at in partitions:
            self._read[at].paused = True

    def resume(self, partitions: Sequence[Partition]) -> None:
        for at in partitions:
            self._read[at].paused = False
            self._read[at].told_end = None

    def consume(self, records_max: int, wait_ms: int) -> Sequence[Message]:
        world = self._client.world
        messages = self._fetch(records_max)
        slice_ms = -(-wait_ms // WAIT_SLICES)
        for waited_ms in range(0, wait_ms, max(1, slice_ms)):
            if messages:
                break
            world.wait(min(slice_ms, wait_ms - waited_ms))
            messages = self._fetch(records_max)
        return messages

    def close(self) -> None:
        self._read.clear()

    def _fetch(self, records_max: int) -> Sequence[Message]:
        """What one answer holds; nothing when it is lost."""
        world = self._client.world
        ready = self._ready()
        if not ready or world.now_ms() < self._next_try_ms:
            return ()
        asked = " ".join(str(at) for at in ready)
        before = {at: replace(self._read[at]) for at in ready}
        answer = self._client.once(f"Fetch {asked}", lambda: self._take(ready, records_max), changes=False)
        if answer is None:
            self._read.update(before)  # what was in an answer that did not arrive is asked for again
            self._next_try_ms = world.now_ms() + ANSWER_WAIT_MS
            return ()
        return answer.value

    def _ready(self) -> list[Partition]:
        """Partitions of which there is something to say, each call beginning with another one."""
        ready = [at for at, read in self._read.items() if self._has_news(at, read)]
        self._turn += 1
        first = self._turn % len(ready) if ready else 0
        return ready[first:] + ready[:first]

    def _has_news(self, at: Partition, read: ReadPartition) -> bool:
        if read.paused or read.stopped:
            return False
        found = self._find(at)
        if found is None:
            return False  # the client goes on looking for it, and says nothing
        topic, log = found
        if not log.has_leader:
            return False
        if "READ" in topic.denied:
            return not read.told_denied
        return (
            read.position < log.low
            or read.position > log.end
            or read.leader_epoch > LEADER_EPOCH
            or log.has_news(read.position)
            or (read.position == log.stable_end and read.told_end != read.position)
        )

    def _take(self, ready: Sequence[Partition], records_max: int) -> list[Message]:
        messages: list[Message] = []
        events: list[Message] = []
        for at in ready:
            read, found = self._read.get(at), self._find(at)
            if read is None or found is None:
                continue
            topic, log = found
            event = self._refusal(at, read, topic, log)
            if event is not None:
                events.append(event)
                continue
            room = min(records_max - len(messages), FETCH_RECORDS_MAX)
            if room <= 0:
                break
            records, read.position = log.read(read.position, room)
            messages += records
            if read.position == log.stable_end and read.told_end != read.position:
                read.told_end = read.position
                events.append(_event(at, read.position, "_PARTITION_EOF", "reached end of partition"))
        return messages + events

    def _refusal(self, at: Partition, read: ReadPartition, topic: Topic, log: PartitionLog) -> Message | None:
        if "READ" in topic.denied:
            read.told_denied = True
            return _event(at, read.position, "TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed")
        read.told_denied = False
        if read.leader_epoch > LEADER_EPOCH:
            text = "Local: Partition log truncation detected"
        elif not log.low <= read.position <= log.end:
            text = "Broker: Offset out of range"
        else:
            return None
        read.stopped = True
        return _event(at, read.position, "_AUTO_OFFSET_RESET", text)

    def _find(self, at: Partition) -> tuple[Topic, PartitionLog] | None:
        topic = self._broker.topics.find(at.topic)
        if topic is None or at.number >= len(topic.logs):
            return None
        return topic, topic.logs[at.number]


def _event(at: Partition, position: int, name: str, text: str) -> Message:
    return SimulatedMessage.event(at, position, SimulatedError(name, text))
