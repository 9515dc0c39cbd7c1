"""A batch that is broadcast: each consumer gets it, and back-pressure of one is back-pressure of all."""

from __future__ import annotations

from processor.channels.memory import MemoryChannel
from processor.records.elements import Watermark
from processor.task.output_gate import BroadcastOutput, OutputGate
from tests.unit.operators.kit import batch


def test_every_consumer_gets_every_batch_in_order():
    channels = [MemoryChannel(9) for _ in range(3)]
    output = BroadcastOutput(channels)
    gate = OutputGate([output])
    first, second = batch(["a", "b"]), batch(["c"])
    output.emit(first)
    gate.mark(Watermark(5))
    output.emit(second)
    for channel in channels:
        assert [channel.take() for _ in range(3)] == [first, Watermark(5), second]


def test_who_cannot_follow_holds_all_back():
    fast, slow = MemoryChannel(9), MemoryChannel(1)
    output = BroadcastOutput([fast, slow])
    gate = OutputGate([output])
    assert gate.ready()
    output.emit(batch(["a"]))
    assert (fast.ready(), gate.ready()) == (True, False)
    slow.take()
    assert gate.ready()
