"""Windows of bytes: the sender never waits for a grant that is not due, and grants are few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.channels.credits import ReceiveWindow, SendWindow


def test_a_window_is_open_until_it_is_used_up():
    window = SendWindow(100)
    window.sent(99)
    assert window.open()
    window.sent(1)
    assert not window.open()
    window.granted(1)
    assert window.open()


@pytest.mark.parametrize("granted", [0, -1, 51])
def test_nobody_grants_what_is_not_on_its_way(granted):
    window = SendWindow(100)
    window.sent(50)
    with pytest.raises(ValueError, match="for 50 on their way"):
        window.granted(granted)
    assert window.in_flight_bytes == 50


def test_grants_come_half_a_window_at_a_time():
    window = ReceiveWindow(100)
    assert [window.taken(20) for _ in range(6)] == [0, 0, 60, 0, 0, 60]


@given(st.integers(1, 50), st.lists(st.tuples(st.integers(1, 80), st.booleans()), max_size=60))
def test_a_sender_that_waits_always_has_something_that_can_be_taken(window_bytes, steps):
    sender, receiver = SendWindow(window_bytes), ReceiveWindow(window_bytes)
    waiting: list[int] = []
    largest = max((cost for cost, _ in steps), default=0)
    for cost, takes in steps:
        if sender.open():
            sender.sent(cost)
            waiting.append(cost)
        else:
            assert waiting
        assert sender.in_flight_bytes < window_bytes + largest
        if takes and waiting:
            granted = receiver.taken(waiting.pop(0))
            if granted:
                sender.granted(granted)
    while waiting:
        granted = receiver.taken(waiting.pop(0))
        if granted:
            sender.granted(granted)
    assert sender.open()
