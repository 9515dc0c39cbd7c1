"""The intake of a subtask that reads channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from processor.ids import CheckpointId, Position, SplitId, StepName
from processor.protocol.messages import CheckpointKind
from processor.records.elements import Idle, Watermark
from processor.task.in_flight import FreezeInFlight, nothing_is_overtaken
from processor.task.input_gate import (
    AllEnded,
    AllIdle,
    CutNow,
    EventTime,
    GateEvent,
    InputGate,
    Nothing,
    Records,
)
from processor.task.subtask import Subtask


class ChannelIntake:
    """Feeds the chain from its input gate. Back-pressure stops batches only: what is no batch goes on."""

    def __init__(
        self,
        subtask: Subtask,
        gate: InputGate,
        *,
        elements_per_turn: int = 1,
        freeze: FreezeInFlight = nothing_is_overtaken,
    ) -> None:
        """``freeze`` takes what the barriers of a checkpoint overtake, if the gate lets them."""
        self.elements_per_turn = elements_per_turn
        self._subtask = subtask
        self._freeze = freeze
        self._gate = gate
        self._chain = subtask.parts.chain
        self._outputs = subtask.parts.outputs
        self._back_pressure = subtask.parts.back_pressure
        self._clock = subtask.parts.clock

    def step(self, *, pressed: bool) -> bool:
        # A full outbox never stops the reading up to a barrier, or both would wait for each other (R9).
        now_ms = self._clock.monotonic_ms()
        event: GateEvent | None = self._gate.overtake(now_ms)
        if event is None:
            if not self._outputs.ready():
                self._back_pressure.full(now_ms)
                return False
            self._back_pressure.open(now_ms)
            event = self._gate.next(now_ms)
        match event:
            case None:
                return False
            case Records(input=input, batch=batch):
                self._chain.on_batch(input, batch)
            case EventTime(time_ms=time_ms):
                self._chain.on_watermark(time_ms)
                self._outputs.mark(Watermark(time_ms))
            case AllIdle():
                self._outputs.mark(Idle())
            case AllEnded():
                self._subtask.end()
            case CutNow():
                self._cut(event)
            case Nothing():
                pass
            case _:
                assert_never(event)
        return True

    def _cut(self, cut: CutNow) -> None:
        self._subtask.cut(
            cut.checkpoint,
            cut.kind,
            alignment_ms=cut.alignment_ms,
            overtaken=cut.overtaken,
            freeze=lambda: self._freeze(cut.in_flight),
        )

    def inject(self, checkpoint: CheckpointId, kind: CheckpointKind) -> None:
        """Only sources inject barriers; here they arrive by channel."""

    def aborted(self, checkpoint: CheckpointId) -> None:
        self._gate.over(checkpoint)

    def assign(self, step: StepName, splits: Mapping[SplitId, Position]) -> None:
        """Only sources have splits."""

    def close(self) -> None:
        return None
