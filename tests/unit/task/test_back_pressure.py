"""Several subtasks in a row: barriers, bounds and back-pressure never wait for each other (R9)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.channels.memory import MemoryChannel
from processor.ids import CheckpointId, Position, SplitId, StepName
from processor.operators.outbox_sink import OutboxSink
from processor.protocol.messages import (
    Acknowledged,
    CheckpointDecided,
    CheckpointKind,
    InjectBarrier,
    SubtaskEnded,
)
from processor.records.batch import Batch
from processor.storage.outbox import read_outbox
from processor.task.channel_intake import ChannelIntake
from processor.task.input_gate import InputChannel, InputGate
from processor.task.output_gate import KeyedOutput
from processor.task.source_intake import SourceIntake
from tests.unit.task.kit import ATTEMPT, ListReader, MemorySink, Outside, PassOn, Rig

LIMIT = 16


class Keyed(PassOn):
    """Gives every record itself as its key."""

    def on_batch(self, input, batch, out):
        out.emit(Batch(values=batch.values, timestamps=batch.timestamps, keys=[str(v) for v in batch.values]))


class Flow:
    """Two sources, a keyed edge of the smallest bound, two subtasks with outboxes of the smallest bound."""

    def __init__(self, records: int, *, bound: int = 1) -> None:
        self.links = [[MemoryChannel(bound) for _ in range(2)] for _ in range(2)]
        self.sources = []
        for index in range(2):
            rig = Rig([Keyed()], source=True, outputs=[KeyedOutput(self.links[index], LIMIT)])
            split = SplitId(f"lines/{index}")
            reader = ListReader({split: [f"{index}-{number}" for number in range(records)]})
            intake = SourceIntake(
                rig.subtask,
                step=StepName("read"),
                reader=reader,
                event_time=None,
                records_max=2,
                bounded=True,
                owns=lambda split: True,
                count=lambda name, number: None,
                backlog_after_ms=10_000,
            )
            rig.subtask.connect(intake)
            intake.restore({split: Position(next=0, end=records)}, {})
            self.sources.append(rig)
        self.sinks = []
        for index in range(2):
            sink = Rig([OutboxSink(MemorySink(Outside()))])
            chain_context = sink.bench.context("step0", outbox_bytes_max=64)
            sink.operators[0].open(chain_context)
            gate = InputGate([InputChannel(input=0, receiver=link[index]) for link in self.links])
            sink.subtask.connect(ChannelIntake(sink.subtask, gate))
            self.sinks.append(sink)
        self.all = [*self.sources, *self.sinks]
        self.rows: list[bytes | None] = []
        self.checkpoints = 0

    def pressed(self) -> bool:
        return any([rig.subtask.pressed() for rig in self.all])  # noqa: C419 - every one is asked

    def turn(self, order) -> bool:
        pressed = self.pressed()
        worked = False
        for place in order:
            worked = self.all[place].step(pressed=pressed) or worked
        return worked

    def checkpoint(self, kind: CheckpointKind = CheckpointKind.PERIODIC) -> None:
        self.checkpoints += 1
        number = CheckpointId(self.checkpoints)
        for rig in self.sources:
            rig.subtask.handle(InjectBarrier(attempt=ATTEMPT, checkpoint=number, kind=kind))

    def decide(self) -> bool:
        """When all have acknowledged the newest checkpoint, it is decided; its rows are out."""
        acks = []
        for rig in self.all:
            rig.executor.settle()
            acks += [
                report
                for report in rig.reports
                if isinstance(report, Acknowledged) and report.checkpoint == self.checkpoints
            ]
        if len(acks) < len(self.all):
            return False
        for rig, ack in zip(self.all, acks, strict=True):
            for box in ack.snapshot.outboxes:
                for block in read_outbox(rig.bench.files, box.file):
                    self.rows += block.decode().values
        for rig in self.all:
            rig.subtask.handle(
                CheckpointDecided(attempt=ATTEMPT, checkpoint=CheckpointId(self.checkpoints), publications=())
            )
        return True


@pytest.mark.parametrize("bound", [1, 2])
@settings(max_examples=30)
@given(data=st.data())
def test_r09_barriers_and_bounds_never_wait_for_each_other(bound, data):
    """In any order of steps: checkpoints complete though every channel and every outbox is full."""
    records = data.draw(st.integers(0, 40), label="records")
    flow = Flow(records, bound=bound)
    waiting = False
    for _ in range(2_000):
        order = data.draw(st.permutations(range(4)), label="order") if flow.checkpoints < 3 else range(4)
        worked = flow.turn(order)
        if waiting:
            waiting = not flow.decide()
            assert worked or not waiting, "a checkpoint under way can always go on"
        elif not worked:
            ended = all(any(isinstance(report, SubtaskEnded) for report in rig.reports) for rig in flow.all)
            if ended and flow.checkpoints and not flow.pressed():
                break
            flow.checkpoint()
            waiting = True
    else:
        raise AssertionError("it never comes to its end")
    flow.checkpoint(CheckpointKind.LAST)
    for _ in range(20):
        flow.turn(range(4))
    assert flow.decide()
    expected = sorted(f"{index}-{number}".encode() for index in range(2) for number in range(records))
    assert sorted(row or b"" for row in flow.rows) == expected
