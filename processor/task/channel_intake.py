"""The intake of a subtask that reads channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from processor.ids import CheckpointId, Position, SplitId, StepName
from processor.protocol.messages import CheckpointKind
from processor.records.elements import MIN_TIME_MS, Idle, Watermark
from processor.task.input_gate import (
    Aligned,
    AllEnded,
    AllIdle,
    EventTime,
    InputGate,
    Nothing,
    Records,
)
from processor.task.subtask import Subtask


class ChannelIntake:
    """Feeds the chain from its input gate. Back-pressure stops batches only: what is no batch goes on."""

    elements_per_turn = 8
    """Enough to drain what one turn of the sources brought."""

    def __init__(self, subtask: Subtask, gate: InputGate) -> None:
        self._subtask = subtask
        self._gate = gate
        self._chain = subtask.parts.chain
        self._outputs = subtask.parts.outputs
        self._clock = subtask.parts.clock

    def step(self, *, pressed: bool) -> bool:
        # A full outbox never stops the reading up to a barrier, or both would wait for each other (R9).
        if not self._outputs.ready():
            return False
        event = self._gate.next(self._clock.monotonic_ms())
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
            case Aligned(checkpoint=checkpoint, kind=kind, alignment_ms=alignment_ms):
                reached_ms = self._gate.time_ms
                self._subtask.cut(
                    checkpoint,
                    kind,
                    alignment_ms=alignment_ms,
                    watermark_ms=None if reached_ms == MIN_TIME_MS else reached_ms,
                )
            case Nothing():
                pass
            case _:
                assert_never(event)
        return True

    def inject(self, checkpoint: CheckpointId, kind: CheckpointKind) -> None:
        """Only sources inject barriers; here they arrive by channel."""

    def aborted(self, checkpoint: CheckpointId) -> None:
        self._gate.over(checkpoint)

    def assign(self, step: StepName, splits: Mapping[SplitId, Position]) -> None:
        """Only sources have splits."""

    def close(self) -> None:
        return None
