"""The main of a worker process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path

from processor.channels.addresses import UnixAddress
from processor.channels.socket_peers import SocketPeers
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


def run_worker(
    graph: JobGraph,
    settings: Settings,
    worker: WorkerId,
    control_fd: int,
    sockets: Path,
    log: Log,
    faults: FaultHook = no_faults,
) -> None:
    """Run until the coordinator is gone. ``control_fd``: our end of the stream to it. ``sockets``: a folder that only
    this user may enter, where the workers of the job meet."""
    _leave_signals_to_the_coordinator()
    tuned()
    clock, chance = SystemClock(), SystemChance()
    plan = lay_out(graph, settings.runtime.default_parallelism)
    peers = SocketPeers(worker, plan.job, _meeting_address(sockets, worker), clock=clock, chance=chance)
    main = threading.get_ident()
    ended = threading.Event()

    def received(message: Message) -> None:
        if isinstance(message, TellStack):
            link.send(Stack(text=_stack(main)))
        else:
            host.received(message)

    def over(why: str) -> None:
        ended.set()
        host.end()

    def beat() -> None:
        while not ended.wait(settings.runtime.heartbeat_interval / 1_000):
            link.send(host.heartbeat())

    link = ControlLink(socket.socket(fileno=control_fd), "coordinator", received, over)
    parts = WorkerParts(
        worker=worker,
        graph=graph,
        settings=settings,
        store=open_store(plan.job, settings, chance.token, faults),
        backend=make_backend(settings),
        clock=clock,
        chance=chance,
        metrics=Metrics(),
        peers=peers,
        executor=lambda: ThreadedExecutor(peers),
        send=link.send,
        faults=faults,
        settled=long_lived_objects,
        say=log,
    )
    host = WorkerHost(parts)
    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    link.start()
    try:
        same = fingerprint(plan, settings)
        host.run(Joined(worker=worker, process=os.getpid(), address=peers.address, fingerprint=same))
    finally:
        ended.set()
        peers.close()
        link.close()


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
