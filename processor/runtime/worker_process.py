"""The main of a worker process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from processor.channels.addresses import UnixAddress
from processor.channels.credentials import PeerConnection
from processor.channels.socket_peers import SocketPeers
from processor.channels.sockets import SocketConnection
from processor.fault_points import FaultHook, no_faults
from processor.ids import WorkerId
from processor.plan.chaining import plan as lay_out
from processor.plan.graph import JobGraph
from processor.protocol.worker_messages import Joined, Stack, TellStack
from processor.runtime.attempt_part import WorkerParts
from processor.runtime.control_link import ControlLink
from processor.runtime.fingerprint import fingerprint
from processor.runtime.interpreter import tuned
from processor.runtime.message_codec import Message
from processor.runtime.signals import SIGNALS
from processor.runtime.stores import make_backend, open_store
from processor.runtime.system import SystemChance, SystemClock, long_lived_objects
from processor.runtime.threads import ThreadedExecutor
from processor.runtime.worker_host import WorkerHost
from processor.settings.model import Settings
from processor.telemetry.log import Log
from processor.telemetry.metrics import Metrics

LEAVE_S_MAX: Final = 60.0
"""For closing an attempt whose coordinator is gone. What hangs longer, in a call of the job's own code perhaps, would
keep this process from every later attempt."""

EXIT_HANGS: Final = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJob:
    """What a worker process runs."""

    graph: JobGraph
    settings: Settings
    log: Log
    faults: FaultHook = no_faults
    leave_s_max: float = LEAVE_S_MAX

    @property
    def fingerprint(self) -> str:
        settings = self.settings
        return fingerprint(lay_out(self.graph, settings.runtime.default_parallelism), settings)


def run_worker(job: WorkerJob, worker: WorkerId, control_fd: int, sockets: Path) -> None:
    """Run until the coordinator, which has started this process, is gone. ``control_fd``: our end of the stream to
    it. ``sockets``: a folder that only this user may enter, where the workers of the job meet."""
    _leave_signals_to_the_coordinator()
    peers = SocketPeers(
        worker,
        job.graph.name,
        _meeting_address(sockets, worker),
        clock=SystemClock(),
        chance=SystemChance(),
    )
    connection = SocketConnection(socket.socket(fileno=control_fd), "coordinator")
    serve(job, worker, connection, peers, lambda host: None)


def serve(
    job: WorkerJob,
    worker: WorkerId,
    connection: PeerConnection,
    peers: SocketPeers,
    hosted: Callable[[WorkerHost], None],
) -> str:
    """Be this worker until the stream to the coordinator ends; returns why it did. Nothing of an attempt is open
    afterwards. ``hosted`` is told who can be asked to ``end`` sooner."""
    tuned()
    main = threading.get_ident()
    ended, left = threading.Event(), threading.Event()
    reasons: list[str] = []

    def received(message: Message) -> None:
        if isinstance(message, TellStack):
            link.send(Stack(text=_stack(main)))
        else:
            host.received(message)

    def over(why: str) -> None:
        reasons.append(why)
        ended.set()
        host.end()
        if not left.wait(job.leave_s_max):
            job.log.error("ended this process: it did not leave an attempt whose coordinator is gone")
            os._exit(EXIT_HANGS)

    def beat() -> None:
        while not ended.wait(job.settings.runtime.heartbeat_interval / 1_000):
            link.send(host.heartbeat())

    link = ControlLink(connection, received, over)
    host = WorkerHost(_parts(job, worker, peers, link))
    hosted(host)
    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    link.start()
    try:
        host.run(
            Joined(
                worker=worker,
                process=os.getpid(),
                session=SystemChance().token(),
                address=peers.address,
                fingerprint=job.fingerprint,
            )
        )
    finally:
        ended.set()
        left.set()
        peers.close()
        link.close()
    return reasons[0] if reasons else "it was asked to end"


def _parts(job: WorkerJob, worker: WorkerId, peers: SocketPeers, link: ControlLink) -> WorkerParts:
    chance = SystemChance()
    return WorkerParts(
        worker=worker,
        graph=job.graph,
        settings=job.settings,
        store=open_store(job.graph.name, job.settings, chance.token, job.faults),
        backend=make_backend(job.settings),
        clock=SystemClock(),
        chance=chance,
        metrics=Metrics(),
        peers=peers,
        executor=lambda: ThreadedExecutor(peers),
        send=link.send,
        faults=job.faults,
        settled=long_lived_objects,
        say=job.log,
    )


def _leave_signals_to_the_coordinator() -> None:
    """A terminal sends them to all processes of a job."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _meeting_address(sockets: Path, worker: WorkerId) -> UnixAddress:
    """A name of its own for each process: the one before may have been killed, and its socket is still there."""
    return UnixAddress(sockets / f"{worker}-{os.getpid()}")


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "" if frame is None else "".join(traceback.format_stack(frame))
