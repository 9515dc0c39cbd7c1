"""A chain of operators: calls down a tree, one cut for all, and nothing half done."""

from __future__ import annotations

import pytest

from processor.contracts.completion import Completion
from processor.ids import CheckpointId, StepName
from processor.operators.chain import ChainExit, ChainLink, ChainNode, ChainRunner
from processor.operators.keyed_process import KeyedProcessOperator
from processor.operators.lift import Filter, Map
from processor.operators.operator import EMPTY_SNAPSHOT, BaseOperator, OperatorSnapshot
from processor.operators.outbox_sink import OutboxSink
from tests.unit.operators.kit import Bench, Recorder, TextSink, batch
from tests.unit.operators.test_keyed_process import Sides, Timed


class Spy(BaseOperator):
    """Tells a log what it is asked, and hands batches on."""

    def __init__(self, name, log, fail_at=""):
        self.name, self.log, self.fail_at = name, log, fail_at
        self.waiting_ms = None

    def _did(self, what):
        self.log.append(f"{self.name} {what}")
        if self.fail_at == what:
            raise RuntimeError(f"{self.name} cannot {what}")

    def open(self, context):
        self._did("open")

    def on_batch(self, input, batch, out):
        self._did(f"batch {input}")
        out.emit(batch)

    def on_watermark(self, time_ms, out):
        self._did("watermark")

    def on_processing_time(self, now_ms, out):
        self._did("clock")

    def on_end(self, out):
        self._did("end")

    def next_processing_time_ms(self):
        return self.waiting_ms

    def cut(self, checkpoint) -> Completion[OperatorSnapshot]:
        self._did("cut")
        return SpyCompletion(self)

    def decided(self, checkpoint):
        self._did("decided")

    def completed(self, checkpoint):
        self._did("completed")

    def aborted(self, checkpoint):
        self._did("aborted")

    def close(self):
        self._did("close")


class SpyCompletion:
    def __init__(self, spy):
        self.spy = spy

    def run(self) -> OperatorSnapshot:
        self.spy._did("run")
        return EMPTY_SNAPSHOT

    def discard(self):
        self.spy._did("discard")


def node(name, operator):
    return ChainNode(step=StepName(name), operator=operator)


def three(log, **fail):
    spies = [Spy(name, log, fail.get(name, "")) for name in "abc"]
    out = Recorder()
    runner = ChainRunner(
        [node(spy.name, spy) for spy in spies],
        [ChainLink(origin=0, target=1), ChainLink(origin=1, target=2, input=4)],
        [ChainExit(origin=2, collector=out)],
    )
    return runner, spies, out


def opened(runner, bench=None):
    bench = bench or Bench()
    runner.open(lambda step: bench.context(step))
    return runner


def test_a_batch_goes_down_the_chain_and_out():
    log: list[str] = []
    runner, _, out = three(log)
    opened(runner).on_batch(3, batch([1]))
    assert log == ["a open", "b open", "c open", "a batch 3", "b batch 0", "c batch 4"]
    assert out.values == [1]


def test_marks_and_notices_go_to_every_operator_in_order():
    log: list[str] = []
    runner, spies, _ = three(log)
    opened(runner)
    log.clear()
    runner.on_watermark(1)
    runner.on_processing_time(1)
    runner.on_end()
    runner.decided(CheckpointId(1))
    runner.completed(CheckpointId(1))
    runner.aborted(CheckpointId(1))
    assert log == [
        f"{n} {w}" for w in ("watermark", "clock", "end", "decided", "completed", "aborted") for n in "abc"
    ]
    assert runner.next_processing_time_ms() is None
    spies[0].waiting_ms, spies[2].waiting_ms = 9, 7
    assert runner.next_processing_time_ms() == 7


def test_one_cut_of_all_and_one_completion():
    log: list[str] = []
    runner, _, _ = three(log)
    opened(runner)
    log.clear()
    completion = runner.cut(CheckpointId(1))
    assert log == ["a cut", "b cut", "c cut"]
    completion.run()
    completion.discard()
    completion.discard()
    assert log[3:6] == ["a run", "b run", "c run"]
    assert log[6:] == ["a discard", "b discard", "c discard"] * 2


def test_a_cut_that_fails_discards_what_was_cut():
    log: list[str] = []
    runner, _, _ = three(log, b="cut")
    opened(runner)
    with pytest.raises(RuntimeError, match="b cannot cut"):
        runner.cut(CheckpointId(1))
    assert log[-1] == "a discard"


def test_a_completion_that_fails_discards_all():
    log: list[str] = []
    runner, _, _ = three(log, b="run")
    with pytest.raises(RuntimeError, match="b cannot run"):
        opened(runner).cut(CheckpointId(1)).run()
    assert log[-5:] == ["a run", "b run", "a discard", "b discard", "c discard"]


def test_an_operator_that_cannot_open_closes_those_that_are():
    log: list[str] = []
    runner, _, _ = three(log, c="open")
    with pytest.raises(RuntimeError, match="c cannot open"):
        opened(runner)
    assert log == ["a open", "b open", "c open", "b close", "a close"]


def test_closing_goes_on_after_an_error_and_tells_it():
    log: list[str] = []
    runner, _, _ = three(log, b="close")
    with pytest.raises(RuntimeError, match="b cannot close"):
        opened(runner).close()
    assert log[-3:] == ["c close", "b close", "a close"]


def test_a_source_feeds_the_steps_behind_it():
    out, direct = Recorder(), Recorder()
    runner = ChainRunner(
        [node("read", None), node("double", Map(lambda v: v * 2))],
        [ChainLink(origin=0, target=1)],
        [ChainExit(origin=1, collector=out), ChainExit(origin=0, collector=direct)],
    )
    opened(runner).on_batch(0, batch([1, 2]))
    runner.on_watermark(5)
    assert out.values == [2, 4]
    assert direct.values == [1, 2]


def test_several_readers_of_one_output_each_get_all():
    outs = [Recorder() for _ in range(3)]
    runner = ChainRunner(
        [node("read", None), node("even", Filter(lambda v: v % 2 == 0)), node("neg", Map(lambda v: -v))],
        [ChainLink(origin=0, target=1), ChainLink(origin=0, target=2)],
        [ChainExit(origin=1, collector=outs[0]), ChainExit(origin=1, collector=outs[1]),
         ChainExit(origin=2, collector=outs[2])],
    )  # fmt: skip
    opened(runner).on_batch(0, batch([1, 2, 3]))
    assert [out.values for out in outs] == [[2], [2], [-1, -2, -3]]


def test_an_output_that_nobody_reads_goes_nowhere():
    runner = ChainRunner([node("double", Map(lambda v: v * 2))], [], [])
    opened(runner).on_batch(0, batch([1]))


def test_side_outputs_lead_to_their_readers():
    main, odd = Recorder(), Recorder()
    runner = ChainRunner(
        [node("p", KeyedProcessOperator(Sides)), node("neg", Map(lambda v: -v))],
        [ChainLink(origin=0, output="odd", target=1)],
        [ChainExit(origin=0, collector=main), ChainExit(origin=1, collector=odd)],
    )
    opened(runner).on_batch(0, batch([1, 2, 3], keys=["a", "b", "c"]))
    assert main.values == []
    assert odd.values == [-1, -3]


class Late(BaseOperator):
    """Counts records older than the watermark it has seen."""

    def __init__(self):
        self.time_ms, self.late, self.seen = -1, 0, 0

    def on_batch(self, input, batch, out):
        self.seen += len(batch)
        self.late += sum(time_ms < self.time_ms for time_ms in batch.timestamps)

    def on_watermark(self, time_ms, out):
        self.time_ms = time_ms


def test_case_46_what_a_timer_emits_reaches_the_next_step_before_the_watermark_does():
    late = Late()
    runner = ChainRunner(
        [node("timers", KeyedProcessOperator(Timed)), node("late", late)], [ChainLink(origin=0, target=1)], []
    )
    opened(runner).on_batch(0, batch([10], keys=["a"]))
    runner.on_watermark(11)
    assert (late.seen, late.late, late.time_ms) == (1, 0, 11)


def test_a_snapshot_has_the_state_and_the_outboxes_of_all_steps():
    bench = Bench()
    runner = ChainRunner(
        [
            node("timers", KeyedProcessOperator(Timed)),
            node("out", OutboxSink(TextSink())),
            node("again", OutboxSink(TextSink())),
        ],
        [ChainLink(origin=0, target=1), ChainLink(origin=0, target=2)],
        [],
    )
    opened(runner, bench).on_batch(0, batch([10, 50], keys=["a", "b"]))
    runner.on_watermark(11)
    snapshot = runner.cut(CheckpointId(1)).run()
    assert bench.contents(snapshot, {"fired": int}) == {"fired": {"a": 1}, "timers/event": {"b": {50}}}
    assert [(box.publisher.sink, box.rows) for box in snapshot.outboxes] == [("out", 1), ("again", 1)]
    assert not runner.pressed()
    runner.close()


def test_one_pressed_operator_presses_the_chain():
    bench = Bench()
    runner = ChainRunner(
        [node("read", None), node("out", OutboxSink(TextSink()))], [ChainLink(origin=0, target=1)], []
    )
    runner.open(lambda step: bench.context(step, outbox_bytes_max=10))
    assert not runner.pressed()
    runner.on_batch(0, batch(["x" * 20]))
    assert runner.pressed()
