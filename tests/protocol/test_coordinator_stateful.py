"""A coordinator, its subtasks, a log and an outside system, with messages lost, late and doubled in any order.

Whatever happens: what is decided is each subtask's output up to its cut, once and in order; ids grow; nothing is
decided while the one before is not out; and when the faults stop, a checkpoint completes or the attempt fails.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from processor.ids import CheckpointId, Marker, PublisherId, StepName, SubtaskId
from processor.protocol.coordinator_messages import (
    Action,
    Answer,
    Broadcast,
    Decide,
    DecisionLost,
    DecisionTaken,
    DecisionUnknown,
    EndJob,
    FailAttempt,
    FencedByLog,
    PublishedRecorded,
    RecordPublished,
    Requested,
    Tick,
)
from processor.protocol.entries import OutboxFile, SubtaskSnapshot
from processor.protocol.messages import (
    AbortCheckpoint,
    Acknowledged,
    CheckpointDecided,
    CheckpointKind,
    Declined,
    InjectBarrier,
    Publication,
    PublicationDone,
    PublicationUnanswered,
    ResumeSources,
    SubtaskEnded,
)
from processor.protocol.pending_checkpoint import Request
from processor.protocol.publishing import Done, Send, Wanted, judge_publication
from processor.protocol.subtask_checkpoint import SubtaskCheckpoint
from tests.protocol.coordinator_rig import ATTEMPT, INCARNATION, JOB, RESTORED, Rig, file, marker

SUBTASKS = tuple(SubtaskId(StepName("write"), index) for index in range(3))
PUBLISHERS = tuple(PublisherId(JOB, StepName("write"), index) for index in range(3))


@dataclass
class Part:
    """One subtask: its rows since the last cut, its undecided outboxes."""

    id: SubtaskId
    publisher: PublisherId
    part: SubtaskCheckpoint = field(default_factory=SubtaskCheckpoint)
    produced: int = 0
    closed: int = 0
    undecided: list[OutboxFile] = field(default_factory=list)
    drained: bool = False

    def handle(self, order: Any) -> list[Any]:
        match order:
            case InjectBarrier(checkpoint=checkpoint, kind=kind):
                if not self.part.stopped and self.part.accepts(checkpoint):
                    return [self.cut(checkpoint, kind)]
            case AbortCheckpoint(checkpoint=checkpoint):
                self.part.aborted(checkpoint)
            case ResumeSources(checkpoint=checkpoint):
                self.part.resumed(checkpoint)
            case CheckpointDecided(checkpoint=checkpoint):
                self.undecided = [box for box in self.undecided if box.cut > checkpoint]
        return []

    def cut(self, checkpoint: CheckpointId, kind: CheckpointKind) -> Acknowledged:
        self.part.cut(checkpoint, stop=kind.stops)
        if kind is CheckpointKind.DRAIN:  # timers fire before their time
            self.drained = True
            self.produced += 1
        rows = self.produced - self.closed
        if rows:
            name = f"{self.id}-{checkpoint}"
            self.undecided.append(
                OutboxFile(publisher=self.publisher, cut=checkpoint, file=file(name), rows=rows)
            )
            self.closed = self.produced
        snapshot = SubtaskSnapshot(
            subtask=self.id,
            outboxes=tuple(self.undecided),
            processing_time_ms=self.produced,  # what it had produced at the cut, for the check
            finished=self.drained,
        )
        return Acknowledged(attempt=ATTEMPT, checkpoint=checkpoint, snapshot=snapshot)


class CoordinatorUnderFaults(RuleBasedStateMachine):
    concurrent = 1

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(subtasks=SUBTASKS, publishers=PUBLISHERS, tolerated=3, concurrent=self.concurrent)
        self.parts = [Part(s, p) for s, p in zip(SUBTASKS, PUBLISHERS, strict=True)]
        self.wire: list[tuple[str, Any]] = []
        """Messages under way: to "coordinator", to "publisher", or to a subtask by number."""
        self.deciding: Decide | None = None
        self.log: list[Decide] = []
        self.out: dict[PublisherId, list[OutboxFile]] = {p: [] for p in PUBLISHERS}
        self.markers: dict[PublisherId, Marker] = {p: marker(RESTORED, 0) for p in PUBLISHERS}
        self.recording: CheckpointId | None = None
        self.completed = 0
        self.answered: Counter[int] = Counter()
        self.asked = 0
        self.over: Action | None = None

    # --- the coordinator acts

    def tell(self, event: Any) -> None:
        for action in self.rig.do(event):
            self.perform(action)

    def perform(self, action: Action) -> None:
        match action:
            case Broadcast(order=order):
                self.wire += [(str(index), order) for index in range(len(self.parts))]
                if isinstance(order, CheckpointDecided):
                    self.wire += [("publisher", (order, p)) for p in order.publications]
            case Decide():
                assert self.deciding is None
                assert [snapshot.subtask for snapshot in action.subtasks] == list(SUBTASKS), "it is whole"
                assert self.deliverable_is_out(), "R13: the one before is out"
                finished = {snapshot.finished for snapshot in action.subtasks}
                assert finished == {action.drained}, (
                    "R24: drained output is decided by its drain or by nothing"
                )
                self.deciding = action
            case RecordPublished(checkpoint=checkpoint):
                assert self.deliverable_is_out(), "recorded only when everything is out"
                self.recording = checkpoint
            case Answer(number=number):
                self.answered[number] += 1
            case FailAttempt() | FencedByLog() | EndJob():
                self.over = action
            case _:
                pass

    def deliverable_is_out(self) -> bool:
        decided = Counter(b.file.name for d in self.log for s in d.subtasks for b in s.outboxes)
        out = Counter(box.file.name for boxes in self.out.values() for box in boxes)
        return decided == out

    # --- the world acts

    def deliver(self, to: str, message: Any) -> None:
        if to == "coordinator":
            self.tell(message)
        elif to == "publisher":
            self.publish(*message)
        else:
            self.wire += [("coordinator", report) for report in self.parts[int(to)].handle(message)]

    def publish(self, order: CheckpointDecided, publication: Publication) -> None:
        """R11, for one identity; doing it twice does nothing."""
        wanted = Wanted(
            incarnation=INCARNATION,
            attempt=ATTEMPT,
            checkpoint=order.checkpoint,
            rows=publication.rows,
        )
        seen = self.markers[publication.publisher]
        if seen.checkpoint > order.checkpoint:
            return  # an order doubled so late that the next one is out: R11 would stop; the driver is in order
        verdict = judge_publication(
            seen, wanted=wanted, expected=publication.expected, sealed=lambda attempt: True
        )
        assert isinstance(verdict, Send | Done), verdict
        if isinstance(verdict, Send):
            assert verdict.from_row == 0
            self.out[publication.publisher] += publication.outboxes
            self.markers[publication.publisher] = wanted.marker(wanted.rows)
        done = PublicationDone(
            attempt=ATTEMPT,
            checkpoint=order.checkpoint,
            publisher=publication.publisher,
            marker=wanted.marker(wanted.rows),
        )
        self.wire.append(("coordinator", done))

    def decide(self) -> None:
        assert self.deciding is not None
        taken, self.deciding = self.deciding, None
        self.log.append(taken)
        self.tell(DecisionTaken(checkpoint=taken.checkpoint))

    def record(self) -> None:
        assert self.recording is not None
        checkpoint, self.recording = self.recording, None
        before = self.over
        self.tell(PublishedRecorded(checkpoint=checkpoint))
        if before is None:
            self.completed += 1

    # --- rules

    @rule(index=st.integers(0, 2), rows=st.integers(1, 3))
    def produce(self, index: int, rows: int) -> None:
        if not self.parts[index].part.stopped:
            self.parts[index].produced += rows

    @precondition(lambda self: self.wire)
    @rule(data=st.data())
    def deliver_any(self, data: Any) -> None:
        to, message = self.wire.pop(data.draw(st.integers(0, len(self.wire) - 1)))
        self.deliver(to, message)

    @precondition(lambda self: self.wire)
    @rule(count=st.integers(1, 12))
    def deliver_in_order(self, count: int) -> None:
        for _ in range(min(count, len(self.wire))):
            self.deliver(*self.wire.pop(0))

    @precondition(lambda self: self.wire)
    @rule(data=st.data())
    def lose(self, data: Any) -> None:
        self.wire.pop(data.draw(st.integers(0, len(self.wire) - 1)))

    @precondition(lambda self: self.wire)
    @rule(data=st.data())
    def double(self, data: Any) -> None:
        self.wire.append(self.wire[data.draw(st.integers(0, len(self.wire) - 1))])

    @rule(rounds=st.integers(1, 6))
    def all_goes_well(self, rounds: int) -> None:
        """For a while: what is on its way arrives, the log answers. So that runs get somewhere."""
        for _ in range(rounds):
            for _ in range(len(self.wire)):
                self.deliver(*self.wire.pop(0))
            if self.deciding is not None:
                self.decide()
            if self.recording is not None:
                self.record()

    @rule(rows=st.lists(st.integers(0, 2), min_size=3, max_size=3))
    def everybody_produces_and_a_checkpoint_is_asked_for(self, rows: list[int]) -> None:
        for index, count in enumerate(rows):
            self.produce(index, count)
        self.ask(CheckpointKind.MANUAL)

    @rule(kind=st.sampled_from([CheckpointKind.MANUAL] * 8 + [CheckpointKind.STOP, CheckpointKind.DRAIN]))
    def ask(self, kind: CheckpointKind) -> None:
        self.asked += 1
        self.tell(Requested(request=Request(kind=kind, number=self.asked)))

    @rule(passed_ms=st.sampled_from([1, 1, 1, 50, 100, 300, 500, 1_000]))
    def time_passes(self, passed_ms: int) -> None:
        self.rig.now_ms += passed_ms
        self.tell(Tick())

    @precondition(lambda self: self.deciding is not None)
    @rule()
    def entry_takes_its_place(self) -> None:
        self.decide()

    @precondition(lambda self: self.deciding is not None)
    @rule(lost=st.booleans())
    def entry_does_not(self, lost: bool) -> None:
        assert self.deciding is not None
        checkpoint, self.deciding = self.deciding.checkpoint, None
        if lost:
            self.tell(DecisionLost(checkpoint=checkpoint, by="a seal"))
        else:
            self.tell(DecisionUnknown(checkpoint=checkpoint, reason="no answer"))

    @precondition(lambda self: self.recording is not None)
    @rule()
    def note_is_written(self) -> None:
        self.record()

    @rule(index=st.integers(0, 2), back=st.integers(0, 2))
    def decline(self, index: int, back: int) -> None:
        checkpoint = CheckpointId(self.rig.coordinator.decided + 1 + back)
        self.wire.append(
            (
                "coordinator",
                Declined(attempt=ATTEMPT, checkpoint=checkpoint, subtask=SUBTASKS[index], reason="full"),
            )
        )

    @rule(index=st.integers(0, 2))
    def unanswered(self, index: int) -> None:
        checkpoint = self.rig.coordinator.decided
        self.tell(
            PublicationUnanswered(
                attempt=ATTEMPT, checkpoint=checkpoint, publisher=PUBLISHERS[index], reason="away"
            )
        )

    @rule(index=st.integers(0, 2))
    def input_ends(self, index: int) -> None:
        if index == 0:  # rarely all three
            self.wire.append(("coordinator", SubtaskEnded(attempt=ATTEMPT, subtask=SUBTASKS[0])))

    # --- what always holds

    @invariant()
    def decided_output_is_each_subtasks_output_up_to_its_cut_once_and_in_order(self) -> None:
        names = [box.file.name for d in self.log for s in d.subtasks for box in s.outboxes]
        assert len(names) == len(set(names)), "every outbox is decided once"
        if not self.log:
            return
        for snapshot in self.log[-1].subtasks:
            boxes = [
                b for d in self.log for s in d.subtasks if s.subtask == snapshot.subtask for b in s.outboxes
            ]
            assert sum(box.rows for box in boxes) == snapshot.processing_time_ms, (
                "nothing lost, nothing twice"
            )
            assert [box.cut for box in boxes] == sorted({box.cut for box in boxes}), "in order"

    @invariant()
    def what_is_out_is_decided_and_in_order(self) -> None:
        for index, publisher in enumerate(PUBLISHERS):
            decided = [
                b for d in self.log for s in d.subtasks if s.subtask == SUBTASKS[index] for b in s.outboxes
            ]
            assert self.out[publisher] == decided[: len(self.out[publisher])]

    @invariant()
    def ids_grow_and_parents_are_the_ones_before(self) -> None:
        ids = [decide.checkpoint for decide in self.log]
        assert ids == sorted(set(ids))
        assert [decide.parent for decide in self.log] == [RESTORED, *ids][: len(ids)]

    @invariant()
    def nobody_is_answered_twice(self) -> None:
        assert all(count == 1 for count in self.answered.values())

    def teardown(self) -> None:
        """The faults stop: a new checkpoint completes, or the attempt is over."""
        before = self.completed
        for _ in range(400):
            if self.over is not None or self.completed > before + 1:
                return
            while self.wire and self.over is None:
                self.deliver(*self.wire.pop(0))
            if self.deciding is not None and self.over is None:
                self.decide()
            if self.recording is not None and self.over is None:
                self.record()
            self.rig.now_ms += 50
            self.tell(Tick())
        raise AssertionError("stuck: neither a checkpoint nor an end")


class Overlapping(CoordinatorUnderFaults):
    """Several checkpoints under way at once."""

    concurrent = 3


@pytest.mark.parametrize("world", [CoordinatorUnderFaults, Overlapping])
def test_r09_r13_r21_r24_r25_a06_in_any_order_of_events(world: type[RuleBasedStateMachine]):
    run_state_machine_as_test(
        world,
        settings=settings(max_examples=300, stateful_step_count=60),
    )
