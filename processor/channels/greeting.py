"""Two processes on their way to a connection: the one who dials, and the one who is dialled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from processor.channels.addresses import Address
from processor.channels.credentials import Credentials, PeerConnection
from processor.channels.handshake import Dialled, Dialler, Opening, refused, welcome
from processor.channels.listening import Connecting
from processor.channels.poller import Poller
from processor.channels.sockets import SocketConnection
from processor.contracts.clock import Clock
from processor.errors import AttemptFailed
from processor.ids import WorkerId

AGAIN_MS: Final = 100
"""Between two tries to reach somebody who is expected to be there."""


class Dial:
    """Tries to reach somebody until it is there. Watched by the poller meanwhile, and so is what it returns."""

    def __init__(
        self,
        peer: str,
        address: Address,
        hello: Callable[[], Opening],
        *,
        credentials: Credentials,
        poller: Poller,
        clock: Clock,
        pause_ms: int = AGAIN_MS,
    ) -> None:
        """``peer`` names the other side in errors; ``hello`` makes a new one for each try; ``pause_ms``: between two
        of them."""
        self._peer = peer
        self._address = address
        self._hello = hello
        self._credentials = credentials
        self._poller = poller
        self._clock = clock
        self._pause_ms = pause_ms
        self._again_ms: int | None = None
        self._try: _Try | None = None
        self.worker: WorkerId | None = None
        """As whom the other side has said welcome."""
        self.trouble = "it has not answered"
        """Why the newest try came to nothing, or what it waits for."""

    def step(self) -> PeerConnection | None:
        """The connection, once there is one. Raises AttemptFailed when the other side will not have it."""
        if self._again_ms is not None and self._clock.monotonic_ms() < self._again_ms:
            return None
        try:
            if self._try is None:
                self._try = self._begin()
            if not self._try.step():
                return None
        except ValueError as error:
            raise AttemptFailed(
                f"{self._peer} at {self._address} cannot be connected with: {error}.",
                remedy="Look whether all workers are of one job, of one release, and have one secret.",
            ) from error
        except (OSError, AttemptFailed) as error:
            self.trouble = str(error)
            self.close()
            self._again_ms = self._clock.monotonic_ms() + self._pause_ms
            return None
        done, self._try = self._try, None
        self.worker = done.worker
        return done.connection

    def _begin(self) -> _Try:
        begun = _Try(
            self._peer,
            self._address,
            Dialler(self._hello(), self._credentials.secret),
            self._credentials,
        )
        self._poller.watch(begun.connection)
        return begun

    def close(self) -> None:
        """Give the try up that is under way; idempotent."""
        given_up, self._try = self._try, None
        if given_up is not None:
            self._poller.forget(given_up.connection)
            given_up.connection.close()


class _Try:
    def __init__(self, peer: str, address: Address, dialler: Dialler, credentials: Credentials) -> None:
        self._connecting: Connecting | None = Connecting(address)
        self._dialler = dialler
        self.connection = credentials.dialling(SocketConnection(self._connecting.socket, peer))
        self.connection.send([dialler.opening])

    @property
    def worker(self) -> WorkerId | None:
        return self._dialler.worker

    def step(self) -> bool:
        """Whether the other side has said welcome."""
        if self._connecting is not None:
            if not self._connecting.arrived():
                return False
            self._connecting = None
        connection, dialler = self.connection, self._dialler
        connection.flush()
        while not dialler.welcome and (heard := connection.receive()):
            answer = dialler.receive(bytes(heard))
            connection.send([answer])
            connection.flush()
        if dialler.welcome:
            connection.unread(dialler.rest)
        return dialler.welcome


class Visit:
    """Somebody who has connected here, and has to say who it is."""

    def __init__(self, connection: PeerConnection, dialled: Dialled, until_ms: int) -> None:
        """``until_ms``: when it must have proved itself."""
        self.connection = connection
        self._dialled = dialled
        self.until_ms = until_ms
        connection.send([dialled.opening])

    @property
    def hello(self) -> Opening | None:
        """Who it is, once that is proved."""
        return self._dialled.hello

    def step(self) -> None:
        """Raises ValueError for a stranger, AttemptFailed when it has gone."""
        connection = self.connection
        connection.flush()
        while heard := connection.receive():
            connection.send([self._dialled.receive(bytes(heard))])
            connection.flush()

    def welcome(self, worker: WorkerId) -> PeerConnection:
        """``worker``: as whom."""
        self.connection.peer = f"worker {worker}"
        self.connection.send([welcome(worker)])
        self.connection.flush()
        return self.connection

    def refuse(self, reason: str) -> None:
        """Tell it why, as far as it still listens."""
        self.connection.send([refused(reason)])
        self.connection.flush()
