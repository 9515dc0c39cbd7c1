"""A worker process that comes by itself: it looks for the coordinator, and for the next one when that is gone."""

from __future__ import annotations

import threading
from typing import Final

from processor.channels.addresses import Address, TcpAddress
from processor.channels.credentials import Credentials, PeerConnection
from processor.channels.greeting import Dial
from processor.channels.handshake import Join
from processor.channels.poller import Poller
from processor.channels.socket_peers import SocketPeers
from processor.ids import WorkerId
from processor.runtime.signals import StopSignals
from processor.runtime.system import SystemChance, SystemClock
from processor.runtime.worker_host import WorkerHost
from processor.runtime.worker_process import WorkerJob, serve

PAUSE_MS: Final = 1_000
"""Between two tries to reach the coordinator, and before the first one after it is gone."""


class JoiningWorker:
    """``run`` is the process's main thread."""

    def __init__(
        self, job: WorkerJob, coordinator: TcpAddress, listen: TcpAddress | None, credentials: Credentials
    ) -> None:
        """``listen``: where other workers reach this one; None: any free port at the address by which the coordinator
        is reached. ``credentials``: of the job."""
        self._job = job
        self._coordinator = coordinator
        self._listen = listen
        self._credentials = credentials
        self._clock, self._chance = SystemClock(), SystemChance()
        self._fingerprint = job.fingerprint
        self._poller = Poller()
        self._host: WorkerHost | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Until ``end``. Raises AttemptFailed when the coordinator will not have this worker: it is of another job or
        version, or has another secret."""
        log = self._job.log
        while (found := self._connected()) is not None:
            worker, connection = found
            log.info("joined the coordinator", coordinator=str(self._coordinator), worker=worker)
            listen: Address = self._listen or TcpAddress(connection.own_host, 0)
            peers = SocketPeers(
                worker,
                self._job.graph.name,
                listen,
                clock=self._clock,
                chance=self._chance,
                credentials=self._credentials,
            )
            why = serve(self._job, worker, connection, peers, self._hosted)
            self._host = None
            log.info("left the coordinator", worker=worker, why=why)
            if not self._ended.is_set():
                self._poller.wait(PAUSE_MS)

    def end(self) -> None:
        """Close what is open, and end; from any thread."""
        self._ended.set()
        host = self._host
        if host is not None:
            host.end()
        self._poller.wake()

    def run_until_signalled(self) -> None:
        """``run``, and ``end`` at the first of the signals: the coordinator has not started this process, and does
        not hear them."""
        with StopSignals(self.end):
            self.run()

    def _hosted(self, host: WorkerHost) -> None:
        self._host = host
        if self._ended.is_set():
            host.end()

    def _connected(self) -> tuple[WorkerId, PeerConnection] | None:
        """None when this worker is to end."""
        dial = Dial(
            "the coordinator",
            self._coordinator,
            self._join,
            credentials=self._credentials,
            poller=self._poller,
            clock=self._clock,
            pause_ms=PAUSE_MS,
        )
        told = dial.trouble
        try:
            while not self._ended.is_set():
                connection = dial.step()
                if connection is not None and dial.worker is not None:
                    self._poller.forget(connection)
                    return dial.worker, connection
                if dial.trouble != told:
                    told = dial.trouble
                    self._job.log.info("the coordinator is not there yet", why=told)
                self._poller.wait(PAUSE_MS)
        finally:
            dial.close()
        return None

    def _join(self) -> Join:
        return Join(job=self._job.graph.name, fingerprint=self._fingerprint, nonce=self._chance.token())
