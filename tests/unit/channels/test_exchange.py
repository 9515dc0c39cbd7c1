"""Channels between two workers: in order, bounded by credit, open for marks, barriers seen at once."""

from __future__ import annotations

import pytest

from processor.channels.credits import cost
from processor.channels.exchange import SendingFigures
from processor.channels.frames import FrameKind, header
from processor.errors import AttemptFailed, EngineBug, UserCodeError
from processor.ids import Attempt, ChannelId, CheckpointId
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import Barrier, Element, EndOfInput, Idle, Watermark
from processor.records.value_codec import ValueCodec
from tests.unit.channels.kit import CODEC, EDGE, HERE, THERE, Pair, batch

OTHER = ChannelId(edge=0, producer=0, consumer=1)


def barrier(number: int) -> Barrier:
    return Barrier(attempt=Attempt(3), checkpoint=CheckpointId(number), kind=CheckpointKind.PERIODIC)


def drained(receiver) -> list[Element]:
    taken = []
    while receiver.peek() is not None:
        taken.append(receiver.take())
    return taken


def test_elements_come_out_in_the_order_in_which_they_went_in():
    pair = Pair()
    sender = pair.here.sender(THERE, EDGE, CODEC)
    receiver = pair.there.receiver(HERE, EDGE, CODEC)
    elements: list[Element] = [
        batch("a"),
        Watermark(1),
        batch("b", b"c", 3, None, ("d", 1.5)),
        Idle(),
        Watermark(-5),
        *(Barrier(attempt=Attempt(2), checkpoint=CheckpointId(4), kind=kind) for kind in CheckpointKind),
        Barrier(attempt=Attempt(2), checkpoint=CheckpointId(9), kind=CheckpointKind.MANUAL, overtakes=True),
        batch([1], {"x": 2}),
        EndOfInput(),
    ]
    for element in elements:
        sender.send(element)
    assert receiver.peek() is None
    pair.settle()
    assert receiver.peek() == elements[0]
    assert receiver.peek() is receiver.peek(), "looking takes nothing, and decodes once"
    assert drained(receiver) == elements


def test_many_small_frames_leave_together():
    pair = Pair()
    sender = pair.here.sender(THERE, EDGE, CODEC)
    pair.there.receiver(HERE, EDGE, CODEC)
    for time_ms in range(100):
        sender.send(Watermark(time_ms))
    assert pair.here.turn()
    assert pair.near.sends == 1
    assert not pair.here.turn(), "nothing moves any more"
    assert pair.near.sends == 1


def test_a_full_window_holds_the_producer_until_batches_are_taken():
    window_bytes = 4_096
    pair = Pair(window_bytes=window_bytes)
    sender = pair.here.sender(THERE, EDGE, CODEC)
    receiver = pair.there.receiver(HERE, EDGE, CODEC)
    sent = 0
    while sender.ready():
        sender.send(batch("x" * 100))
        sent += 1
    assert window_bytes / cost(200) < sent <= window_bytes / cost(100) + 1
    pair.settle()
    assert not sender.ready(), "arrived is not taken"
    assert pair.there.waiting_bytes == pair.here.in_flight_bytes
    taken = 0
    while not sender.ready():
        receiver.take()
        taken += 1
        pair.settle()
    assert taken < sent, "half a window is granted back at once"
    assert len(drained(receiver)) == sent - taken
    pair.settle()
    assert pair.here.in_flight_bytes < window_bytes / 2
    assert pair.there.waiting_bytes == 0


def test_a_batch_of_one_small_record_takes_room_too():
    pair = Pair(window_bytes=5_120)
    sender = pair.here.sender(THERE, EDGE, CODEC)
    for _ in range(10):
        sender.send(batch(1))
    assert not sender.ready()


def test_marks_take_no_room_so_that_no_barrier_waits_for_itself():
    pair = Pair(window_bytes=1_024)
    sender = pair.here.sender(THERE, EDGE, CODEC)
    receiver = pair.there.receiver(HERE, EDGE, CODEC)
    sender.send(batch("x" * 2_000))
    assert not sender.ready()
    for number in range(1, 50):
        sender.send(barrier(number))
    pair.settle()
    assert list(receiver.barriers()) == [barrier(number) for number in range(1, 50)]


def test_a_channel_that_waits_holds_no_other_one_back():
    pair = Pair(window_bytes=1_024)
    slow, quick = pair.here.sender(THERE, EDGE, CODEC), pair.here.sender(THERE, OTHER, CODEC)
    pair.there.receiver(HERE, EDGE, CODEC)
    receiver = pair.there.receiver(HERE, OTHER, CODEC)
    while slow.ready():
        slow.send(batch("x" * 300))
    for number in range(50):
        assert quick.ready()
        quick.send(batch("y" * 600))
        pair.settle()
        assert receiver.take() == batch("y" * 600), number
        pair.settle()
    assert not slow.ready()


def test_a10_a_barrier_is_seen_behind_everything_and_may_overtake_it():
    pair = Pair()
    sender = pair.here.sender(THERE, EDGE, CODEC)
    receiver = pair.there.receiver(HERE, EDGE, CODEC)
    for element in (batch("a"), Watermark(1), barrier(1), batch("b"), barrier(2), batch("c")):
        sender.send(element)
    pair.settle()
    first, second = receiver.barriers()
    assert receiver.overtake(second) == (batch("a"), Watermark(1), first, batch("b"))
    assert list(receiver.barriers()) == [first]
    in_flight_bytes = pair.here.in_flight_bytes
    pair.settle()
    assert pair.here.in_flight_bytes == in_flight_bytes, "what was overtaken still waits"
    assert drained(receiver) == [batch("a"), Watermark(1), first, batch("b"), batch("c")]


def test_what_a_restored_checkpoint_has_on_a_channel_comes_first_and_costs_no_credit():
    pair = Pair(window_bytes=1_024)
    sender = pair.here.sender(THERE, EDGE, CODEC)
    begins: list[Element] = [batch("in flight"), Watermark(7), batch("too")]
    receiver = pair.there.receiver(HERE, EDGE, CODEC, begins)
    sender.send(batch("new"))
    sender.send(barrier(1))
    pair.settle()
    (found,) = receiver.barriers()
    assert receiver.overtake(found) == (*begins, batch("new"))
    assert [receiver.take() for _ in begins] == begins
    pair.settle()
    assert pair.here.in_flight_bytes == pair.there.waiting_bytes > 0
    assert receiver.take() == batch("new")
    pair.settle()
    assert pair.here.in_flight_bytes == 0


def test_channels_go_both_ways_over_one_connection():
    pair = Pair()
    forth, back = EDGE, ChannelId(edge=1, producer=1, consumer=0)
    here_out, there_out = pair.here.sender(THERE, forth, CODEC), pair.there.sender(HERE, back, CODEC)
    there_in, here_in = pair.there.receiver(HERE, forth, CODEC), pair.here.receiver(THERE, back, CODEC)
    for number in range(20):
        here_out.send(batch("forth", number))
        there_out.send(batch("back", number))
    pair.settle()
    assert drained(there_in) == [batch("forth", number) for number in range(20)]
    assert drained(here_in) == [batch("back", number) for number in range(20)]


def test_figures_tell_what_is_on_its_way():
    pair = Pair(window_bytes=1_024)
    full = pair.here.sender(THERE, OTHER, CODEC)
    pair.here.sender(THERE, EDGE, CODEC)
    full.send(batch("x" * 2_000))
    assert not full.ready()
    first, second = pair.here.figures()
    assert first == SendingFigures(peer=THERE, channel=EDGE, in_flight_bytes=0)
    assert second.channel == OTHER
    assert second.in_flight_bytes == pair.here.in_flight_bytes > 2_000


def test_all_columns_of_a_batch_arrive():
    sent = Batch(
        values=[1, 2],
        timestamps=[-1, 2**40],
        keys=["a", b"b"],
        headers=[(("h", b"v"), ("h", None)), ()],
        offsets=[7, 9],
    )
    pair = Pair()
    pair.here.sender(THERE, EDGE, CODEC).send(sent)
    receiver = pair.there.receiver(HERE, EDGE, CODEC)
    pair.settle()
    assert receiver.take() == sent


def test_values_that_cannot_be_sent_are_the_authors_to_correct():
    sender = Pair().here.sender(THERE, EDGE, CODEC)
    with pytest.raises(UserCodeError, match=r"from step 'a' to input 0 of step 'b'.*another worker"):
        sender.send(batch(object()))


def test_values_of_another_type_than_the_job_names_are_found_where_they_arrive():
    pair = Pair()
    codec = ValueCodec(int, "from step 'a' to input 0 of step 'b'")
    pair.here.sender(THERE, EDGE, codec).send(batch("text"))
    receiver = pair.there.receiver(HERE, EDGE, codec)
    pair.settle()
    with pytest.raises(UserCodeError, match=r"from step 'a' to input 0 of step 'b' should be of type"):
        receiver.peek()


def test_a_channel_is_made_once():
    pair = Pair()
    pair.here.sender(THERE, EDGE, CODEC)
    pair.here.receiver(THERE, EDGE, CODEC)
    with pytest.raises(EngineBug):
        pair.here.sender(THERE, EDGE, CODEC)
    with pytest.raises(EngineBug):
        pair.here.receiver(THERE, EDGE, CODEC)


def test_a_connection_that_ends_in_the_middle_of_a_frame_fails_the_attempt_naming_the_peer():
    pair = Pair()
    receiver = pair.there.receiver(HERE, EDGE, CODEC)
    whole = header(FrameKind.WATERMARK, EDGE, 0, 8) + bytes(8)
    pair.near.send([whole + whole[:11]])
    pair.near.flush()
    pair.near.close()
    with pytest.raises(AttemptFailed, match="worker 0"):
        pair.there.turn()
    assert drained(receiver) == [Watermark(0)], "half a frame is nothing"


def frame(kind: FrameKind, body: bytes, *, sequence: int = 0, channel: ChannelId = EDGE) -> bytes:
    return header(kind, channel, sequence, len(body)) + body


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (
            frame(FrameKind.IDLE, b"", channel=OTHER),
            "frame of kind IDLE, unasked, on channel 0 to 1 of edge 0",
        ),
        (frame(FrameKind.CREDIT, bytes(8), channel=OTHER), "credit, and nothing is sent there"),
        (frame(FrameKind.IDLE, b"", sequence=1), "frame 1 where 0 is the next"),
        (frame(FrameKind.IDLE, b"") * 2, "frame 0 where 1 is the next"),
        (frame(FrameKind.CREDIT, (1).to_bytes(8, "little"), sequence=1), "credit 1 instead of 0"),
        (frame(FrameKind.CREDIT, (1).to_bytes(8, "little")), "credit of 1 bytes for 0 on their way"),
        (frame(FrameKind.CREDIT, bytes(8)), "credit of 0 bytes"),
        (frame(FrameKind.BARRIER, bytes(16) + b"\xff\0"), "a barrier of the unknown kind 255"),
        (frame(FrameKind.BARRIER, bytes(16) + b"\0\2"), "a barrier of the unknown kind 0, 2"),
    ],
)
def test_what_a_worker_must_not_send_fails_the_attempt_naming_worker_and_channel(sent, what):
    pair = Pair()
    pair.there.receiver(HERE, EDGE, CODEC)
    pair.there.sender(HERE, EDGE, CODEC)
    pair.near.send([sent])
    pair.near.flush()
    with pytest.raises(AttemptFailed, match=what) as found:
        pair.there.turn()
    assert "worker 0" in str(found.value)
    assert "of edge 0" in str(found.value)


def test_bytes_that_are_no_batch_never_become_a_record():
    pair = Pair()
    receiver = pair.there.receiver(HERE, EDGE, CODEC)
    pair.near.send([frame(FrameKind.BATCH, b"no batch")])
    pair.near.flush()
    pair.there.turn()
    for _ in range(2):
        with pytest.raises(AttemptFailed, match="worker 0 sent bytes that are no batch"):
            receiver.peek()
