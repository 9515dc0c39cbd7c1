"""Streams between simulated worker processes: slow, cut into pieces of any size, and now and then broken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from processor.contracts.connection import Bytes
from processor.errors import AttemptFailed
from processor.simulation.injection import Injection
from processor.simulation.process import SimulatedProcess
from processor.simulation.world import World

QUICK_US_MAX = 800
IN_TRANSIT_BYTES_MAX = 4_096
"""What the network and the buffers of both sides take; small, so that it is met."""
WHOLE_SHARE = 0.5
"""Of what is received: as it was sent; the rest is cut somewhere."""


class StreamEnd:
    """See ``processor.contracts.connection.Connection``; one end of a ``Stream``."""

    def __init__(self, process: SimulatedProcess, peer: str, arrived: Callable[[], None]) -> None:
        """``arrived`` is called when there is something to receive, or to flush again."""
        self.process = process
        self.broken = ""
        """Why; empty while it is whole."""
        self._peer = peer
        self._arrived = arrived
        self._waiting: deque[bytes] = deque()
        self._inbox: deque[bytes] = deque()
        self._stream: Stream | None = None

    def join(self, stream: Stream) -> None:
        self._stream = stream

    def send(self, parts: Sequence[Bytes]) -> None:
        self.process.check()
        stream = self._stream
        assert stream is not None
        if not self.broken:
            self._waiting += [b"".join(parts)] * stream.copies(self)

    def flush(self) -> int:
        self.process.check()
        stream = self._stream
        assert stream is not None
        while self._waiting and not self.broken and (room := stream.room(self)) > 0:
            part = self._waiting.popleft()
            if len(part) > room:
                self._waiting.appendleft(part[room:])
                part = part[:room]
            stream.carry(self, part)
        return sum(map(len, self._waiting))

    def receive(self) -> Bytes:
        self.process.check()
        stream = self._stream
        assert stream is not None
        if not self._inbox:
            if self.broken:
                raise AttemptFailed(f"the connection with {self._peer} is broken: {self.broken}.")
            return b""
        part = self._inbox.popleft()
        cut = stream.cut(len(part))
        if cut < len(part):
            self._inbox.appendleft(part[cut:])
        stream.taken(self, cut)
        return part[:cut]

    def close(self) -> None:
        if self._stream is not None:
            self._stream.end("the other side has ended it")

    # --- what the stream does

    def arrive(self, part: bytes) -> None:
        self._inbox.append(part)
        self._arrived()

    def room_again(self) -> None:
        if self._waiting:
            self._arrived()

    def end(self, why: str, *, loses: bool) -> None:
        """``loses``: what has arrived here and was not received goes too."""
        self.broken = self.broken or why
        self._waiting.clear()
        if loses:
            self._inbox.clear()
        self._arrived()


class Stream:
    """Both directions between two ends."""

    def __init__(self, world: World, injection: Injection, one: StreamEnd, other: StreamEnd) -> None:
        self._world = world
        self._injection = injection
        self._chance = world.chance(f"stream {one.process.name} {other.process.name}")
        self._other = {one: other, other: one}
        self._in_transit = {one: 0, other: 0}
        """Bytes on their way from each, until they are received."""
        self._arrives_us = {one: 0, other: 0}
        """When what was sent last by each arrives: nothing overtakes it, nor arrives in the same moment, whose order
        would be the scheduler's."""
        self.whole = True
        one.join(self)
        other.join(self)

    def copies(self, sender: StreamEnd) -> int:
        """How often a write is to arrive."""
        faults, draw, who = self._injection.faults, self._injection.draw, sender.process.name
        if draw("write lost", faults.writes_lost, who, "what it writes to a worker is lost"):
            return 0
        if draw("write doubled", faults.writes_doubled, who, "what it writes to a worker comes twice"):
            return 2
        return 1

    def room(self, sender: StreamEnd) -> int:
        return IN_TRANSIT_BYTES_MAX - self._in_transit[sender]

    def carry(self, sender: StreamEnd, part: bytes) -> None:
        self._in_transit[sender] += len(part)
        at_us = max(self._arrives_us[sender] + 1, self._world.now_us + self._chance.randint(1, QUICK_US_MAX))
        self._arrives_us[sender] = at_us
        self._world.later(at_us - self._world.now_us, lambda: self._arrive(sender, part))

    def cut(self, length: int) -> int:
        """How much of so many bytes is received at once."""
        return length if self._chance.random() < WHOLE_SHARE else self._chance.randint(1, length)

    def taken(self, receiver: StreamEnd, length: int) -> None:
        sender = self._other[receiver]
        self._in_transit[sender] -= length
        self._world.later(0, sender.room_again)

    def end(self, why: str, *, loses: bool = False) -> None:
        """Both sides see it; what is on its way is lost."""
        if self.whole:
            self.whole = False
            for end in self._other:
                end.end(why, loses=loses)

    def _arrive(self, sender: StreamEnd, part: bytes) -> None:
        if self.whole:
            self._other[sender].arrive(part)


class Streams:
    """All of a run, to break some of them."""

    def __init__(self, world: World, injection: Injection) -> None:
        self._world = world
        self._injection = injection
        self._streams: list[Stream] = []

    def between(self, one: StreamEnd, other: StreamEnd) -> Stream:
        self._streams = [stream for stream in self._streams if stream.whole]
        stream = Stream(self._world, self._injection, one, other)
        self._streams.append(stream)
        return stream

    def break_one(self, kind: str) -> None:
        """A fault: any of them breaks."""
        whole = [stream for stream in self._streams if stream.whole]
        if whole and self._injection.happens(kind, "network", "a connection between workers breaks"):
            chance = self._injection.chance(f"{kind} which")
            chance.choice(whole).end("the network lost it", loses=chance.random() < 0.5)
