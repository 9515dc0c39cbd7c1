"""How simulated workers meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from processor.contracts.connection import Connection
from processor.errors import AttemptFailed
from processor.ids import Attempt, Incarnation, WorkerId
from processor.simulation.process import SimulatedProcess
from processor.simulation.streams import StreamEnd, Streams
from processor.simulation.world import US_PER_MS, Task

CONNECT_MS_MAX = 10_000
MEET_US_MAX = 3_000

Meeting = tuple[Incarnation, Attempt, frozenset[str]]


class MeetingPlace:
    """Where whoever comes first waits for the other: the same attempt, and the two of them."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.waiting: dict[Meeting, SimulatedPeers] = {}


class SimulatedPeers:
    """See ``processor.contracts.peers.Peers``."""

    def __init__(self, process: SimulatedProcess, place: MeetingPlace) -> None:
        self._process = process
        self._world = process.world
        self._place = place
        self._chance = self._world.chance(f"meetings of {process.name}")
        self._wanted: dict[str, WorkerId] = {}
        self._ends: dict[WorkerId, StreamEnd] = {}
        self._meetings: list[Meeting] = []
        self._deadline_ms = 0
        self._woken = False
        self._parked: Task | None = None
        self.wakes_too: Callable[[], None] = lambda: None
        """The executor of the attempt under way, which waits here too."""

    @property
    def address(self) -> str:
        return f"simulated:{self._process.name}"

    def connect(self, incarnation: Incarnation, attempt: Attempt, addresses: Mapping[WorkerId, str]) -> None:
        self._process.check()
        self.disconnect()
        self._wanted = {address: worker for worker, address in addresses.items()}
        self._deadline_ms = self._world.now_ms + CONNECT_MS_MAX
        for address in addresses.values():
            meeting = (incarnation, attempt, frozenset((address, self.address)))
            other = self._place.waiting.pop(meeting, None)
            if other is None:
                self._place.waiting[meeting] = self
                self._meetings.append(meeting)
            else:
                self._world.later(self._chance.randint(1, MEET_US_MAX), self._meeting(other, self._wanted))

    def _meeting(self, other: SimulatedPeers, wanted: Mapping[str, WorkerId]) -> Callable[[], None]:
        theirs = other._wanted

        def meet() -> None:
            if self._wanted is not wanted or other._wanted is not theirs:
                return  # of an attempt that is over at one side; the other waits in vain
            if not (self._process.alive and other._process.alive):
                return
            ours = StreamEnd(self._process, other.address, self.wake)
            their = StreamEnd(other._process, self.address, other.wake)
            stream = self._place.streams.between(ours, their)
            for process in (self._process, other._process):
                process.when_over(lambda: stream.end("the process at the other side has ended"))
            self._ends[wanted[other.address]] = ours
            other._ends[theirs[self.address]] = their
            self.wake()
            other.wake()

        return meet

    def connected(self) -> Mapping[WorkerId, Connection] | None:
        self._process.check()
        if len(self._ends) == len(self._wanted):
            return dict(self._ends)
        if self._world.now_ms >= self._deadline_ms:
            missing = sorted(set(self._wanted.values()) - self._ends.keys())
            raise AttemptFailed(f"workers {missing} were not reached in time.")
        return None

    def wait(self, timeout_ms: int) -> None:
        self._process.check()
        if not self._woken:
            self._parked = self._world.running
            try:
                self._world.park(timeout_ms * US_PER_MS)
            finally:
                self._parked = None
        self._woken = False

    def wake(self) -> None:
        self._woken = True
        if self._parked is not None:
            self._world.unpark(self._parked)
        self.wakes_too()

    def disconnect(self) -> None:
        for meeting in self._meetings:
            if self._place.waiting.get(meeting) is self:
                del self._place.waiting[meeting]
        ends, self._ends, self._wanted, self._meetings = self._ends, {}, {}, []
        for end in ends.values():
            end.close()

    def close(self) -> None:
        self.disconnect()
