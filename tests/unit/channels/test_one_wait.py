"""A worker process waits for everything at once: background work, orders from other threads, sockets."""

from __future__ import annotations

import threading

import pytest

from processor.channels.addresses import parse_address
from processor.channels.exchange import Exchange
from processor.channels.socket_peers import SocketPeers
from processor.ids import Attempt, Incarnation, JobName
from processor.records.elements import Watermark
from processor.runtime.system import SystemChance, SystemClock
from processor.runtime.threads import ThreadedExecutor
from tests.unit.channels.kit import CODEC, EDGE, HERE, THERE, addresses_in

PATIENCE_MS = 60_000
"""A wait that lasts so long would be for ever: what ends it is what the test is about."""


@pytest.fixture
def both(place, credentials):
    """Worker 0, worker 1 and their exchanges."""
    made = [
        SocketPeers(
            worker,
            JobName("job"),
            parse_address(address),
            clock=SystemClock(),
            chance=SystemChance(),
            credentials=credentials,
        )
        for worker, address in zip((HERE, THERE), addresses_in(place), strict=True)
    ]
    addresses = {HERE: made[0].address, THERE: made[1].address}
    for peers in made:
        peers.connect(Incarnation("i"), Attempt(1), addresses)
    exchanges: dict[SocketPeers, Exchange] = {}
    while len(exchanges) < len(made):
        for peers in made:
            peers.wait(1)
            connections = peers.connected()
            if connections is not None:
                exchanges[peers] = Exchange(connections, window_bytes=2**20)
    yield made[0], [exchanges[peers] for peers in made]
    for peers in made:
        peers.close()


@pytest.fixture
def executor(both):
    made = ThreadedExecutor(both[0])
    yield made
    made.close()


def test_work_that_is_done_ends_the_wait(executor):
    done: list[str] = []
    executor.submit("lane", lambda: "done", done.append, done.append)
    while not executor.deliver():
        executor.wait(PATIENCE_MS)
    assert done == ["done"]


def test_another_thread_ends_the_wait(executor):
    thread = threading.Thread(target=executor.wake)
    thread.start()
    executor.wait(PATIENCE_MS)
    thread.join()


def test_what_another_worker_sends_ends_the_wait(executor, both):
    _, (here, there) = both
    sender, receiver = there.sender(HERE, EDGE, CODEC), here.receiver(THERE, EDGE, CODEC)
    sender.send(Watermark(1))
    there.turn()
    while not here.turn():
        executor.wait(PATIENCE_MS)
    assert receiver.take() == Watermark(1)
