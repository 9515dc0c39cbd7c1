"""The connections of one worker with the others, over sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from processor.channels.addresses import Address, TcpAddress, parse_address
from processor.channels.credentials import NO_CREDENTIALS, Credentials, PeerConnection
from processor.channels.greeting import Dial, Visit
from processor.channels.handshake import Dialled, Hello
from processor.channels.listening import Listener
from processor.channels.poller import Poller
from processor.channels.sockets import SocketConnection
from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.contracts.connection import Connection
from processor.errors import AttemptFailed, SettingsError
from processor.ids import Attempt, Incarnation, JobName, WorkerId

CONNECT_TIMEOUT_MS: Final = 60_000
"""Until all workers of an attempt are connected: they may still be closing the one before."""

PROOF_TIMEOUT_MS: Final = 10_000
"""Until somebody who has connected has proved who it is."""

VISITS_MAX: Final = 256
"""Who have connected, and have not proved themselves or are of an attempt that is still to come here."""


@dataclass(slots=True)
class _Now:
    """The attempt that is connected here, or on its way."""

    incarnation: Incarnation
    attempt: Attempt
    wanted: frozenset[WorkerId]
    until_ms: int
    dials: dict[WorkerId, Dial] = field(default_factory=dict)
    connections: dict[WorkerId, PeerConnection] = field(default_factory=dict)


class SocketPeers:
    """See ``processor.contracts.peers.Peers``. Of two workers the lower dials the higher."""

    def __init__(
        self,
        worker: WorkerId,
        job: JobName,
        address: Address,
        *,
        clock: Clock,
        chance: Chance,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        """Listens at once. Raises SettingsError, also for an address on a network without any credentials."""
        if isinstance(address, TcpAddress) and not credentials.any:
            raise SettingsError(
                f"workers would be reached at {address} by anybody.",
                remedy="Set runtime.cluster.secret_file, or certificate_file, key_file and ca_file.",
            )
        self._worker = worker
        self._job = job
        self._clock = clock
        self._chance = chance
        self._credentials = credentials
        self._listener = Listener(address)
        self._poller = Poller()
        self._poller.watch(self._listener)
        self._visits: list[Visit] = []
        self._now: _Now | None = None

    @property
    def address(self) -> str:
        return str(self._listener.address)

    def connect(self, incarnation: Incarnation, attempt: Attempt, addresses: Mapping[WorkerId, str]) -> None:
        self.disconnect()
        wanted = frozenset(addresses) - {self._worker}
        until_ms = self._clock.monotonic_ms() + CONNECT_TIMEOUT_MS
        self._now = now = _Now(incarnation, attempt, wanted, until_ms)
        for peer in sorted(wanted):
            if peer > self._worker:
                now.dials[peer] = self._dial(now, peer, addresses[peer])

    def connected(self) -> Mapping[WorkerId, Connection] | None:
        now = self._now
        if now is None:
            return None
        self._receive_visits()
        for peer, dial in list(now.dials.items()):
            connection = dial.step()
            if connection is not None:
                del now.dials[peer]
                now.connections[peer] = connection
        missing = sorted(now.wanted - now.connections.keys())
        if not missing:
            return {peer: now.connections[peer] for peer in sorted(now.wanted)}
        if self._clock.monotonic_ms() >= now.until_ms:
            raise AttemptFailed(
                f"no connection between worker {self._worker} and {_named(missing, now.dials)} within "
                f"{CONNECT_TIMEOUT_MS // 1_000} s.",
                remedy="Look whether they run, and at the network between the machines.",
            )
        return None

    def wait(self, timeout_ms: int) -> None:
        self._poller.wait(timeout_ms)
        # Else somebody who knocks would end every wait at once.
        self._receive_visits()

    def wake(self) -> None:
        self._poller.wake()

    def disconnect(self) -> None:
        now, self._now = self._now, None
        if now is None:
            return
        for dial in now.dials.values():
            dial.close()
        for connection in now.connections.values():
            self._end(connection)

    def close(self) -> None:
        self.disconnect()
        visits, self._visits = self._visits, []
        for visit in visits:
            self._end(visit.connection)
        self._listener.close()
        self._poller.close()

    # --- who dials us

    def _receive_visits(self) -> None:
        while (accepted := self._listener.accept()) is not None:
            if len(self._visits) >= VISITS_MAX:
                accepted.close()
                continue
            connection = self._credentials.dialled(SocketConnection(accepted, "whoever has connected"))
            dialled = Dialled(self._chance.token(), self._credentials.secret)
            self._visits.append(Visit(connection, dialled, self._clock.monotonic_ms() + PROOF_TIMEOUT_MS))
            self._poller.watch(connection)
        self._visits = [visit for visit in self._visits if self._stays(visit)]

    def _stays(self, visit: Visit) -> bool:
        """Whether a visit goes on waiting; else it was welcomed, or is over."""
        try:
            visit.step()
        except (
            ValueError,
            AttemptFailed,
        ):  # a stranger's business, or it has gone: it dials again if it wants
            self._end(visit.connection)
            return False
        hello = visit.hello
        if hello is None:
            if self._clock.monotonic_ms() < visit.until_ms:
                return True
            self._end(visit.connection)
            return False
        reason = self._reason_against(hello)
        if reason is not None:
            visit.refuse(reason)
            self._end(visit.connection)
            return False
        now = self._now
        if now is None or hello.attempt > now.attempt:
            return True
        now.connections[hello.worker] = visit.welcome()
        return False

    def _reason_against(self, hello: Hello) -> str | None:
        """Why somebody is turned away; None: it is welcome, now or later."""
        now = self._now
        if hello.job != self._job or hello.peer != self._worker:
            return f"this is worker {self._worker} of job '{self._job}'"
        if now is None or hello.attempt > now.attempt:
            return None
        if hello.attempt < now.attempt:
            return f"worker {self._worker} is in attempt {now.attempt} already"
        if hello.incarnation != now.incarnation:
            return f"worker {self._worker} runs incarnation {now.incarnation}"
        if hello.worker not in now.wanted or hello.worker > self._worker:
            return f"worker {self._worker} expects no worker {hello.worker} in attempt {now.attempt}"
        if hello.worker in now.connections:
            return f"worker {self._worker} is connected with worker {hello.worker} already"
        return None

    def _dial(self, now: _Now, peer: WorkerId, address: str) -> Dial:
        def hello() -> Hello:
            return Hello(
                job=self._job,
                incarnation=now.incarnation,
                attempt=now.attempt,
                worker=self._worker,
                peer=peer,
                nonce=self._chance.token(),
            )

        try:
            place = parse_address(address)
        except ValueError as error:
            raise AttemptFailed(f"worker {peer} cannot be reached: {error}.") from error
        return Dial(peer, place, hello, credentials=self._credentials, poller=self._poller, clock=self._clock)

    def _end(self, connection: PeerConnection) -> None:
        self._poller.forget(connection)
        connection.close()


def _named(missing: list[WorkerId], dials: Mapping[WorkerId, Dial]) -> str:
    return ", ".join(
        f"worker {peer} ({dials[peer].trouble})" if peer in dials else f"worker {peer} (it has not dialled)"
        for peer in missing
    )
