"""A connection over a socket: everything comes, in order, until it breaks, and nothing blocks."""

from __future__ import annotations

import socket
from random import Random

import pytest

from processor.channels.sockets import PARTS_MAX, SocketConnection
from processor.errors import AttemptFailed


@pytest.fixture
def ends():
    one, other = socket.socketpair()
    here, there = SocketConnection(one, "worker 1"), SocketConnection(other, "worker 0")
    yield here, there
    here.close()
    there.close()


def test_nothing_blocks_and_everything_comes_in_order(ends):
    here, there = ends
    chance = Random(5)
    parts = [chance.randbytes(chance.choice((1, 10, 5_000, 300_000))) for _ in range(100)]
    parts += [bytes((n % 256,)) for n in range(3 * PARTS_MAX)]
    here.send(parts)
    assert here.writes
    received = bytearray()
    while here.flush() or len(received) < sum(map(len, parts)):
        received += there.receive()
    assert not here.writes
    assert received == b"".join(parts)
    assert there.receive() == b""


def test_what_is_given_back_is_received_again(ends):
    here, there = ends
    here.send([b"abc"])
    here.flush()
    assert bytes(there.receive()) == b"abc"
    there.unread(b"bc")
    assert there.receive() == b"bc"
    assert there.receive() == b""


def test_what_came_before_the_end_is_received_and_then_the_peer_is_named(ends):
    here, there = ends
    here.send([b"the last"])
    here.flush()
    here.close()
    assert bytes(there.receive()) == b"the last"
    for _ in range(2):
        with pytest.raises(AttemptFailed, match="worker 0 has ended its connection"):
            there.receive()


def test_a_broken_connection_takes_no_more_and_receiving_tells(ends):
    here, there = ends
    there.close()
    here.send([b"x"])
    assert here.flush() == 0
    here.send([b"y"])
    assert not here.writes
    with pytest.raises(AttemptFailed, match="worker 1"):
        here.receive()


def test_a_connection_that_was_closed_here_is_broken_too(ends):
    here, _ = ends
    here.send([b"x"])
    here.close()
    here.close()
    here.send([b"y"])
    assert here.flush() == 0
    with pytest.raises(AttemptFailed, match="the connection with worker 1 is broken"):
        here.receive()


def test_what_nobody_looks_at_is_told_once(ends):
    here, there = ends
    assert there.reads
    there.ready()
    assert not there.reads
    assert there.receive() == b""
    assert there.reads
    here.close()
    there.ready()
    with pytest.raises(AttemptFailed):
        there.receive()
