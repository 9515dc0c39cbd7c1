"""The layout of a job: chains, their subtasks, and the channels between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from processor.contracts.checkpoint_hook import CheckpointHook
from processor.ids import EdgeName, JobName, StepName
from processor.plan.graph import EdgeKind, Step
from processor.protocol.entries import JobShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInput:
    """One edge into a chain. It has one channel for each subtask of the producing chain that sends here."""

    edge: int
    """Index into ExecutionPlan.channels."""
    input: int
    """Which input of the chain's first operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOutput:
    """One edge out of a chain: the step and output tag whose batches go there."""

    edge: int
    step: StepName
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerEdge:
    """From one step to the next inside a chain: a call, no channel."""

    origin: StepName
    output: str
    target: StepName
    input: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Steps that run in one thread without a channel between them; a tree whose root is the first step."""

    name: StepName
    parallelism: int
    steps: tuple[Step, ...]
    """In an order in which every step comes after the one that feeds it. Steps[0] may have a source."""
    inner: tuple[InnerEdge, ...]
    inputs: tuple[ChainInput, ...]
    outputs: tuple[ChainOutput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPlan:
    """One edge between two chains."""

    producer: StepName
    consumer: StepName
    """Names of chains."""
    kind: EdgeKind
    value_type: Any
    name: EdgeName
    overtakable: bool
    """Barriers may overtake the records on it. Only on edges that are keyed at any parallelism: a record on any
    other belongs to no key group, so nobody could say to whom it goes when it is restored (R27)."""
    partition: Callable[[Any], int] | None = None
    """Of a PARTITIONED edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPlan:
    job: JobName
    max_parallelism: int
    chains: Mapping[StepName, Chain]
    """Producers before consumers."""
    channels: tuple[ChannelPlan, ...]
    shape: JobShape
    hook_makers: Mapping[str, Callable[[], CheckpointHook]] = field(default_factory=dict)

    def hooks(self) -> dict[str, CheckpointHook]:
        """Fresh ones for an attempt, by name."""
        return {name: make() for name, make in self.hook_makers.items()}

    def sinks(self) -> tuple[tuple[Step, int], ...]:
        """Every sink step with the parallelism it publishes with."""
        return tuple(
            (step, chain.parallelism)
            for chain in self.chains.values()
            for step in chain.steps
            if step.sink is not None
        )

    def sources(self) -> tuple[Step, ...]:
        return tuple(s for c in self.chains.values() for s in c.steps if s.source is not None)
