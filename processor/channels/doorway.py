"""The place where others of a job connect with this process: nobody comes in who has not proved that it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from processor.channels.addresses import Address, TcpAddress
from processor.channels.credentials import Credentials, PeerConnection
from processor.channels.greeting import Visit
from processor.channels.handshake import Dialled, Opening
from processor.channels.listening import Listener
from processor.channels.poller import Poller
from processor.channels.sockets import SocketConnection
from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.errors import AttemptFailed, SettingsError
from processor.ids import WorkerId

PROOF_TIMEOUT_MS: Final = 10_000
"""Until somebody who has connected has proved who it is."""

VISITS_MAX: Final = 256
"""Who have connected, and have not proved themselves or wait until they are welcome."""


@dataclass(frozen=True, slots=True)
class Refuse:
    reason: str


@dataclass(frozen=True, slots=True)
class Welcome:
    worker: WorkerId
    """As whom."""


@dataclass(frozen=True, slots=True)
class Later:
    """It waits, and is judged again."""


Verdict = Refuse | Welcome | Later


class Doorway:
    """All calls come from the thread that waits with ``poller``, and none blocks."""

    def __init__(
        self, address: Address, *, poller: Poller, clock: Clock, chance: Chance, credentials: Credentials
    ) -> None:
        """Listens at once. Raises SettingsError, also for an address on a network without any credentials."""
        if isinstance(address, TcpAddress) and not credentials.any:
            raise SettingsError(
                f"workers would be reached at {address} by anybody.",
                remedy="Set runtime.cluster.secret_file, or certificate_file, key_file and ca_file.",
            )
        self._clock = clock
        self._chance = chance
        self._credentials = credentials
        self._listener = Listener(address)
        self._poller = poller
        self._poller.watch(self._listener)
        self._visits: list[Visit] = []

    @property
    def address(self) -> Address:
        return self._listener.address

    def receive(self, judge: Callable[[Opening], Verdict]) -> Iterator[tuple[WorkerId, PeerConnection]]:
        """Everybody who comes in now; its connection is watched by the poller. ``judge`` is asked about each who has
        proved itself, after whoever was welcome before it has been taken from the iterator."""
        while (accepted := self._listener.accept()) is not None:
            if len(self._visits) >= VISITS_MAX:
                accepted.close()
                continue
            connection = self._credentials.dialled(SocketConnection(accepted, "whoever has connected"))
            dialled = Dialled(self._chance.token(), self._credentials.secret)
            self._visits.append(Visit(connection, dialled, self._clock.monotonic_ms() + PROOF_TIMEOUT_MS))
            self._poller.watch(connection)
        for visit in tuple(self._visits):
            verdict = self._verdict(visit, judge)
            if isinstance(verdict, Later):
                continue
            self._visits.remove(visit)
            if isinstance(verdict, Welcome):
                yield verdict.worker, visit.welcome(verdict.worker)
                continue
            if verdict.reason:
                visit.refuse(verdict.reason)
            self._end(visit)

    def close(self) -> None:
        """Nobody comes in any more."""
        visits, self._visits = self._visits, []
        for visit in visits:
            self._end(visit)
        self._poller.forget(self._listener)
        self._listener.close()

    def _verdict(self, visit: Visit, judge: Callable[[Opening], Verdict]) -> Verdict:
        """A refusal without a reason is not told: of a stranger, or of somebody who has gone."""
        try:
            visit.step()
        except (ValueError, AttemptFailed):  # it dials again if it wants
            return Refuse("")
        if visit.hello is not None:
            return judge(visit.hello)
        return Later() if self._clock.monotonic_ms() < visit.until_ms else Refuse("")

    def _end(self, visit: Visit) -> None:
        self._poller.forget(visit.connection)
        visit.connection.close()
