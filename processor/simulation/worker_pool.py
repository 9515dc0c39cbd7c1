"""The simulated worker processes of one daemon, and the links to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from processor.ids import WorkerId
from processor.protocol.messages import Order, Report
from processor.protocol.worker_messages import (
    Deploy,
    Deployed,
    FromWorker,
    Joined,
    Release,
    Released,
    Stack,
    TellStack,
    ToWorker,
)
from processor.runtime.message_codec import Message, decode_message, encode_message
from processor.runtime.worker_host import WorkerHost
from processor.runtime.worker_pool import Gone, WorkerEvent
from processor.simulation.injection import Injection
from processor.simulation.links import LATE_MS_MAX, QUICK_US_MAX
from processor.simulation.peers import SimulatedPeers
from processor.simulation.process import SimulatedProcess
from processor.simulation.world import US_PER_MS, Task

START_MS_MAX: Final = 400
"""Until a process that was started has joined."""
ORPHANED_MS_MAX: Final = 15_000
ORPHANS: Final = 0.5
"""Of coordinators that die: their workers, on other machines perhaps, do not notice at once."""

_SURE: Final = (Joined,)
"""Never lost: a process is there or it is not."""

MakeHost = Callable[
    [WorkerId, SimulatedProcess, SimulatedPeers, Callable[[FromWorker | Report], None]], WorkerHost
]


class _Member:
    def __init__(
        self,
        worker: WorkerId,
        process: SimulatedProcess,
        peers: SimulatedPeers,
        send: Callable[[_Member, Message], None],
        make_host: MakeHost,
    ) -> None:
        self.worker = worker
        self.process = process
        self.peers = peers
        self.joined: Joined | None = None
        self.asked: Deploy | Release | None = None
        """What of the two it was sent last, and has not done as far as is known."""
        self.host = make_host(worker, process, peers, lambda message: send(self, message))


class SimulatedPool:
    """See ``processor.runtime.worker_pool.WorkerPool``."""

    def __init__(
        self,
        coordinator: SimulatedProcess,
        injection: Injection,
        *,
        workers: int,
        heartbeat_ms: int,
        peers: Callable[[SimulatedProcess], SimulatedPeers],
        make_host: MakeHost,
        ended: Callable[[SimulatedProcess], None],
    ) -> None:
        """``ended`` hears of each process that has ended by itself."""
        self._coordinator = coordinator
        self._world = coordinator.world
        self._injection = injection
        self._chance = self._world.chance(f"workers of {coordinator.name}")
        self._workers = tuple(WorkerId(number) for number in range(workers))
        self._heartbeat_ms = heartbeat_ms
        self._peers = peers
        self._make_host = make_host
        self._ended = ended
        self._members: dict[WorkerId, _Member] = {}
        self._events: deque[tuple[_Member, Message | Gone]] = deque()
        self._started = 0
        self._wake: Callable[[], None] = lambda: None
        self._parked: Task | None = None
        coordinator.when_over(self._orphan)

    @property
    def processes(self) -> list[SimulatedProcess]:
        """Those that live."""
        return [member.process for member in self._members.values() if member.process.alive]

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        return self._workers

    def joined(self) -> Mapping[WorkerId, Joined]:
        return {
            worker: member.joined
            for worker, member in sorted(self._members.items())
            if member.joined is not None
        }

    def start_missing(self) -> None:
        self._coordinator.check()
        for worker in self._workers:
            if worker not in self._members:
                self._members[worker] = self._start(worker)

    def take(self) -> tuple[WorkerId, WorkerEvent] | None:
        self._coordinator.check()
        while self._events:
            member, event = self._events.popleft()
            if self._members.get(member.worker) is not member:
                continue
            if isinstance(event, Joined):
                member.joined = event
            elif isinstance(event, Deployed | Released):
                member.asked = None
            elif isinstance(event, Gone):
                self._meet("gone", member.asked)
                del self._members[member.worker]
            return member.worker, event  # type: ignore[return-value]
        return None

    def wait(self, timeout_ms: int) -> None:
        if self._events:
            return
        self._parked = self._world.running
        try:
            self._world.park(timeout_ms * US_PER_MS)
        finally:
            self._parked = None

    def wakes(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def send(self, worker: WorkerId, message: Order | ToWorker) -> None:
        self._coordinator.check()
        member = self._members.get(worker)
        if member is None or not member.process.alive:
            return
        if isinstance(message, Deploy | Release):
            member.asked = message
        content = encode_message(message)

        def arrive() -> None:
            if not member.process.alive:
                return
            if isinstance(message, TellStack):
                self._heard(member, Stack(text="simulated"))
            else:
                member.host.received(decode_message(content))

        self._carry(self._coordinator.name, message, arrive)

    def kill(self, worker: WorkerId) -> None:
        self._coordinator.check()
        member = self._members.get(worker)
        if member is not None:
            self._meet("ended by its coordinator", member.asked)
            member.process.kill()

    def close(self) -> None:
        """End all processes: they are told, and go."""
        members, self._members = self._members, {}
        for member in members.values():
            self._world.later(self._chance.randint(1, QUICK_US_MAX), member.host.end)

    # --- inside

    def _start(self, worker: WorkerId) -> _Member:
        self._started += 1
        process = SimulatedProcess(self._world, f"{self._coordinator.name}/worker{worker}.{self._started}")
        member = _Member(worker, process, self._peers(process), self._said, self._make_host)
        joined = Joined(
            worker=worker,
            process=self._started,
            session=str(self._started),
            address=member.peers.address,
            fingerprint="",
        )

        def main() -> int:
            self._world.wait_us(self._chance.randint(1, START_MS_MAX) * US_PER_MS)
            process.spawn("heartbeat", lambda: self._beat(member))
            member.host.run(joined)
            return 0

        process.when_over(lambda: self._heard(member, Gone(why=f"{process.name} has ended")))
        process.start(main, self._ended)
        return member

    def _beat(self, member: _Member) -> None:
        while True:
            self._world.wait_us(self._heartbeat_ms * US_PER_MS)
            self._said(member, member.host.heartbeat())

    def _said(self, member: _Member, message: Message) -> None:
        member.process.check()
        said = decode_message(encode_message(message))
        self._carry(member.process.name, message, lambda: self._heard(member, said))

    def _heard(self, member: _Member, event: Message | Gone) -> None:
        if not self._coordinator.alive:
            return
        self._events.append((member, event))
        if self._parked is not None:
            self._world.unpark(self._parked)
        self._wake()

    def _meet(self, what: str, asked: Deploy | Release | None) -> None:
        when = {Deploy: "while deploying", Release: "while releasing"}.get(type(asked), "in between")
        self._injection.met[f"a worker is {what} {when}"] += 1

    def _carry(self, who: str, message: Message, arrive: Callable[[], None]) -> None:
        """Anything may be late, doubled or lost but what says that a process is there."""
        faults, draw, what = self._injection.faults, self._injection.draw, type(message).__name__
        sure = isinstance(message, _SURE)
        if not sure and draw("message lost", faults.message_lost, who, f"{what} is lost"):
            self._injection.met[f"{what} lost"] += 1
            return
        copies = 1
        if not sure and draw("message doubled", faults.message_doubled, who, f"{what} comes twice"):
            copies = 2
        for _ in range(copies):
            delay_us = self._chance.randint(0, QUICK_US_MAX)
            if draw("message late", faults.message_late, who, f"{what} is late"):
                delay_us = self._chance.randint(1, LATE_MS_MAX) * US_PER_MS
            self._world.later(delay_us, arrive)

    def _orphan(self) -> None:
        for member in self._members.values():
            if not member.process.alive:
                continue
            if self._chance.random() >= ORPHANS:
                member.process.kill()
                continue
            self._injection.met["a worker outlives its coordinator"] += 1
            # The end of its stream is noticed late, and until then it goes on: a zombie.
            self._world.later(self._chance.randint(1, ORPHANED_MS_MAX) * US_PER_MS, member.host.end)
