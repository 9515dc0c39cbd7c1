"""The stream between coordinator and worker: what is said arrives in order, and its end is told once."""

from __future__ import annotations

import socket
import threading
from queue import Queue
from struct import Struct
from typing import Any

import pytest

from processor.channels.sockets import SocketConnection
from processor.ids import Attempt
from processor.protocol.worker_messages import Deployed, Release, Released, Stack
from processor.runtime.control_link import ControlLink
from processor.runtime.message_codec import MESSAGE_BYTES_MAX, encode_message

WAIT_S = 60


class End:
    """One side, with what it has heard."""

    def __init__(self, stream: socket.socket) -> None:
        self.heard: Queue[Any] = Queue()
        self.ends: Queue[str] = Queue()
        self.link = ControlLink(SocketConnection(stream, "the other"), self.heard.put, self.ends.put)
        self.link.start()


@pytest.fixture
def streams():
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_messages_arrive_in_order_both_ways(streams):
    one, other = map(End, streams)
    for number in range(1, 200):
        one.link.send(Release(attempt=Attempt(number)))
        other.link.send(Released(attempt=Attempt(number)))
    assert [other.heard.get(timeout=WAIT_S).attempt for _ in range(1, 200)] == list(range(1, 200))
    assert [one.heard.get(timeout=WAIT_S).attempt for _ in range(1, 200)] == list(range(1, 200))
    one.link.close()
    other.ends.get(timeout=WAIT_S)
    one.ends.get(timeout=WAIT_S)


def test_what_was_said_before_closing_arrives(streams):
    one, other = map(End, streams)
    large = Stack(text="x" * 5_000_000)
    one.link.send(large)
    one.link.close()
    assert other.heard.get(timeout=WAIT_S) == large
    assert other.ends.get(timeout=WAIT_S) == "the other has ended its connection"


def test_a_side_that_does_not_read_keeps_nobody_waiting(streams):
    ours, theirs = streams
    one = End(ours)
    for _ in range(50):
        one.link.send(Stack(text="x" * 1_000_000))  # more than any buffer of a socket
    theirs.close()
    one.ends.get(timeout=WAIT_S)
    one.link.send(Deployed(attempt=Attempt(1)))
    one.link.close()


def test_a_message_cut_by_the_end_is_none(streams):
    ours, theirs = streams
    one = End(ours)
    content = encode_message(Release(attempt=Attempt(1)))
    theirs.sendall(Struct(">I").pack(len(content)) + content[:-1])
    theirs.close()
    one.ends.get(timeout=WAIT_S)
    assert one.heard.empty()


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (Struct(">I").pack(MESSAGE_BYTES_MAX + 1), "are the most"),
        (Struct(">I").pack(3) + b"abc", "cannot be read"),
    ],
)
def test_r21_what_is_no_message_ends_the_stream_and_says_why(streams, sent, why):
    ours, theirs = streams
    one = End(ours)
    theirs.sendall(sent)
    assert why in one.ends.get(timeout=WAIT_S)
    assert theirs.recv(1) == b"", "our end is closed too"
    assert one.heard.empty()


def test_its_threads_end_with_it(streams):
    before = threading.active_count()
    one, other = map(End, streams)
    one.link.close()
    one.ends.get(timeout=WAIT_S)
    other.ends.get(timeout=WAIT_S)
    for end in (one, other):
        end.link._thread.join(WAIT_S)
    assert threading.active_count() == before
