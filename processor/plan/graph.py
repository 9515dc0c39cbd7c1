"""The graph of a job: steps and edges, as the author's calls made it. It runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from processor.contracts.checkpoint_hook import CheckpointHook
from processor.contracts.policy import Fail, Policy
from processor.contracts.sink import AnySink, Guarantee
from processor.contracts.source import Source
from processor.ids import MAX_PARALLELISM_DEFAULT, JobName, StepName
from processor.operators.operator import MAIN_OUTPUT, AnyOperator
from processor.state.expiry import Expiry

__all__ = ["MAIN_OUTPUT", "Edge", "EdgeKind", "EventTime", "JobGraph", "Step"]


class EdgeKind(StrEnum):
    FORWARD = "forward"
    """Same subtask index; chained where parallelism allows, else whole batches, among neighbours."""
    KEYED = "keyed"
    """By key group. The producing side carries keys in its batches."""
    BROADCAST = "broadcast"
    """Every batch to every subtask."""
    REBALANCE = "rebalance"
    """Whole batches, to all subtasks in turn; never chained."""
    PARTITIONED = "partitioned"
    """Each record to the subtask that a function of the author's gives; never chained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    origin: StepName
    output: str = MAIN_OUTPUT
    target: StepName
    input: int = 0
    kind: EdgeKind = EdgeKind.FORWARD
    value_type: Any = None
    """Type of the values at run time (for codecs), None for plain values of unknown type."""
    keyed: bool = False
    """Batches on this edge carry keys; always true of a KEYED edge."""
    partition: Callable[[Any], int] | None = None
    """Of a PARTITIONED edge: from a value to a number, which modulo the subtasks is the index of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """How a source step gets its event time: bounded disorder per split."""

    at: Callable[[Any], Any]
    """From a value to milliseconds or an aware datetime."""
    disorder_ms: int
    idle_after_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. Exactly one of ``source``, ``make`` is given; a sink step has ``make`` and ``sink``."""

    name: StepName
    kind: str
    """For people: "read", "map", "filter", "key by", "process", "connect", "union", "write", and so on."""
    inputs: tuple[str, ...] = ()
    """For people: names of its inputs, where it matters which is which."""
    source: Source[Any] | None = None
    event_time: EventTime | None = None
    make: Callable[[], AnyOperator] | None = None
    """A fresh operator for each subtask."""
    sink: AnySink | None = None
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    """What the author asks of the sink; a sink that gives less is refused before anything runs."""
    policy: Policy = field(default_factory=Fail)
    parallelism: int | None = None
    """None: the job's."""
    states: Mapping[str, str] = field(default_factory=dict)
    """Declared states with a description of their type; empty for steps without keyed state."""
    expiries: Mapping[str, Expiry] = field(default_factory=dict)
    """Of its states, those that expire, with when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGraph:
    name: JobName
    steps: Mapping[StepName, Step]
    """In the order in which the author named them; every edge goes from an earlier to a later step."""
    edges: tuple[Edge, ...]
    parallelism: int | None = None
    """The author's choice; None: the setting ``runtime.parallelism``."""
    max_parallelism: int = MAX_PARALLELISM_DEFAULT
    hooks: Mapping[str, Callable[[], CheckpointHook]] = field(default_factory=dict)
    """What of the author's takes part in checkpoints, by name; a fresh one for each attempt."""
    audit: Any = None
    """The audit the author named for ``processor verify``, if any."""
