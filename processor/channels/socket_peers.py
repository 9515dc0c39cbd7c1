"""The connections of one worker with the others, over sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from processor.channels.addresses import Address, parse_address
from processor.channels.credentials import NO_CREDENTIALS, Credentials, PeerConnection
from processor.channels.doorway import Doorway, Later, Refuse, Verdict, Welcome
from processor.channels.greeting import Dial
from processor.channels.handshake import Hello, Opening
from processor.channels.poller import Poller
from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.contracts.connection import Connection
from processor.errors import AttemptFailed
from processor.ids import Attempt, Incarnation, JobName, WorkerId

CONNECT_TIMEOUT_MS: Final = 60_000
"""Until all workers of an attempt are connected: they may still be closing the one before."""


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
        self._worker = worker
        self._job = job
        self._clock = clock
        self._chance = chance
        self._credentials = credentials
        self._poller = Poller()
        self._doorway = Doorway(
            address, poller=self._poller, clock=clock, chance=chance, credentials=credentials
        )
        self._now: _Now | None = None

    @property
    def address(self) -> str:
        return str(self._doorway.address)

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
        self._doorway.close()
        self._poller.close()

    # --- who dials us

    def _receive_visits(self) -> None:
        for worker, connection in self._doorway.receive(self._verdict):
            assert self._now is not None  # without an attempt nobody is welcome
            self._now.connections[worker] = connection

    def _verdict(self, opening: Opening) -> Verdict:
        if not isinstance(opening, Hello):
            return Refuse(f"this is worker {self._worker} of job '{self._job}', not its coordinator")
        reason = self._reason_against(opening)
        if reason is not None:
            return Refuse(reason)
        now = self._now
        return Later() if now is None or opening.attempt > now.attempt else Welcome(opening.worker)

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
        return Dial(
            f"worker {peer}",
            place,
            hello,
            credentials=self._credentials,
            poller=self._poller,
            clock=self._clock,
        )

    def _end(self, connection: PeerConnection) -> None:
        self._poller.forget(connection)
        connection.close()


def _named(missing: list[WorkerId], dials: Mapping[WorkerId, Dial]) -> str:
    return ", ".join(
        f"worker {peer} ({dials[peer].trouble})" if peer in dials else f"worker {peer} (it has not dialled)"
        for peer in missing
    )
