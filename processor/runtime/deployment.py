"""Builds the subtasks of one attempt out of the plan and the restored checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from processor.contracts.chance import Chance
from processor.contracts.channel import ChannelReceiver, ChannelSender
from processor.contracts.clock import Clock
from processor.contracts.executor import Executor
from processor.contracts.file_store import FileStore
from processor.contracts.source import SourceContext
from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook
from processor.ids import JobName, SplitId, StepName, SubtaskId, key_groups_of
from processor.operators.event_time import EventTimeStamper
from processor.operators.operator import OperatorContext
from processor.operators.watermarks import SplitWatermarks
from processor.plan.execution import Chain, ChannelPlan, ExecutionPlan
from processor.plan.graph import EdgeKind, Step
from processor.plan.instantiate import instantiate
from processor.plan.subtasks import links, subtasks_of
from processor.protocol.messages import Report
from processor.protocol.worker_messages import Deploy
from processor.runtime.author_exit import author_exit
from processor.runtime.channel_ends import ChannelEnds
from processor.runtime.restored_channels import RestoredChannel, codecs_of, restored_channels
from processor.runtime.restoring import (
    bounded,
    processing_time_reached,
    restored_operator,
    restored_source,
)
from processor.settings.model import Settings
from processor.storage.layout import file_prefix
from processor.storage.outbox_files import OutboxFiles
from processor.task.back_pressure import BackPressure
from processor.task.channel_intake import ChannelIntake
from processor.task.in_flight import InFlightFiles
from processor.task.input_gate import InputChannel, InputGate
from processor.task.output_gate import (
    BroadcastOutput,
    InTurnOutput,
    KeyedOutput,
    Output,
    OutputGate,
    PartitionedOutput,
)
from processor.task.processing_clock import ProcessingClock
from processor.task.source_intake import EventTimeParts, SourceIntake, owner_of_split
from processor.task.subtask import Subtask, SubtaskParts
from processor.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What subtasks of an attempt share."""

    settings: Settings
    files: FileStore
    outboxes: OutboxFiles
    backend: StateBackend
    clock: Clock
    chance: Chance
    executor: Executor
    metrics: Metrics
    faults: FaultHook


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receiving:
    """The consumer's end of a channel."""

    receiver: ChannelReceiver
    producer: int
    begins: RestoredChannel

    def channel(self, input: int, plan: ChannelPlan) -> InputChannel:
        return InputChannel(
            input=input,
            receiver=self.receiver,
            edge=plan.name if plan.overtakable else None,
            producer=self.producer,
            watermark_ms=self.begins.watermark_ms,
            silent=self.begins.silent,
            adopted=len(self.begins.elements) if self.begins.adopted else 0,
        )


class Deployment:
    """One worker's part of an attempt's subtasks, with their ends of the channels."""

    def __init__(
        self,
        plan: ExecutionPlan,
        deploy: Deploy,
        around: Surroundings,
        report: Callable[[Report], None],
        ends: ChannelEnds,
    ) -> None:
        self._plan = plan
        self._deploy = deploy
        self._around = around
        self._report = report
        self._ends = ends
        checkpoint = around.settings.checkpoint
        self._alignment_timeout_ms = checkpoint.alignment_timeout if checkpoint.unaligned else None
        self._codecs = codecs_of(plan) if checkpoint.unaligned else {}
        self._senders: dict[tuple[int, SubtaskId], list[ChannelSender]] = {}
        self._receivers: dict[tuple[int, SubtaskId], list[_Receiving]] = {}

    def build(self) -> tuple[Subtask, ...]:
        """Producers before consumers, restored. What is open is closed when one fails."""
        restored = restored_channels(self._deploy.entry, self._plan, self._around.files, self._ends.here)
        for edge in range(len(self._plan.channels)):
            for link in links(self._plan, edge):
                begins = restored.get(link, RestoredChannel())
                ends = self._ends.of(link, begins.elements)
                if ends.sender is not None:
                    self._senders.setdefault((edge, link.producer), []).append(ends.sender)
                if ends.receiver is not None:
                    receiving = _Receiving(
                        receiver=ends.receiver, producer=link.producer.index, begins=begins
                    )
                    self._receivers.setdefault((edge, link.consumer), []).append(receiving)
        built: list[Subtask] = []
        try:
            for chain in self._plan.chains.values():
                for subtask in filter(self._ends.here, subtasks_of(chain)):
                    try:
                        built.append(self._subtask(chain, subtask))
                    except SystemExit as error:
                        raise author_exit(subtask, error) from error
        except BaseException:
            for done in reversed(built):
                done.close()
            raise
        return tuple(built)

    def _subtask(self, chain: Chain, id: SubtaskId) -> Subtask:
        around = self._around
        outputs = [self._output(output.edge, id) for output in chain.outputs]
        runner = instantiate(chain, outputs)
        clock = ProcessingClock(around.clock, processing_time_reached(self._deploy.entry))
        steps = {step.name: step for step in chain.steps}
        runner.open(lambda name: self._context(chain, id, steps[name], clock))
        subtask = Subtask(
            SubtaskParts(
                attempt=self._deploy.attempt,
                id=id,
                restored=self._deploy.entry.checkpoint,
                chain=runner,
                outputs=OutputGate(outputs),
                back_pressure=BackPressure(around.metrics.counter_of(chain.name)),
                executor=around.executor,
                report=self._report,
                clock=clock,
                faults=around.faults,
            )
        )
        try:
            if chain.steps[0].source is not None:
                self._connect_source(subtask, chain, clock)
            else:
                subtask.connect(self._channel_intake(subtask, chain))
        except BaseException:
            subtask.close()
            raise
        return subtask

    def _output(self, edge: int, producer: SubtaskId) -> Output:
        senders = self._senders[(edge, producer)]
        channel = self._plan.channels[edge]
        match channel.kind:
            case EdgeKind.KEYED:
                return KeyedOutput(senders, self._plan.max_parallelism)
            case EdgeKind.BROADCAST:
                return BroadcastOutput(senders)
            case EdgeKind.FORWARD:
                return InTurnOutput(senders)
            case EdgeKind.REBALANCE:
                return InTurnOutput(senders, first=producer.index)
            case EdgeKind.PARTITIONED:
                assert channel.partition is not None
                return PartitionedOutput(senders, channel.partition, channel.name.target)

    def _channel_intake(self, subtask: Subtask, chain: Chain) -> ChannelIntake:
        gate = InputGate(
            self._channels_into(chain, subtask.id), alignment_timeout_ms=self._alignment_timeout_ms
        )
        per_turn = self._around.settings.runtime.elements_per_turn
        if self._alignment_timeout_ms is None:
            return ChannelIntake(subtask, gate, elements_per_turn=per_turn)
        in_flight = InFlightFiles(
            files=self._around.files,
            file_prefix=file_prefix(self._deploy.attempt, subtask.id),
            token=self._around.chance.token,
            key_groups=key_groups_of(subtask.id.index, chain.parallelism, self._plan.max_parallelism),
            codecs=self._codecs,
        )
        return ChannelIntake(subtask, gate, elements_per_turn=per_turn, freeze=in_flight.freeze)

    def _channels_into(self, chain: Chain, consumer: SubtaskId) -> list[InputChannel]:
        return [
            receiving.channel(edge.input, self._plan.channels[edge.edge])
            for edge in chain.inputs
            for receiving in self._receivers.get((edge.edge, consumer), ())
        ]

    def _connect_source(self, subtask: Subtask, chain: Chain, clock: ProcessingClock) -> None:
        step = chain.steps[0]
        assert step.source is not None
        restored = restored_source(self._deploy.entry, step.name)
        splits = {**self._deploy.unconfirmed.get(step.name, {}), **restored.positions}
        intake = SourceIntake(
            subtask,
            step=step.name,
            reader=step.source.reader(source_context(self._plan.job, step, self._around)),
            event_time=self._event_time(chain, subtask.id, step, clock),
            records_max=self._around.settings.runtime.batch_records_max,
            bounded=bounded(step.source, splits),
            owns=_owner(chain.parallelism, subtask.id.index),
            count=self._around.metrics.counter_of(step.name),
            backlog_after_ms=self._around.settings.checkpoint.backlog_after,
        )
        subtask.connect(intake)
        mine = {
            split: position
            for split, position in sorted(splits.items())
            if owner_of_split(split, chain.parallelism) == subtask.id.index
        }
        intake.restore(mine, restored.watermarks)

    def _event_time(
        self, chain: Chain, id: SubtaskId, step: Step, clock: ProcessingClock
    ) -> EventTimeParts | None:
        if step.event_time is None:
            return None
        return EventTimeParts(
            stamper=EventTimeStamper(step.event_time.at, step.name, self._context(chain, id, step, clock)),
            watermarks=SplitWatermarks(
                disorder_ms=step.event_time.disorder_ms, idle_after_ms=step.event_time.idle_after_ms
            ),
        )

    def _context(self, chain: Chain, id: SubtaskId, step: Step, clock: ProcessingClock) -> OperatorContext:
        around = self._around
        key_groups = key_groups_of(id.index, chain.parallelism, self._plan.max_parallelism)
        return OperatorContext(
            job=self._plan.job,
            step=step.name,
            subtask_index=id.index,
            parallelism=chain.parallelism,
            max_parallelism=self._plan.max_parallelism,
            key_groups=key_groups,
            backend=around.backend,
            files=around.files,
            outboxes=around.outboxes,
            file_prefix=file_prefix(self._deploy.attempt, id),
            settings=around.settings.plugins,
            policy=step.policy,
            clock=clock,
            token=around.chance.token,
            count=around.metrics.counter_of(step.name),
            restored=restored_operator(self._deploy.entry.subtasks, step.name, key_groups),
            processing_time_ms=processing_time_reached(self._deploy.entry),
            outbox_bytes_max=around.settings.runtime.outbox_bytes_max,
            faults=around.faults,
        )


def source_context(job: JobName, step: Step, around: Surroundings) -> SourceContext:
    """What a source step is told when it is opened."""
    return SourceContext(
        job=job,
        step=step.name,
        settings=around.settings.plugins,
        policy=step.policy,
        clock=around.clock,
        count=around.metrics.counter_of(step.name),
        faults=around.faults,
    )


def _owner(parallelism: int, index: int) -> Callable[[SplitId], bool]:
    return lambda split: owner_of_split(split, parallelism) == index


def source_steps(plan: ExecutionPlan) -> tuple[tuple[StepName, Step, Chain], ...]:
    """Every source with its step and chain."""
    return tuple(
        (chain.steps[0].name, chain.steps[0], chain)
        for chain in plan.chains.values()
        if chain.steps[0].source is not None
    )
