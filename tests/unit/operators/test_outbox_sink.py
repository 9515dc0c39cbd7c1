"""The sink in a subtask: all output of a checkpoint is in its outboxes; none is forgotten, none doubled."""

from __future__ import annotations

import pytest

from processor.contracts.policy import Skip
from processor.errors import BadRecord, Unavailable
from processor.fault_points import FaultPoint
from processor.ids import CheckpointId, JobName, PublisherId, StepName
from processor.operators.outbox_sink import OutboxSink
from processor.records.rows import RowBlock
from processor.storage.block_file import BLOCK_BYTES_MAX
from tests.unit.operators.kit import Bench, Running, TextSink, batch


def sink(bench: Bench, **more) -> Running:
    return bench.run(OutboxSink(TextSink()), step="out", **more)


def rows(bench, snapshot):
    return [(box.cut, bench.rows([box])) for box in snapshot.outboxes]


def test_rows_between_two_cuts_are_one_outbox_of_the_publisher():
    bench = Bench()
    step = sink(bench).feed(batch(["a", "b"])).feed(batch(["c"]))
    (box,) = step.cut(1).outboxes
    assert (box.publisher, box.cut, box.rows) == (PublisherId(JobName("job"), StepName("out"), 0), 1, 3)
    assert box.file.name.startswith("1/out-0/")
    assert bench.rows([box]) == [b"a", b"b", b"c"]


def test_an_empty_outbox_has_no_file():
    bench = Bench()
    step = sink(bench)
    assert step.cut(1).outboxes == ()
    assert bench.files.content == {}


def test_nothing_goes_to_the_outside_and_keys_headers_timestamps_are_in_the_rows():
    bench = Bench()
    headers = (("a", b"1"), ("a", b"2"), ("b", None))
    step = sink(bench).feed(batch(["v", None], keys=["k", "l"], headers=[headers, ()], offset=9))
    (box,) = step.cut(1).outboxes
    from processor.storage.outbox import read_outbox

    (block,) = read_outbox(bench.files, box.file)
    assert block.decode() == RowBlock(
        topic="out", values=[b"v", None], keys=[b"k", b"l"], timestamps=[9, 10], headers=[headers, ()]
    )


def test_r09_every_snapshot_lists_all_undecided_outboxes_oldest_first():
    bench = Bench()
    step = sink(bench).feed(batch(["a"]))
    first = step.cut(1)
    step.feed(batch(["b"]))
    second = step.cut(2)
    assert rows(bench, second) == [(1, [b"a"]), (2, [b"b"])]
    assert second.outboxes[0] == first.outboxes[0], "no outbox is written twice"
    assert rows(bench, step.cut(3)) == rows(bench, second), "also when nothing was added"


def test_r09_an_aborted_checkpoint_takes_nothing_away():
    bench = Bench()
    step = sink(bench).feed(batch(["a"]))
    completion = step.operator.cut(CheckpointId(1))
    completion.discard()
    step.operator.aborted(CheckpointId(1))
    step.feed(batch(["b"]))
    assert rows(bench, step.cut(2)) == [(1, [b"a"]), (2, [b"b"])]


def test_r09_a_completion_that_still_runs_takes_nothing_away():
    bench = Bench()
    step = sink(bench).feed(batch(["a"]))
    one = step.operator.cut(CheckpointId(1))
    step.feed(batch(["b"]))
    two = step.operator.cut(CheckpointId(2))
    first, second = one.run(), two.run()
    assert rows(bench, first) == [(1, [b"a"])]
    assert rows(bench, second) == [(1, [b"a"]), (2, [b"b"])]


def test_r09_a_completion_that_failed_leaves_its_rows_to_the_next():
    bench = Bench()
    failing = True

    def disk_full(point: FaultPoint) -> None:
        if failing and point is FaultPoint.STATE_WRITTEN_OUTBOX_NOT:
            raise Unavailable("disk full")

    bench.faults = disk_full
    step = sink(bench).feed(batch(["a"]))
    with pytest.raises(Unavailable):
        step.cut(1)
    failing = False
    step.feed(batch(["b"]))
    assert rows(bench, step.cut(2)) == [(1, [b"a"]), (2, [b"b"])]


def test_decided_outboxes_are_dropped_and_later_ones_stay():
    bench = Bench()
    step = sink(bench).feed(batch(["a"]))
    step.cut(1)
    step.feed(batch(["b"]))
    step.cut(2)
    step.feed(batch(["c"]))
    step.operator.decided(CheckpointId(1))
    assert rows(bench, step.cut(3)) == [(2, [b"b"]), (3, [b"c"])]
    step.operator.completed(CheckpointId(1))
    step.operator.decided(CheckpointId(3))
    assert step.cut(4).outboxes == ()


def test_a_later_decision_decides_the_outboxes_of_aborted_checkpoints_too():
    bench = Bench()
    step = sink(bench).feed(batch(["a"]))
    step.cut(1)
    step.operator.aborted(CheckpointId(1))
    step.feed(batch(["b"]))
    step.cut(2)
    step.operator.decided(CheckpointId(2))
    assert step.cut(3).outboxes == ()


def test_r09_undecided_bytes_press_for_a_checkpoint_but_nothing_is_refused():
    bench = Bench()
    step = sink(bench, outbox_bytes_max=1_000)
    assert not step.operator.pressed()
    step.feed(batch(["x" * 900]))
    assert not step.operator.pressed()
    step.feed(batch(["x" * 200]))
    assert step.operator.pressed()
    step.feed(batch(["y"]))
    step.cut(1)
    assert step.operator.pressed(), "written is not decided"
    step.operator.decided(CheckpointId(1))
    assert not step.operator.pressed()
    step.feed(batch(["x" * 1_000]))
    assert step.operator.pressed()


def test_r22_no_two_outboxes_have_one_name():
    bench = Bench()
    for _ in range(2):  # two subtasks of two lives over the same files
        step = sink(bench)
        for checkpoint in (1, 2):
            step.feed(batch(["a"]))
            step.cut(checkpoint)
    assert len(bench.files.content) == 4


def test_a_row_too_large_for_an_outbox_goes_by_the_policy():
    large = "x" * (BLOCK_BYTES_MAX + 1)
    with pytest.raises(BadRecord, match="step 'out'"):
        sink(Bench()).feed(batch(["a", large, "b"]))
    bench = Bench()
    step = sink(bench, policy=Skip()).feed(batch(["a", large, "b"]))
    assert bench.rows(step.cut(1).outboxes) == [b"a", b"b"]
    assert bench.counted == {"records_skipped": 1}


def picky() -> OutboxSink[str]:
    return OutboxSink(TextSink(refuses=lambda value: value == "bad"))


def test_case_56_a_value_the_sink_cannot_encode_stops_at_its_record_and_names_it():
    step = Bench().run(picky(), step="out")
    with pytest.raises(BadRecord, match=r"step 'out', at lines/0 offset 7: .* ValueError: refused"):
        step.feed(batch(["a", "b", "bad", "c"], offset=5))
    assert step.cut(1).outboxes == ()


def test_case_56_or_is_skipped_and_counted_by_policy():
    bench = Bench()
    step = bench.run(picky(), step="out", policy=Skip())
    step.feed(batch(["a", "bad", "c", "bad"]))
    assert bench.rows(step.cut(1).outboxes) == [b"a", b"c"]
    assert bench.counted == {"records_skipped": 2}
