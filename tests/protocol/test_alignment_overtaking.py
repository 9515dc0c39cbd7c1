"""When barriers overtake what is in front of them (A10, R26, R27)."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.ids import CheckpointId
from processor.protocol.alignment import Announced, BarrierAlignment, Cut, Drop, Wait
from processor.protocol.messages import CheckpointKind

KIND = CheckpointKind.PERIODIC


def coming(
    checkpoint: int, *, kind: CheckpointKind = KIND, overtakes: bool = False, next: bool = False
) -> Announced:
    return Announced(checkpoint=CheckpointId(checkpoint), kind=kind, overtakes=overtakes, next=next)


def cut(checkpoint: int, alignment_ms: int = 0) -> Cut:
    return Cut(checkpoint=CheckpointId(checkpoint), kind=KIND, alignment_ms=alignment_ms, overtaken=True)


def deliver(alignment: BarrierAlignment, channel: int, checkpoint: int, now_ms: int = 0):
    return alignment.barrier(channel, CheckpointId(checkpoint), KIND, now_ms)


def test_without_a_time_out_nothing_is_overtaken():
    alignment = BarrierAlignment([True, True])
    assert alignment.overtake([coming(1), coming(1)], 10_000) is None


def test_a10_with_the_time_out_0_barriers_overtake_once_they_are_on_every_channel():
    alignment = BarrierAlignment([True, True], 0)
    assert alignment.overtake([coming(1), None], 0) is None
    assert alignment.overtake([coming(1), coming(1)], 5) == cut(1, 5)
    assert alignment.late(CheckpointId(1))


def test_a10_a_checkpoint_begins_aligned_and_overtakes_when_its_time_is_up():
    alignment = BarrierAlignment([True, True], 100)
    both = [coming(1), coming(1)]
    assert alignment.overtake(both, 1_000) is None
    assert alignment.overtake(both, 1_099) is None
    assert alignment.overtake(both, 1_100) == cut(1, 100)


def test_the_time_counts_from_the_first_sight_on_any_channel():
    alignment = BarrierAlignment([True, True], 100)
    alignment.overtake([None, coming(1)], 50)
    assert deliver(alignment, 1, 1, 120) == Wait()
    assert alignment.overtake([coming(1), None], 150) == cut(1, 100)
    assert not alignment.blocked(1), "who had delivered runs again"


def test_a_checkpoint_that_aligns_in_time_is_aligned():
    alignment = BarrierAlignment([True, True], 100)
    alignment.overtake([coming(1), coming(1)], 0)
    assert deliver(alignment, 0, 1, 30) == Wait()
    assert deliver(alignment, 1, 1, 40) == Cut(checkpoint=CheckpointId(1), kind=KIND, alignment_ms=40)


def test_who_is_behind_one_that_did_not_wait_does_not_wait_either():
    alignment = BarrierAlignment([True, True], 100)
    assert alignment.overtake([coming(1, overtakes=True), None], 0) is None
    assert alignment.overtake([coming(1, overtakes=True), coming(1)], 1) == cut(1, 1)
    assert alignment.overtake([coming(2), coming(2)], 2) is None, "that was about the one before"


def test_a_barrier_that_did_not_wait_and_was_delivered_is_remembered():
    alignment = BarrierAlignment([True, True], 100)
    alignment.barrier(0, CheckpointId(1), KIND, 0, overtakes=True)
    assert alignment.overtake([None, coming(1)], 1) == cut(1, 1)


def test_r27_on_a_channel_that_may_not_be_overtaken_the_barriers_turn_is_waited_for():
    alignment = BarrierAlignment([True, False], 0)
    assert alignment.overtake([coming(1), coming(1)], 0) is None
    assert alignment.overtake([coming(1), coming(1, next=True)], 7) == cut(1, 7)


@pytest.mark.parametrize("kind", [kind for kind in CheckpointKind if not kind.may_overtake])
def test_r27_savepoints_stops_and_last_ones_are_aligned(kind):
    alignment = BarrierAlignment([True], 0)
    assert alignment.overtake([coming(1, kind=kind, overtakes=True)], 0) is None
    assert isinstance(alignment.barrier(0, CheckpointId(1), kind, 0), Cut)


def test_r26_what_is_over_overtakes_no_more():
    alignment = BarrierAlignment([True, True], 0)
    alignment.over(CheckpointId(3))
    assert alignment.overtake([coming(3), coming(3)], 0) is None
    assert alignment.overtake([coming(4), coming(4)], 0) == cut(4)


def test_r26_an_abort_while_it_aligns_begins_the_time_of_the_next_anew():
    alignment = BarrierAlignment([True, True], 100)
    alignment.overtake([coming(1), coming(1)], 0)
    alignment.over(CheckpointId(1))
    assert alignment.overtake([coming(2), coming(2)], 150) is None
    assert alignment.overtake([coming(2), coming(2)], 250) == cut(2, 100)


def test_a_channel_that_shows_the_newer_first_ends_the_older():
    alignment = BarrierAlignment([True, True], 0)
    assert deliver(alignment, 0, 1) == Wait()
    assert alignment.overtake([None, coming(2)], 0) is None
    assert not alignment.blocked(0)
    assert alignment.late(CheckpointId(1))
    assert alignment.overtake([coming(2), coming(2)], 3) == cut(2, 3)


def test_the_older_of_two_that_are_under_way_comes_first():
    """A savepoint aligns: the one behind it waits, though it might overtake."""
    alignment = BarrierAlignment([True, True], 0)
    savepoint = coming(1, kind=CheckpointKind.SAVEPOINT)
    assert alignment.overtake([savepoint, savepoint], 0) is None
    alignment.barrier(0, CheckpointId(1), CheckpointKind.SAVEPOINT, 1)
    assert alignment.overtake([None, savepoint], 2) is None
    assert isinstance(alignment.barrier(1, CheckpointId(1), CheckpointKind.SAVEPOINT, 3), Cut)
    assert alignment.overtake([coming(2), coming(2)], 4) == cut(2)


@st.composite
def histories(draw):
    """For each channel what is on it: records (0) and barriers in order, of which some never come."""
    channels = draw(st.integers(1, 3))
    checkpoints = draw(st.integers(1, 4))
    queues = []
    for _ in range(channels):
        queue: list[int] = []
        for checkpoint in range(1, checkpoints + 1):
            queue += [0] * draw(st.integers(0, 2))
            queue += [checkpoint] * draw(st.sampled_from([1, 1, 1, 1, 0]))
        queues.append(queue)
    overtakable = [draw(st.booleans()) for _ in range(channels)]
    return queues, overtakable, draw(st.sampled_from([0, 3])), draw(st.randoms(use_true_random=False))


@given(histories())
def test_r26_in_any_order_every_cut_has_its_barrier_on_every_channel_and_ids_grow(history):
    queues, overtakable, timeout_ms, random = history
    arriving = [deque(queue) for queue in queues]
    waiting: list[deque[int]] = [deque() for _ in queues]
    alignment = BarrierAlignment(overtakable, timeout_ms)
    cuts: list[int] = []
    taken: list[set[int]] = [set() for _ in queues]
    now_ms = 0
    while any(arriving) or any(queue and not alignment.blocked(at) for at, queue in enumerate(waiting)):
        now_ms += random.choice((0, 1, 2))
        at = random.randrange(len(queues))
        if arriving[at] and random.random() < 0.6:
            waiting[at].append(arriving[at].popleft())
        elif waiting[at] and not alignment.blocked(at):
            element = waiting[at].popleft()
            if element:
                step = deliver(alignment, at, element, now_ms)
                taken[at].add(element)
                if isinstance(step, Cut):
                    assert all(element in seen for seen in taken)
                    cuts.append(element)
                else:
                    assert isinstance(step, Wait | Drop)
        announced: list[Announced | None] = []
        for channel, queue in enumerate(waiting):
            alive = [b for b in queue if b and not alignment.late(CheckpointId(b))]
            first = None if alignment.blocked(channel) or not alive else alive[0]
            announced.append(None if first is None else coming(first, next=queue[0] == first))
        found = alignment.overtake(announced, now_ms)
        if found is not None:
            for channel, queue in enumerate(waiting):
                if found.checkpoint in queue:
                    assert overtakable[channel] or queue[0] == found.checkpoint
                    queue.remove(found.checkpoint)
                else:
                    assert found.checkpoint in taken[channel], "its barrier is on every channel"
                taken[channel].add(found.checkpoint)
            cuts.append(found.checkpoint)
    assert cuts == sorted(set(cuts))
    everywhere = [n for n in range(1, 5) if all(n in queue for queue in queues)]
    newest = max((n for queue in queues for n in queue), default=0)
    if everywhere and everywhere[-1] == newest:
        assert newest in cuts, "nothing newer ends the newest"
