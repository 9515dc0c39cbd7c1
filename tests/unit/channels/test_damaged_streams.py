"""Whatever bytes a worker sends, the attempt of who receives them fails by name, or goes on: nothing else happens."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from processor.channels.frames import FrameKind, header
from processor.errors import AttemptFailed, ProcessorError, UserCodeError
from processor.ids import ChannelId
from processor.records.batch import Batch
from processor.records.batch_codec import encode_batch
from processor.records.elements import EndOfInput, Watermark
from tests.damage.ways import damages
from tests.unit.channels.kit import CODEC, EDGE, HERE, THERE, Pair
from tests.unit.records.test_batch_codec import batches
from tests.unit.records.test_value_codec import hashable, plain

OTHER = ChannelId(edge=0, producer=0, consumer=1)


@st.composite
def streams(draw) -> bytes:
    """What a worker says on two channels."""
    pair = Pair()
    senders = [pair.here.sender(THERE, channel, CODEC) for channel in (EDGE, OTHER)]
    for sender in senders:
        for batch in draw(st.lists(batches(), max_size=3)):
            sender.send(batch.with_values([draw(st.one_of(plain, hashable)) for _ in range(len(batch))]))
            sender.send(Watermark(1))
        sender.send(EndOfInput())
    pair.here.turn()
    return bytes(pair.far.receive())


def receive(stream: bytes) -> list[object]:
    """What comes out of it, up to the failure."""
    pair = Pair()
    receivers = [pair.there.receiver(HERE, channel, CODEC) for channel in (EDGE, OTHER)]
    found: list[object] = []
    pair.near.send([stream])
    pair.near.flush()
    failed: ProcessorError | None = None
    try:
        pair.there.turn()
        for receiver in receivers:
            while receiver.peek() is not None:
                found.append(receiver.take())
    except (AttemptFailed, UserCodeError) as error:
        failed = error
    if failed is not None:
        blames = (
            "worker 0 sent" if isinstance(failed, AttemptFailed) else "from step 'a' to input 0 of step 'b'"
        )
        assert blames in str(failed)
    return found


@settings(max_examples=200)
@given(streams(), st.data())
def test_a_damaged_stream_fails_by_name_or_is_another_stream(stream, data):
    assert len(receive(stream)) >= 2
    receive(data.draw(damages(stream)))


@settings(max_examples=200)
@given(batches(), st.data())
def test_a_damaged_batch_fails_by_name_or_is_another_batch(batch, data):
    values = data.draw(st.lists(plain, min_size=len(batch), max_size=len(batch)))
    body = data.draw(damages(encode_batch(batch, data.draw(damages(CODEC.encode(values))))))
    found = receive(header(FrameKind.BATCH, EDGE, 0, len(body)) + body)
    assert all(isinstance(element, Batch) for element in found)


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_else(stream):
    receive(stream)
