"""One subtask: runs its chain in small steps that never block, and takes its part in checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

from processor.contracts.executor import Executor
from processor.fault_points import FaultHook
from processor.ids import NO_CHECKPOINT, Attempt, CheckpointId, Position, SplitId, StepName, SubtaskId
from processor.operators.chain import ChainRunner
from processor.protocol.entries import SourceState
from processor.protocol.messages import (
    AbortCheckpoint,
    AllRunning,
    AssignSplits,
    CheckpointCompleted,
    CheckpointDecided,
    CheckpointKind,
    HoldSources,
    InjectBarrier,
    Order,
    RefreshMarkers,
    ResumeSources,
    SubtaskEnded,
    SubtaskPressed,
)
from processor.protocol.subtask_checkpoint import SubtaskCheckpoint
from processor.records.elements import MAX_TIME_MS, Barrier, EndOfInput, Watermark
from processor.task.back_pressure import BackPressure
from processor.task.in_flight import ChannelSnapshot, nothing_in_flight
from processor.task.output_gate import OutputGate
from processor.task.processing_clock import ProcessingClock
from processor.task.snapshotter import CutFacts, SendReport, Snapshotter


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskParts:
    """What every subtask is made of."""

    attempt: Attempt
    id: SubtaskId
    restored: CheckpointId
    """A decided checkpoint, whose files a store on disk goes on with (R22)."""
    chain: ChainRunner
    outputs: OutputGate
    back_pressure: BackPressure
    executor: Executor
    report: SendReport
    clock: ProcessingClock
    faults: FaultHook


class Intake(Protocol):
    """What differs between subtasks that read a source and those that read channels."""

    elements_per_turn: int
    """How many elements the worker may let it take in a row."""

    def step(self, *, pressed: bool) -> bool:
        """Take at most one element; True when anything was done."""
        ...

    def inject(self, checkpoint: CheckpointId, kind: CheckpointKind) -> None: ...

    def aborted(self, checkpoint: CheckpointId) -> None: ...

    def assign(self, step: StepName, splits: Mapping[SplitId, Position]) -> None: ...

    def close(self) -> None: ...


class Subtask:
    """The common half of a subtask. ``step`` takes at most one element and never blocks."""

    def __init__(self, parts: SubtaskParts) -> None:
        self.parts = parts
        self.id = parts.id
        self.ended = False
        self._part = SubtaskCheckpoint()
        self._snapshots = Snapshotter(
            attempt=parts.attempt,
            subtask=parts.id,
            part=self._part,
            executor=parts.executor,
            report=parts.report,
            clock=parts.clock,
            faults=parts.faults,
        )
        self._intake: Intake | None = None
        self._told_pressed = False
        self._decided = parts.restored
        """The newest checkpoint known to be decided."""
        self._completed = self._aborted = NO_CHECKPOINT
        """The newest of which operators were told so."""

    def connect(self, intake: Intake) -> None:
        self._intake = intake

    @property
    def intake(self) -> Intake:
        assert self._intake is not None
        return self._intake

    def step(self, *, pressed: bool) -> bool:
        """Run due timers, then take at most one element. ``pressed``: somewhere in the job an outbox or a
        cache is full, so sources hold still (R9). True when anything was done."""
        if self._part.stopped:
            return False
        worked = self._run_timers()
        return self.intake.step(pressed=pressed) or worked

    def pressed(self) -> bool:
        """Whether an outbox or a cache of this subtask is full; asks for a checkpoint when it becomes so."""
        pressed = self.parts.chain.pressed()
        if pressed and not self._told_pressed:
            self.parts.report(SubtaskPressed(attempt=self.parts.attempt, subtask=self.id))
        self._told_pressed = pressed
        return pressed

    def next_processing_time_ms(self) -> int | None:
        over = self._part.stopped or self.ended
        return None if over else self.parts.chain.next_processing_time_ms()

    def handle(self, order: Order) -> None:
        """Act on an order of the coordinator; late and doubled ones do nothing (R26)."""
        match order:
            case InjectBarrier(checkpoint=checkpoint, kind=kind, decided=decided):
                self._learn(decided)
                self._snapshots.heard(checkpoint)
                if self._part.accepts(checkpoint):
                    self.intake.inject(checkpoint, kind)
            case AbortCheckpoint(checkpoint=checkpoint):
                self._part.aborted(checkpoint)
                self.intake.aborted(checkpoint)
                self._told_pressed = False
                if checkpoint > self._aborted:
                    self._aborted = checkpoint
                    self.parts.chain.aborted(checkpoint)
            case ResumeSources(checkpoint=checkpoint):
                self._part.resumed(checkpoint)
            case CheckpointDecided(checkpoint=checkpoint):
                self._learn(checkpoint)
                self._told_pressed = False  # who is still full needs another checkpoint
            case CheckpointCompleted(checkpoint=checkpoint):
                if checkpoint > self._completed:
                    self._completed = checkpoint
                    self.parts.chain.completed(checkpoint)
            case AssignSplits(step=step, splits=splits):
                self.intake.assign(step, splits)
            case RefreshMarkers() | HoldSources() | AllRunning():
                pass  # the worker's
            case _:
                assert_never(order)

    def _learn(self, decided: CheckpointId) -> None:
        """A checkpoint is decided, told by its news or by the barrier of a later one: outboxes up to it are no
        longer listed, and snapshots build on it (R22)."""
        if decided > self._decided:
            self._decided = decided
            self.parts.chain.decided(decided)

    def cut(
        self,
        checkpoint: CheckpointId,
        kind: CheckpointKind,
        *,
        alignment_ms: int,
        sources: tuple[SourceState, ...] = (),
        backlog: bool = False,
        overtaken: bool = False,
        freeze: Callable[[], ChannelSnapshot] = nothing_in_flight,
    ) -> None:
        """Put the barrier into every output, then take the snapshot (A11). ``freeze`` takes what the barrier
        overtook."""
        parts = self.parts
        if kind is CheckpointKind.FULL:
            parts.chain.start_anew()
        parts.outputs.mark(
            Barrier(attempt=parts.attempt, checkpoint=checkpoint, kind=kind, overtakes=overtaken)
        )
        facts = CutFacts(
            checkpoint=checkpoint,
            stop=kind.stops,
            built_on=self._decided,
            backlog=backlog,
            alignment_ms=alignment_ms,
            sources=sources,
            processing_time_ms=parts.clock.reached_ms,
            finished=self.ended,
            overtaken=overtaken,
            freeze=freeze,
        )
        self._snapshots.cut(facts, parts.chain.cut)

    def end(self) -> None:
        """All inputs have ended. The subtask stays, to take part in checkpoints."""
        parts = self.parts
        parts.chain.on_watermark(MAX_TIME_MS)
        parts.chain.on_end()
        parts.outputs.mark(Watermark(MAX_TIME_MS))
        parts.outputs.mark(EndOfInput())
        self.ended = True
        parts.report(SubtaskEnded(attempt=parts.attempt, subtask=self.id))

    def _run_timers(self) -> bool:
        if self.ended:  # what a timer emits now would come behind the end of input
            return False
        due_ms = self.parts.chain.next_processing_time_ms()
        if due_ms is None:
            return False
        now_ms = self.parts.clock.wall_ms()
        if now_ms < due_ms or not self.parts.outputs.ready():
            return False
        self.parts.chain.on_processing_time(now_ms)
        return True

    def close(self) -> None:
        """Free everything; also after a failure half-way."""
        self._snapshots.close()
        try:
            if self._intake is not None:
                self._intake.close()
        finally:
            self.parts.chain.close()
