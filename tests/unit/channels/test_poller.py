"""One wait for sockets and for other threads."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

import pytest

from processor.channels.poller import Poller

PATIENCE_MS = 60_000
"""A wait that lasts so long ends by pytest's time-out: what ends it is what the test is about."""


class End:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.reads = True
        self.writes = False
        self.told = 0

    def fileno(self) -> int:
        return self.socket.fileno()

    def ready(self) -> None:
        self.told += 1


def goes_on_until_it_would_block(act: Callable[[], object]) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            act()


@pytest.fixture
def poller():
    made = Poller()
    yield made
    made.close()


@pytest.fixture
def ends():
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        other.setblocking(False)
        yield End(one), End(other)


def test_something_to_read_ends_a_wait(poller, ends):
    here, there = ends
    poller.watch(here)
    there.socket.send(b"x")
    poller.wait(PATIENCE_MS)
    assert here.socket.recv(1) == b"x"


def test_room_ends_a_wait_only_for_what_waits_to_be_written(poller, ends):
    here, there = ends
    poller.watch(here)
    poller.wait(0)
    here.writes = True
    poller.wait(PATIENCE_MS)
    goes_on_until_it_would_block(lambda: here.socket.send(bytes(2**16)))
    poller.wait(0)
    thread = threading.Thread(target=goes_on_until_it_would_block, args=(lambda: there.socket.recv(2**16),))
    thread.start()
    poller.wait(PATIENCE_MS)
    thread.join()
    assert here.socket.send(b"x") == 1


def test_another_thread_ends_a_wait(poller):
    thread = threading.Thread(target=poller.wake)
    thread.start()
    poller.wait(PATIENCE_MS)
    thread.join()


def test_waking_somebody_who_does_not_wait_ends_the_next_wait(poller):
    for _ in range(3):
        for _ in range(100_000):  # more than fits into a pipe: waking never waits itself
            poller.wake()
        poller.wait(PATIENCE_MS)


def test_what_nobody_wants_to_read_ends_no_wait(poller, ends):
    here, there = ends
    poller.watch(here)
    there.socket.send(b"x")
    poller.wait(PATIENCE_MS)
    assert here.told == 1
    here.reads = False
    poller.wait(0)
    assert here.told == 1
    here.writes = True
    poller.wait(PATIENCE_MS)
    assert here.told == 1
    here.reads, here.writes = True, False
    poller.wait(PATIENCE_MS)
    assert here.told == 2
    here.reads = False
    poller.wait(0)
    poller.forget(here)


def test_what_is_forgotten_ends_no_wait(poller, ends):
    here, there = ends
    poller.watch(here)
    poller.watch(here)
    poller.forget(here)
    poller.forget(here)
    there.socket.send(b"x")
    poller.wait(0)
    poller.watch(here)
    poller.wait(PATIENCE_MS)


def test_waking_after_the_end_has_no_effect():
    poller = Poller()
    poller.close()
    poller.close()
    with socket.socket() as takes_the_number:
        poller.wake()
        assert takes_the_number.fileno() >= 0
