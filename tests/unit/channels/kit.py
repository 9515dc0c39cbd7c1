"""Connections in memory, and two workers that exchange over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from processor.channels.exchange import Exchange
from processor.contracts.connection import Bytes
from processor.errors import AttemptFailed
from processor.ids import ChannelId, WorkerId
from processor.records.batch import Batch
from processor.records.value_codec import ValueCodec

HERE, THERE = WorkerId(0), WorkerId(1)
EDGE = ChannelId(edge=0, producer=0, consumer=0)
CODEC = ValueCodec(None, "from step 'a' to input 0 of step 'b'")


class Stream:
    """One direction: up to ``room`` bytes are on their way."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.bytes = bytearray()
        self.ended = False


class MemoryConnection:
    """See ``processor.contracts.connection.Connection``. ``piece`` says how much of what is at hand comes at once."""

    def __init__(self, peer: WorkerId, outward: Stream, inward: Stream, piece: Callable[[int], int]) -> None:
        self._peer = peer
        self._outward = outward
        self._inward = inward
        self._piece = piece
        self._pending = bytearray()
        self.sends = 0

    def send(self, parts: Sequence[Bytes]) -> None:
        self.sends += 1
        for part in parts:
            self._pending += part

    def flush(self) -> int:
        fits = max(0, self._outward.room - len(self._outward.bytes))
        self._outward.bytes += self._pending[:fits]
        del self._pending[:fits]
        return len(self._pending)

    def receive(self) -> bytes:
        held = self._inward.bytes
        if not held and self._inward.ended:
            raise AttemptFailed(f"worker {self._peer} ended the connection.")
        size = self._piece(len(held)) if held else 0
        piece = bytes(held[:size])
        del held[:size]
        return piece

    def close(self) -> None:
        self._outward.ended = True


def whole(size: int) -> int:
    return size


def connected(
    *, room: int = 2**30, piece: Callable[[int], int] = whole
) -> tuple[MemoryConnection, MemoryConnection]:
    """The two ends: that of HERE, then that of THERE."""
    forth, back = Stream(room), Stream(room)
    return MemoryConnection(THERE, forth, back, piece), MemoryConnection(HERE, back, forth, piece)


class Pair:
    """Two workers, each with an exchange."""

    def __init__(
        self, *, window_bytes: int = 2**20, room: int = 2**30, piece: Callable[[int], int] = whole
    ) -> None:
        self.near, self.far = connected(room=room, piece=piece)
        self.here = Exchange({THERE: self.near}, window_bytes=window_bytes)
        self.there = Exchange({HERE: self.far}, window_bytes=window_bytes)

    def settle(self) -> None:
        """Turns of both until nothing moves."""
        while self.here.turn() | self.there.turn():
            pass


def batch(*values: object) -> Batch:
    return Batch(values=list(values), timestamps=[0] * len(values))


def addresses_in(place: str, number: int = 2) -> list[str]:
    """Where so many workers listen, below what the fixture ``place`` gives."""
    return [f"{place}/worker-{n}.sock" if place.startswith("unix:") else place for n in range(number)]
