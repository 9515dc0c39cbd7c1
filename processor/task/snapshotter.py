"""Takes a subtask's snapshots: the cut in the subtask's thread, the completion in the background (B3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from processor.contracts.clock import Clock
from processor.contracts.completion import Completion
from processor.contracts.executor import Executor
from processor.errors import EngineBug
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import Attempt, CheckpointId, SubtaskId
from processor.operators.operator import OperatorSnapshot
from processor.protocol.entries import SourceState, SubtaskSnapshot
from processor.protocol.messages import Acknowledged, AcknowledgementMetrics, Declined, Report
from processor.protocol.subtask_checkpoint import SubtaskCheckpoint

SendReport = Callable[[Report], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutFacts:
    """What of a snapshot is known at the cut itself."""

    checkpoint: CheckpointId
    stop: bool
    alignment_ms: int
    sources: tuple[SourceState, ...]
    watermark_ms: int | None
    processing_time_ms: int
    finished: bool


class Snapshotter:
    """Runs completions of one subtask one after another, and acknowledges or declines."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        subtask: SubtaskId,
        part: SubtaskCheckpoint,
        executor: Executor,
        report: SendReport,
        clock: Clock,
        faults: FaultHook,
    ) -> None:
        self._attempt = attempt
        self._subtask = subtask
        self._part = part
        self._executor = executor
        self._report = report
        self._clock = clock
        self._faults = faults
        self._outstanding: list[Completion[OperatorSnapshot]] = []

    def cut(self, facts: CutFacts, cut: Callable[[CheckpointId], Completion[OperatorSnapshot]]) -> None:
        """The synchronous part: bounded, without I/O."""
        started_ms = self._clock.monotonic_ms()
        self._part.cut(facts.checkpoint, stop=facts.stop)
        completion = cut(facts.checkpoint)
        self._outstanding.append(completion)
        self._faults(FaultPoint.CUT_TAKEN)
        cut_ms = self._clock.monotonic_ms()

        def run() -> OperatorSnapshot:
            snapshot = completion.run()
            self._faults(FaultPoint.ALL_WRITTEN_NOT_ACKNOWLEDGED)
            return snapshot

        def written(snapshot: OperatorSnapshot) -> None:
            self._outstanding.remove(completion)
            metrics = AcknowledgementMetrics(
                alignment_ms=facts.alignment_ms,
                synchronous_ms=cut_ms - started_ms,
                asynchronous_ms=self._clock.monotonic_ms() - cut_ms,
                bytes=sum(s.file.bytes for s in snapshot.keyed)
                + sum(o.file.bytes for o in snapshot.outboxes),
            )
            self._written(facts, snapshot, metrics)

        def failed(error: BaseException) -> None:
            # What was frozen folds into the next snapshot; nothing of it is lost.
            self._outstanding.remove(completion)
            completion.discard()
            if isinstance(error, EngineBug) or not isinstance(error, Exception):
                raise error  # a bug is no failed checkpoint that may be tolerated
            self._report(
                Declined(
                    attempt=self._attempt,
                    checkpoint=facts.checkpoint,
                    subtask=self._subtask,
                    reason=f"{type(error).__name__}: {error}",
                )
            )

        self._executor.submit(f"subtask {self._subtask}", run, written, failed)

    def _written(self, facts: CutFacts, snapshot: OperatorSnapshot, metrics: AcknowledgementMetrics) -> None:
        # One that was aborted is acknowledged too: its files are garbage the coordinator must hear of (R22).
        self._report(
            Acknowledged(
                attempt=self._attempt,
                checkpoint=facts.checkpoint,
                snapshot=SubtaskSnapshot(
                    subtask=self._subtask,
                    keyed=snapshot.keyed,
                    sources=facts.sources,
                    outboxes=snapshot.outboxes,
                    watermark_ms=facts.watermark_ms,
                    processing_time_ms=facts.processing_time_ms,
                    finished=facts.finished,
                ),
                metrics=metrics,
            )
        )

    def close(self) -> None:
        """The attempt ends: give up what is still being written."""
        for completion in self._outstanding:
            completion.discard()
        self._outstanding.clear()
