"""Which inputs wait for which barrier (A9, R26), for any number of inputs and any order of deliveries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.errors import EngineBug
from processor.ids import CheckpointId
from processor.protocol.alignment import BarrierAlignment, Cut, Drop, Wait
from processor.protocol.messages import CheckpointKind

KIND = CheckpointKind.PERIODIC


def put(alignment: BarrierAlignment, channel: int, checkpoint: int):
    return alignment.barrier(channel, CheckpointId(checkpoint), KIND, 0)


def test_a09_channels_wait_until_the_last_delivers():
    alignment = BarrierAlignment([False] * 3)
    assert put(alignment, 1, 1) == Wait()
    assert put(alignment, 0, 1) == Wait()
    assert [alignment.blocked(channel) for channel in range(3)] == [True, True, False]
    assert put(alignment, 2, 1) == Cut(checkpoint=CheckpointId(1), kind=KIND, alignment_ms=0)
    assert not any(alignment.blocked(channel) for channel in range(3))
    assert alignment.aligning is None


def test_one_channel_never_waits():
    assert put(BarrierAlignment([False]), 0, 4) == Cut(checkpoint=CheckpointId(4), kind=KIND, alignment_ms=0)


def test_the_kind_travels_with_the_barrier():
    alignment = BarrierAlignment([False])
    step = alignment.barrier(0, CheckpointId(1), CheckpointKind.STOP, 0)
    assert step == Cut(checkpoint=CheckpointId(1), kind=CheckpointKind.STOP, alignment_ms=0)


def test_r26_barriers_at_or_below_what_is_over_are_dropped():
    alignment = BarrierAlignment([False] * 2)
    put(alignment, 0, 2)
    put(alignment, 1, 2)
    assert put(alignment, 0, 2) == Drop()
    assert put(alignment, 0, 1) == Drop()
    assert not alignment.blocked(0)


def test_r26_an_abort_frees_the_channels_and_its_late_barriers_are_dropped():
    alignment = BarrierAlignment([False] * 2)
    put(alignment, 0, 1)
    alignment.over(CheckpointId(1))
    assert not alignment.blocked(0)
    assert put(alignment, 1, 1) == Drop()


def test_the_abort_of_an_older_one_frees_nobody():
    alignment = BarrierAlignment([False] * 2)
    put(alignment, 0, 5)
    alignment.over(CheckpointId(4))
    assert alignment.blocked(0)
    assert alignment.aligning == 5


def test_a_newer_barrier_gives_the_older_alignment_up():
    alignment = BarrierAlignment([False] * 2)
    put(alignment, 0, 1)
    assert put(alignment, 1, 2) == Wait()
    assert [alignment.blocked(channel) for channel in range(2)] == [False, True]
    assert put(alignment, 0, 1) == Drop(), "a doubled one of the older"
    assert put(alignment, 0, 2) == Cut(checkpoint=CheckpointId(2), kind=KIND, alignment_ms=0)


def test_an_older_barrier_is_dropped_while_a_newer_aligns():
    alignment = BarrierAlignment([False] * 3)
    put(alignment, 0, 2)
    assert put(alignment, 1, 1) == Drop()
    assert not alignment.blocked(1)


def test_a_blocked_channel_delivers_nothing():
    alignment = BarrierAlignment([False] * 2)
    put(alignment, 0, 1)
    with pytest.raises(EngineBug, match="a blocked channel delivers nothing"):
        put(alignment, 0, 2)


@st.composite
def histories(draw):
    """Per channel some of the barriers 1..n in order (lost ones missing, some doubled), and aborts, mixed."""
    channels = draw(st.integers(1, 4))
    checkpoints = draw(st.integers(1, 6))
    queues: list[list[tuple[int, int]]] = []
    for channel in range(channels):
        queue = []
        for checkpoint in range(1, checkpoints + 1):
            queue += [(channel, checkpoint)] * draw(st.sampled_from([1, 1, 1, 1, 0, 2]))
        queues.append(queue)
    aborts = draw(st.lists(st.integers(1, checkpoints), max_size=3))
    return channels, checkpoints, queues, aborts, draw(st.randoms(use_true_random=False))


@given(histories())
def test_r26_in_any_order_every_cut_is_whole_comes_once_and_ids_grow(history):
    channels, checkpoints, queues, aborts, random = history
    alignment = BarrierAlignment([False] * channels)
    cuts: list[int] = []
    aborted: set[int] = set()
    delivered: dict[int, set[int]] = {}
    aborts = list(aborts)
    while True:
        open_now = [c for c in range(channels) if queues[c] and not alignment.blocked(c)]
        if not open_now and not aborts:
            break
        if aborts and (not open_now or random.random() < 0.2):
            abort = aborts.pop()
            alignment.over(CheckpointId(abort))
            aborted.add(abort)
            continue
        channel = random.choice(open_now)
        _, checkpoint = queues[channel].pop(0)
        delivered.setdefault(checkpoint, set()).add(channel)
        step = put(alignment, channel, checkpoint)
        if isinstance(step, Cut):
            assert step.checkpoint == checkpoint
            assert delivered[checkpoint] == set(range(channels)), "its barrier was on every channel"
            assert checkpoint not in aborted
            cuts.append(checkpoint)
    assert cuts == sorted(set(cuts))
    # Nothing waits for ever: the coordinator gives up what is still open, and a new one aligns.
    alignment.over(CheckpointId(checkpoints))
    last = [put(alignment, channel, checkpoints + 1) for channel in range(channels)]
    assert last[-1] == Cut(checkpoint=CheckpointId(checkpoints + 1), kind=KIND, alignment_ms=0)
    assert alignment.aligning is None
