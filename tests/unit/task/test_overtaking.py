"""Barriers that overtake, in one subtask: what becomes part of the checkpoint, what goes on, what is reported."""

from __future__ import annotations

from collections.abc import Sequence

from processor.channels.memory import MemoryChannel
from processor.ids import Attempt, CheckpointId, EdgeName, KeyGroupRange, StepName
from processor.protocol.messages import AbortCheckpoint, CheckpointKind
from processor.records.batch import Batch
from processor.records.elements import MAX_TIME_MS, Barrier, EndOfInput, Idle, Watermark
from processor.records.value_codec import ValueCodec
from processor.storage.channel_file import ChannelContent, read_channels
from processor.task.channel_intake import ChannelIntake
from processor.task.in_flight import InFlightFiles
from processor.task.input_gate import InputChannel, InputGate
from tests.unit.storage.memory_files import MemoryFiles
from tests.unit.task.kit import ATTEMPT, PassOn, Rig, short

EDGE = EdgeName(origin=StepName("by-key"), output="", target=StepName("step0"), input=0)
POINTWISE = None


def batch(*values) -> Batch:
    return Batch(values=list(values), timestamps=[0] * len(values), keys=[str(value) for value in values])


def barrier(
    checkpoint: int, kind: CheckpointKind = CheckpointKind.PERIODIC, *, overtakes: bool = False
) -> Barrier:
    return Barrier(attempt=Attempt(1), checkpoint=CheckpointId(checkpoint), kind=kind, overtakes=overtakes)


class Inner:
    """A subtask between channels on which barriers overtake. Nothing runs before ``step`` or ``run``."""

    def __init__(
        self,
        *,
        edges: Sequence[EdgeName | None] = (EDGE,),
        timeout_ms: int = 0,
        adopted: Sequence[int] = (),
        kind: type = str,
        **more,
    ) -> None:
        self.operator = PassOn()
        self.rig = Rig((self.operator,), **more)
        self.channels = [MemoryChannel(100) for _ in edges]
        self.files = MemoryFiles()
        self.codec = ValueCodec(kind, str(EDGE))
        in_flight = InFlightFiles(
            files=self.files,
            file_prefix="a1/count-0/",
            token=iter("abcdefgh").__next__,
            key_groups=KeyGroupRange(0, 16),
            codecs={EDGE: self.codec},
        )
        gate = InputGate(
            [
                InputChannel(
                    input=0,
                    receiver=channel,
                    edge=edge,
                    producer=index,
                    adopted=adopted[index] if adopted else 0,
                )
                for index, (channel, edge) in enumerate(zip(self.channels, edges, strict=True))
            ],
            alignment_timeout_ms=timeout_ms,
        )
        self.rig.subtask.connect(ChannelIntake(self.rig.subtask, gate, freeze=in_flight.freeze))

    def put(self, *elements, channel: int = 0) -> Inner:
        for element in elements:
            self.channels[channel].send(element)
        return self

    def step(self) -> list:
        """One step; what has come out."""
        self.rig.step()
        return self.rig.sent()

    def acknowledged(self):
        return self.rig.acknowledged()[-1]

    def kept(self) -> list[ChannelContent]:
        return [
            content
            for held in self.acknowledged().snapshot.channels
            for content in read_channels(self.files, held.file, self.codec)
        ]


def kept(content: ChannelContent) -> list:
    return [short(element) for element in content.elements]


def test_a10_the_barrier_goes_out_at_once_and_what_it_overtook_is_part_of_the_checkpoint():
    inner = Inner().put(batch("a"), batch("b", "c"), barrier(1), batch("d"))
    assert inner.step() == ["barrier 1"]
    assert inner.operator.seen == [], "nothing of it was processed before the cut"
    (content,) = inner.kept()
    assert kept(content) == [["a"], ["b", "c"]]
    inner.rig.run()
    assert inner.rig.sent() == [["a"], ["b", "c"], ["d"]], "it goes on its way all the same, in order"


def test_a10_the_metrics_of_a_barrier_that_overtook():
    inner = Inner(timeout_ms=100, batches_max=1).put(batch("a"), batch("b"), barrier(1))
    inner.rig.run()  # one goes out, and the way is full
    inner.rig.clock.now_ms += 130
    inner.rig.step()
    assert isinstance(inner.rig.channel.take(), Batch)
    mark = inner.rig.channel.take()
    assert isinstance(mark, Barrier)
    assert mark.overtakes
    metrics = inner.acknowledged().metrics
    assert (metrics.overtaken, metrics.alignment_ms, metrics.channel_records) == (True, 130, 1)
    (held,) = inner.acknowledged().snapshot.channels
    assert metrics.channel_bytes == held.file.bytes
    assert metrics.bytes >= metrics.channel_bytes
    assert (held.edge, held.records) == (EDGE, 1)


def test_it_overtakes_under_back_pressure_when_nothing_may_be_processed():
    inner = Inner(batches_max=1).put(batch("a"), batch("b"), batch("c"))
    inner.rig.run()
    inner.put(barrier(1))
    assert inner.step() == [["a"], "barrier 1"]
    (content,) = inner.kept()
    assert kept(content) == [["b"], ["c"]]


def test_r27_on_a_pointwise_channel_its_turn_is_waited_for():
    inner = Inner(edges=(EDGE, POINTWISE)).put(batch("a"), batch("b"), barrier(1))
    inner.put(batch("x"), barrier(1), channel=1)
    assert inner.step() == [["a"]]
    assert inner.step() == [["x"]]
    assert inner.step() == ["barrier 1"]
    (content,) = inner.kept()
    assert kept(content) == [["b"]], "and nothing of the pointwise channel is kept"


def test_aligned_is_aligned_and_keeps_nothing():
    inner = Inner(timeout_ms=1_000).put(batch("a"), barrier(1))
    inner.rig.run()
    assert inner.rig.sent() == [["a"], "barrier 1"]
    assert inner.acknowledged().snapshot.channels == ()
    assert not inner.acknowledged().metrics.overtaken
    assert inner.files.content == {}


def test_r27_a_savepoint_is_aligned_though_the_time_out_is_0():
    inner = Inner().put(batch("a"), barrier(1, CheckpointKind.SAVEPOINT))
    inner.rig.run()
    assert inner.rig.sent() == [["a"], "barrier 1"]
    assert inner.acknowledged().snapshot.channels == ()


def test_r27_event_time_in_flight_is_kept_in_its_place_and_the_end_is_not():
    inner = Inner(edges=(EDGE, EDGE)).put(Watermark(5), batch("a"))
    inner.put(Watermark(9), channel=1)
    inner.rig.run()
    inner.put(batch("b"), Watermark(7), Idle(), batch("c"), barrier(1))
    inner.put(Watermark(MAX_TIME_MS), EndOfInput(), barrier(1), channel=1)
    inner.rig.step()
    first, second = inner.kept()
    assert (first.head.watermark_ms, first.head.silent) == (5, False)
    assert kept(first) == [["b"], 7, "idle", ["c"]]
    assert (second.head.watermark_ms, kept(second)) == (9, []), "who has ended says so again"


def test_a_channel_that_has_ended_holds_nobody_back_when_it_is_restored():
    inner = Inner(edges=(EDGE, EDGE)).put(EndOfInput(), channel=1)
    inner.rig.run()
    inner.put(batch("a"), barrier(1)).put(barrier(1), channel=1)
    inner.rig.step()
    _, ended = inner.kept()
    assert (ended.head.watermark_ms, ended.head.silent) == (None, True)


def test_two_checkpoints_under_way_do_not_mix():
    inner = Inner(edges=(EDGE, EDGE)).put(batch("a"), barrier(1), batch("b"), barrier(2))
    inner.put(batch("x"), barrier(1), batch("y"), barrier(2), channel=1)
    inner.rig.step()
    inner.rig.step()
    one, two = inner.rig.acknowledged()
    found = {
        report.checkpoint: [
            kept(content)
            for held in report.snapshot.channels
            for content in read_channels(inner.files, held.file, inner.codec)
        ]
        for report in (one, two)
    }
    assert found == {1: [[["a"]], [["x"]]], 2: [[["a"], ["b"]], [["x"], ["y"]]]}


def test_r26_the_barrier_of_an_aborted_checkpoint_overtakes_nothing():
    inner = Inner(edges=(EDGE, EDGE)).put(batch("a"), barrier(1))
    order = AbortCheckpoint(attempt=ATTEMPT, checkpoint=CheckpointId(1), reason="")
    inner.rig.subtask.handle(order)
    inner.put(batch("x"), barrier(1), barrier(2), channel=1).put(barrier(2))
    inner.rig.step()
    assert [report.checkpoint for report in inner.rig.acknowledged()] == [2]
    assert [kept(content) for content in inner.kept()] == [[["a"]], [["x"]]]
    inner.rig.run()
    assert inner.rig.sent() == ["barrier 2", ["a"], ["x"]]


def test_r27_what_was_in_flight_under_another_layout_goes_before_everything_new():
    inner = Inner(edges=(EDGE, EDGE), adopted=(0, 2)).put(batch("new"), barrier(1))
    inner.put(batch("old"), batch("older"), barrier(1), channel=1)
    assert inner.step() == [["old"]], "and nothing is overtaken meanwhile"
    assert inner.step() == [["older"]]
    assert inner.step() == ["barrier 1"]
    assert [kept(content) for content in inner.kept()] == [[["new"]], []]


def test_a_value_that_could_not_be_read_back_declines_the_checkpoint_by_name():
    inner = Inner(kind=int).put(batch("no int"), barrier(1))
    inner.rig.step()
    (declined,) = inner.rig.declined()
    assert "from step 'by-key' to input 0 of step 'step0'" in declined.reason
    inner.rig.run()
    assert inner.rig.sent() == ["barrier 1", ["no int"]], "the records go on"
    assert inner.files.content == {}
