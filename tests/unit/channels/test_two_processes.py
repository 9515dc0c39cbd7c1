"""Two workers in processes of their own, over real sockets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from processor.channels.addresses import parse_address
from processor.channels.exchange import Exchange
from processor.channels.socket_peers import SocketPeers
from processor.errors import AttemptFailed
from processor.ids import Attempt, CheckpointId
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import Barrier, Element, EndOfInput, Watermark
from processor.runtime.system import SystemChance, SystemClock
from tests.unit.channels.certificates import Authority
from tests.unit.channels.echo_worker import (
    ATTEMPT,
    BACK,
    INCARNATION,
    JOB,
    WAIT_MS,
    WINDOW_BYTES,
    credentials,
)
from tests.unit.channels.kit import CODEC, EDGE, HERE, THERE, addresses_in

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def echo(place: str, files: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], SocketPeers, Exchange]]:
    """The other process, and this worker's connections with it."""
    here, there = addresses_in(place)
    command = [sys.executable, "-m", "tests.unit.channels.echo_worker", there, *files]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        peers = SocketPeers(
            HERE,
            JOB,
            parse_address(here),
            clock=SystemClock(),
            chance=SystemChance(),
            credentials=credentials(*files),
        )
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            peers.connect(INCARNATION, ATTEMPT, {HERE: peers.address, THERE: address})
            while (connections := peers.connected()) is None:
                peers.wait(WAIT_MS)
            yield process, peers, Exchange(connections, window_bytes=WINDOW_BYTES)
        finally:
            peers.close()
            process.kill()


@pytest.fixture
def files(kind, tmp_path):
    """Of certificate, key and authority, for TLS."""
    if kind != "tls":
        return ()
    authority = Authority(tmp_path)
    return (*map(str, authority.sign("worker")), str(authority.file))


def some_elements() -> Sequence[Element]:
    elements: list[Element] = []
    for number in range(300):
        records = 1 + number * 7 % 500
        elements.append(
            Batch(
                values=[f"value {n}" for n in range(records)],
                timestamps=list(range(records)),
                keys=[f"key {n % 10}" for n in range(records)],
            )
        )
        elements.append(Watermark(number))
        if number % 50 == 0:
            checkpoint = CheckpointId(number + 1)
            elements.append(Barrier(attempt=Attempt(1), checkpoint=checkpoint, kind=CheckpointKind.PERIODIC))
    return [*elements, EndOfInput()]


def test_everything_comes_back_in_order_under_back_pressure(place, files):
    with echo(place, files) as (process, peers, exchange):
        sender, receiver = exchange.sender(THERE, EDGE, CODEC), exchange.receiver(THERE, BACK, CODEC)
        elements = some_elements()
        sent, held = 0, 0
        found: list[Element] = []
        while len(found) < len(elements):
            worked = exchange.turn()
            while sent < len(elements) and sender.ready():
                sender.send(elements[sent])
                sent += 1
                worked = True
            held += sent < len(elements)
            while receiver.peek() is not None:
                found.append(receiver.take())
                worked = True
            if not worked:
                peers.wait(WAIT_MS)
        assert found == elements
        assert held > 0, "the window was never full"
        peers.close()
        assert process.wait(60) == 0


def test_a_worker_that_is_killed_fails_the_attempt_by_name(place, files):
    with echo(place, files) as (process, peers, exchange):
        sender = exchange.sender(THERE, EDGE, CODEC)
        exchange.receiver(THERE, BACK, CODEC)
        element = some_elements()[0]
        while sender.ready():
            sender.send(element)
        exchange.turn()
        process.kill()

        def goes_on() -> None:
            while True:
                if not exchange.turn():
                    peers.wait(WAIT_MS)

        with pytest.raises(AttemptFailed, match="worker 1"):
            goes_on()
