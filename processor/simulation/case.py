"""What is simulated: a job, its input, what its output must be, and what its operator does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from processor.audit.expectation import Audit
from processor.fault_points import FaultPoint
from processor.plan.graph import JobGraph
from processor.simulation.executor import TURN_US_MAX

if TYPE_CHECKING:
    from processor.contracts.plugin import Plugin
    from processor.simulation.operator import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One record, for one part of what a source step reads."""

    step: str
    part: int
    key: bytes | None
    value: bytes | None
    time_ms: int | None = None


Row = tuple[bytes | None, bytes | None]

Script = Callable[["Operator"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run, before the seed has chosen faults and pace."""

    graph: JobGraph
    plugins: Mapping[str, tuple[Plugin, Any]]
    """The connectors that it uses, by name, each with its section of the settings."""
    inputs: Sequence[Input]
    script: Script
    audits: Sequence[Audit]
    parts: Mapping[str, int] = field(default_factory=dict)
    """In how many parts sources and sinks are made, by step; PARTS where nothing is said."""
    parallelism: int = 1
    """For steps that do not say."""
    expected: Mapping[str, Counter[Row]] = field(default_factory=dict)
    """Keys and values that sink steps must have written, in any order."""
    runtime: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the section ``runtime`` that are not the seed's choice."""
    rare_points: Sequence[FaultPoint] = ()
    """Points that it passes once at most: many of its strikes are meant for these, or they would not be met."""
    checkpoint: Mapping[str, Any] = field(default_factory=dict)
    """Of the section ``checkpoint``, likewise."""
    turn_us_max: int = TURN_US_MAX
    """Longest time of one round over all steps: large for slow ones."""
    input_first: bool = False
    """All input is there before the job starts: for sources that end."""


PARTS = 2
