"""Takes a subtask's snapshots: the cut in the subtask's thread, the completion in the background (B3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from processor.contracts.clock import Clock
from processor.contracts.completion import Completion
from processor.contracts.executor import Executor
from processor.errors import EngineBug
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import Attempt, CheckpointId, SubtaskId
from processor.operators.operator import OperatorSnapshot
from processor.protocol.entries import ChannelFile, SourceState, SubtaskSnapshot
from processor.protocol.messages import Acknowledged, AcknowledgementMetrics, Declined, Report
from processor.protocol.subtask_checkpoint import SubtaskCheckpoint
from processor.task.in_flight import ChannelSnapshot, nothing_in_flight

SendReport = Callable[[Report], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutFacts:
    """What of a snapshot is known at the cut itself."""

    checkpoint: CheckpointId
    stop: bool
    built_on: CheckpointId
    """The newest checkpoint known to be decided."""
    backlog: bool
    """A source's: it reads a backlog."""
    alignment_ms: int
    sources: tuple[SourceState, ...]
    processing_time_ms: int
    finished: bool
    overtaken: bool = False
    freeze: Callable[[], ChannelSnapshot] = nothing_in_flight


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    operators: OperatorSnapshot
    channels: tuple[ChannelFile, ...]


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
        self._heard_ms: dict[CheckpointId, int] = {}
        """When it was told of checkpoints that it has not cut."""
        self._listed: frozenset[str] = frozenset()
        """Files of state in the newest snapshot."""

    def heard(self, checkpoint: CheckpointId) -> None:
        """The order for a checkpoint is here; its barrier may still be on the way."""
        self._heard_ms.setdefault(checkpoint, self._clock.monotonic_ms())

    def cut(self, facts: CutFacts, cut: Callable[[CheckpointId], Completion[OperatorSnapshot]]) -> None:
        """The synchronous part: bounded, without I/O."""
        started_ms = self._clock.monotonic_ms()
        self._part.cut(facts.checkpoint, stop=facts.stop)
        start_delay_ms = self._start_delay_ms(facts, started_ms)
        in_flight = facts.freeze()
        completion = cut(facts.checkpoint)
        self._outstanding.append(completion)
        self._faults(FaultPoint.CUT_TAKEN)
        cut_ms = self._clock.monotonic_ms()

        def run() -> _Written:
            channels = in_flight.run()
            operators = completion.run()
            self._faults(FaultPoint.ALL_WRITTEN_NOT_ACKNOWLEDGED)
            return _Written(operators=operators, channels=channels)

        def written(result: _Written) -> None:
            self._outstanding.remove(completion)
            snapshot = _snapshot(self._subtask, facts, result)
            metrics = replace(
                self._sizes(snapshot),
                start_delay_ms=start_delay_ms,
                alignment_ms=facts.alignment_ms,
                synchronous_ms=cut_ms - started_ms,
                asynchronous_ms=self._clock.monotonic_ms() - cut_ms,
                overtaken=facts.overtaken,
            )
            # One that was aborted is acknowledged too: its files are garbage the coordinator must hear of (R22).
            self._report(
                Acknowledged(
                    attempt=self._attempt,
                    checkpoint=facts.checkpoint,
                    snapshot=snapshot,
                    built_on=facts.built_on,
                    backlog=facts.backlog,
                    metrics=metrics,
                )
            )

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

    def _sizes(self, snapshot: SubtaskSnapshot) -> AcknowledgementMetrics:
        held = [file for state in (*snapshot.keyed, *snapshot.operators) for file in state.files()]
        new = [file for file in held if file.name not in self._listed]
        self._listed = frozenset(file.name for file in held)
        return AcknowledgementMetrics(
            state_bytes=sum(file.bytes for file in held),
            new_state_bytes=sum(file.bytes for file in new),
            channel_records=sum(channel.records for channel in snapshot.channels),
            channel_bytes=sum(channel.file.bytes for channel in snapshot.channels),
            outbox_bytes=sum(outbox.file.bytes for outbox in snapshot.outboxes),
            files=len(snapshot.files()),
        )

    def _start_delay_ms(self, facts: CutFacts, now_ms: int) -> int:
        """From the order to the first barrier. What was heard of older checkpoints is of no use any more."""
        heard_ms = self._heard_ms.get(facts.checkpoint)
        self._heard_ms = {c: at_ms for c, at_ms in self._heard_ms.items() if c > facts.checkpoint}
        return 0 if heard_ms is None else max(0, now_ms - facts.alignment_ms - heard_ms)

    def close(self) -> None:
        """The attempt ends: give up what is still being written."""
        for completion in self._outstanding:
            completion.discard()
        self._outstanding.clear()


def _snapshot(subtask: SubtaskId, facts: CutFacts, written: _Written) -> SubtaskSnapshot:
    return SubtaskSnapshot(
        subtask=subtask,
        keyed=written.operators.keyed,
        operators=written.operators.operators,
        sources=facts.sources,
        outboxes=written.operators.outboxes,
        channels=written.channels,
        event_times=written.operators.event_times,
        processing_time_ms=facts.processing_time_ms,
        finished=facts.finished,
    )
