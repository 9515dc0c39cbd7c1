"""A subtask that reads a source: records, barriers between polls, event time, end, stop."""

from __future__ import annotations

from collections import Counter

from processor.ids import CheckpointId, Position, SplitId, StepName
from processor.operators.event_time import EventTimeStamper
from processor.operators.watermarks import SplitWatermarks
from processor.protocol.messages import (
    AbortCheckpoint,
    AssignSplits,
    CheckpointKind,
    InjectBarrier,
    ResumeSources,
    SubtaskEnded,
    SubtaskReads,
)
from processor.records.elements import MAX_TIME_MS
from processor.task.back_pressure import BACK_PRESSURED_MS
from processor.task.source_intake import EventTimeParts, SourceIntake, owner_of_split
from tests.unit.task.kit import ATTEMPT, ListReader, PassOn, Rig

READ = StepName("read")
BACKLOG_AFTER_MS = 500


class Source:
    """A source subtask over lists."""

    def __init__(
        self,
        records,
        *,
        event_time: int | None = None,
        idle_after_ms: int | None = None,
        bounded: bool = False,
        records_max: int = 2,
        places=None,
        largest=None,
        batches_max: int = 100,
        owns=lambda split: True,
        operators=None,
    ) -> None:
        self.rig = Rig(operators or [PassOn()], source=True, batches_max=batches_max)
        self.reader = ListReader(records)
        self.counted: Counter[str] = Counter()
        parts = None
        if event_time is not None:
            parts = EventTimeParts(
                stamper=EventTimeStamper(lambda value: value, READ, self.rig.bench.context("read")),
                watermarks=SplitWatermarks(disorder_ms=event_time, idle_after_ms=idle_after_ms),
            )
        self.intake = SourceIntake(
            self.rig.subtask,
            step=READ,
            reader=self.reader,
            event_time=parts,
            records_max=records_max,
            bounded=bounded,
            owns=owns,
            count=lambda name, number: self.counted.update({name: number}),
            backlog_after_ms=BACKLOG_AFTER_MS,
        )
        self.rig.subtask.connect(self.intake)
        if places is None:
            places = {s: Position(next=0, end=len(v) if bounded else None) for s, v in records.items()}
        self.intake.restore({SplitId(s): p for s, p in places.items()}, largest or {})

    def inject(self, checkpoint: int, kind: CheckpointKind = CheckpointKind.PERIODIC) -> None:
        order = InjectBarrier(attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint), kind=kind)
        self.rig.subtask.handle(order)

    def abort(self, checkpoint: int) -> None:
        order = AbortCheckpoint(attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint), reason="")
        self.rig.subtask.handle(order)

    def positions(self, number: int = -1) -> dict[str, int]:
        (state,) = self.rig.acknowledged()[number].snapshot.sources
        return {str(split): place.next for split, place in state.positions.items()}


def test_one_poll_a_step_and_records_are_counted():
    source = Source({"a/0": ["x", "y", "z"]})
    assert source.rig.step()
    assert source.rig.sent() == [["x", "y"], "idle"]
    source.rig.run()
    assert source.rig.sent() == [["z"]]
    assert source.counted == {"records_in": 3}


def test_a_source_that_is_held_by_an_outbox_or_a_full_channel_has_back_pressure():
    source = Source({"a/0": ["x", "y", "z"]}, batches_max=1)
    clock, counted = source.rig.clock, source.rig.counted
    assert not source.rig.step(pressed=True)
    clock.now_ms += 30
    assert source.rig.step(), "the outbox is empty again"
    assert counted == {BACK_PRESSURED_MS: 30}
    assert not source.rig.step(), "the channel is full"
    clock.now_ms += 20
    assert not source.rig.step()
    assert counted == {BACK_PRESSURED_MS: 50}
    assert source.rig.sent() == [["x", "y"], "idle"]
    source.rig.run()
    assert source.rig.sent() == [["z"]]
    source.rig.run()
    clock.now_ms += 1_000
    source.rig.run()
    assert counted == {BACK_PRESSURED_MS: 50}


def test_a08_a_barrier_goes_between_two_polls_with_the_places_of_the_next_records():
    source = Source({"a/0": ["x", "y", "z"], "b/0": ["u"]})
    source.rig.step()
    source.inject(1)
    polls = source.reader.polls
    assert source.rig.step()
    assert source.reader.polls == polls, "nothing is read in between"
    source.rig.run()
    assert source.rig.sent() == [["x", "y"], "idle", "barrier 1", ["z"], ["u"]]
    assert source.positions() == {"a/0": 2, "b/0": 0}


def test_r09_a_barrier_is_never_held_by_back_pressure_or_a_full_outbox():
    source = Source({"a/0": ["x"] * 9}, batches_max=1)
    source.rig.run()
    assert source.counted == {"records_in": 2}, "back-pressure holds records"
    source.inject(1)
    assert source.rig.step(pressed=True)
    assert source.rig.sent() == [["x", "x"], "idle", "barrier 1"]


def test_r09_pressed_sources_hold_still():
    source = Source({"a/0": ["x"]})
    assert not source.rig.step(pressed=True)
    assert source.reader.polls == 0
    assert source.rig.step()


def test_r26_late_and_aborted_barriers_are_not_injected():
    source = Source({"a/0": []})
    source.inject(2)
    source.rig.run()
    source.inject(2)
    source.inject(1)
    source.rig.run()
    source.inject(3)
    source.abort(3)
    source.rig.run()
    source.inject(3)
    source.rig.run()
    assert [sent for sent in source.rig.sent() if sent != "idle"] == ["barrier 2"]


def test_a08_barriers_of_checkpoints_that_overlap_go_in_by_their_ids_whatever_the_order_of_their_orders():
    source = Source({"a/0": []})
    for checkpoint in (2, 1, 2, 3):
        source.inject(checkpoint)
    source.rig.run()
    assert [ack.checkpoint for ack in source.rig.acknowledged()] == [1, 2, 3]


def test_a03_a_source_that_finds_records_at_every_look_for_long_reads_a_backlog_until_it_finds_none():
    source = Source({"a/0": ["x"] * 6}, records_max=2)
    told = lambda: [r.backlog for r in source.rig.reports if isinstance(r, SubtaskReads)]  # noqa: E731
    source.rig.step()
    source.rig.clock.now_ms += BACKLOG_AFTER_MS - 1
    source.rig.step()
    assert told() == []
    source.rig.clock.now_ms += 1
    source.rig.step()
    assert told() == [True]
    source.inject(1)
    source.rig.run()
    assert told() == [True, False]
    assert [ack.backlog for ack in source.rig.acknowledged()] == [True]


# --- stop (R24)


def test_r24_after_the_stop_barrier_no_record_and_no_timer_runs():
    operator = PassOn()
    source = Source({"a/0": ["x", "y", "z"]}, operators=[operator])
    source.rig.step()
    source.inject(1, CheckpointKind.STOP)
    operator.timer_ms = 2_000
    source.rig.step()
    seen, polls = list(operator.seen), source.reader.polls
    source.rig.clock.now_ms = 9_000
    assert not source.rig.step()
    assert source.rig.subtask.next_processing_time_ms() is None, "nor does anybody wait for one"
    assert (operator.seen, source.reader.polls) == (seen, polls)
    assert source.positions() == {"a/0": 2}


def test_r24_a_stop_that_fails_resumes_where_it_was():
    source = Source({"a/0": ["x", "y", "z"]})
    source.rig.step()
    source.inject(1, CheckpointKind.STOP)
    source.rig.step()
    source.abort(1)
    source.rig.subtask.handle(ResumeSources(attempt=ATTEMPT, checkpoint=CheckpointId(1)))
    source.rig.run()
    assert source.rig.sent() == [["x", "y"], "idle", "barrier 1", ["z"]]


def test_r24_a_drained_source_ends_and_its_barrier_comes_behind_the_end():
    operator = PassOn()
    source = Source({"a/0": ["x", "y", "z"]}, operators=[operator])
    source.rig.step()
    source.inject(1, CheckpointKind.DRAIN)
    source.rig.run()
    assert source.rig.sent() == [["x", "y"], "idle", MAX_TIME_MS, "end", "barrier 1"]
    assert operator.seen[-2:] == [("watermark", MAX_TIME_MS), "end"]
    (ack,) = source.rig.acknowledged()
    assert ack.snapshot.finished
    assert source.positions() == {"a/0": 2}, "what was not read is not passed over"


def test_r24_a_source_that_has_ended_is_not_ended_again_by_a_drain():
    source = Source({"a/0": ["x"]}, bounded=True)
    source.rig.run()
    source.rig.sent()
    source.inject(1, CheckpointKind.DRAIN)
    source.rig.run()
    assert source.rig.sent() == ["barrier 1"]


def test_r24_the_resume_of_another_stop_resumes_nothing():
    source = Source({"a/0": ["x"]})
    source.inject(2, CheckpointKind.STOP)
    source.rig.step()
    source.rig.subtask.handle(ResumeSources(attempt=ATTEMPT, checkpoint=CheckpointId(1)))
    assert not source.rig.step()


# --- splits


def test_splits_are_dealt_out_in_turn_and_stay_where_they_are():
    owners = [owner_of_split(SplitId(f"topic/{number}"), 3) for number in range(6)]
    assert sorted(owners[:3]) == [0, 1, 2]
    assert owners[3:] == owners[:3]
    assert owner_of_split(SplitId("whole"), 3) in range(3)
    assert owner_of_split(SplitId("topic/x"), 3) in range(3)


def test_case_33_splits_found_later_are_read_by_their_owner_once():
    source = Source({"a/0": []}, owns=lambda split: split != "a/2")
    source.reader.records[SplitId("a/1")] = ["new"]
    found = {SplitId(s): Position(next=0) for s in ("a/0", "a/1", "a/2")}
    for _ in range(2):
        source.rig.subtask.handle(AssignSplits(attempt=ATTEMPT, step=READ, splits=found))
    other = AssignSplits(attempt=ATTEMPT, step=StepName("other"), splits={SplitId("z/0"): Position(next=0)})
    source.rig.subtask.handle(other)
    source.rig.run()
    assert sorted(source.reader.places) == ["a/0", "a/1"]
    assert ["new"] in source.rig.sent()


# --- event time


def test_event_time_is_the_slowest_split_less_the_disorder():
    source = Source({"a/0": [100, 200], "b/0": [50]}, event_time=10, records_max=1)
    source.rig.step()
    assert source.rig.sent() == [[100]], "nobody knows yet where b stands"
    source.rig.run()
    assert source.rig.sent() == [[200], [50], 40]


def test_case_44_a_split_without_records_turns_idle_and_its_first_record_counts_again():
    source = Source({"a/0": [100], "b/0": []}, event_time=0, idle_after_ms=2_000)
    source.rig.run()
    assert source.rig.sent() == [[100]]
    source.rig.clock.now_ms += 1_999
    source.reader.records[SplitId("a/0")].append(200)
    source.rig.run()
    assert source.rig.sent() == [[200]]
    source.rig.clock.now_ms += 1
    source.rig.run()
    assert source.rig.sent() == [200]
    source.reader.records[SplitId("b/0")].append(150)
    source.rig.run()
    assert source.rig.sent() == [[150]], "time does not go back for it"


def test_a_source_where_all_is_silent_says_so_once_and_wakes_up():
    source = Source({"a/0": [100]}, event_time=0, idle_after_ms=1_000)
    source.rig.run()
    source.rig.clock.now_ms += 1_000
    source.rig.run()
    source.rig.run()
    source.reader.records[SplitId("a/0")].append(100)
    source.rig.run()
    assert source.rig.sent() == [[100], 100, "idle", [100], 100]


def test_time_under_back_pressure_is_no_silence():
    source = Source({"a/0": [100], "b/0": [1]}, event_time=0, idle_after_ms=1_000, records_max=9)
    source.rig.run()
    source.rig.clock.now_ms += 5_000
    source.rig.run(pressed=True)
    source.rig.step()
    assert "idle" not in source.rig.sent()


def test_a_source_without_event_time_is_idle_and_says_so_once():
    source = Source({"a/0": ["x", "y", "z"]})
    source.rig.run()
    assert source.rig.sent().count("idle") == 1


def test_r27_splits_keep_their_largest_event_time_in_the_checkpoint():
    source = Source({"a/0": [100, 90], "b/0": [70]}, event_time=5, records_max=9)
    source.rig.run()
    source.inject(1)
    source.rig.run()
    snapshot = source.rig.acknowledged()[0].snapshot
    assert snapshot.sources[0].watermarks == {"a/0": 100, "b/0": 70}

    restored = Source(
        {"a/0": [], "b/0": []},
        event_time=5,
        places=snapshot.sources[0].positions,
        largest=snapshot.sources[0].watermarks,
    )
    restored.rig.run()
    assert restored.rig.sent() == [65], "time is where it was, before any record"


# --- the end of a bounded source


def test_a_bounded_source_ends_when_all_its_splits_are_at_their_ends():
    operator = PassOn()
    source = Source({"a/0": ["x"], "b/0": ["y"]}, bounded=True, records_max=1, operators=[operator])
    source.rig.step()
    assert not source.rig.subtask.ended
    source.rig.run()
    assert source.rig.sent() == [["x"], "idle", ["y"], MAX_TIME_MS, "end"]
    assert operator.seen[-2:] == [("watermark", MAX_TIME_MS), "end"]
    assert [type(report) for report in source.rig.reports] == [SubtaskEnded]


def test_an_ended_split_holds_event_time_of_the_others_no_more():
    source = Source({"a/0": [10], "b/0": [50, 60]}, event_time=0, bounded=True, records_max=1)
    for _ in range(2):
        source.rig.step()
    source.rig.sent()
    source.rig.step()
    assert 60 in source.rig.sent()


def test_a05_an_ended_source_still_takes_part_in_checkpoints():
    source = Source({"a/0": ["x"]}, bounded=True)
    source.rig.run()
    source.inject(1, CheckpointKind.LAST)
    source.rig.run()
    assert source.rig.sent()[-1] == "barrier 1"
    (ack,) = source.rig.acknowledged()
    assert ack.snapshot.finished
    assert source.positions() == {"a/0": 1}


def test_a_subtask_without_splits_of_a_bounded_source_has_ended():
    source = Source({}, bounded=True)
    source.rig.run()
    assert source.rig.subtask.ended


def test_a_restored_source_at_its_end_ends_at_once():
    source = Source({"a/0": ["x"]}, bounded=True, places={"a/0": Position(next=1, end=1)})
    source.rig.run()
    assert source.rig.sent()[-1] == "end"


def test_close_closes_the_reader():
    source = Source({"a/0": []})
    source.rig.subtask.close()
    assert source.reader.closed
