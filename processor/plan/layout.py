"""A job as it is laid out at one parallelism, and how it would be at another."""

from __future__ import annotations

from dataclasses import dataclass

from processor.errors import JobError
from processor.plan.chaining import plan as lay_out
from processor.plan.execution import ExecutionPlan
from processor.plan.graph import JobGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Made by ``at``."""

    graph: JobGraph
    parallelism: int
    """Of steps that do not say themselves."""
    plan: ExecutionPlan

    @classmethod
    def at(cls, graph: JobGraph, parallelism: int) -> Layout:
        """Raises JobError for a parallelism outside 1 … the job's maximum."""
        return cls(graph=graph, parallelism=parallelism, plan=lay_out(graph, parallelism))

    def rescaled(self, parallelism: int) -> Layout:
        """Raises JobError also when nothing would change."""
        other = Layout.at(self.graph, parallelism)
        if other.plan.shape.parallelism == self.plan.shape.parallelism:
            raise JobError(
                f"the job would run as it does: at parallelism {parallelism} no step has another number of subtasks.",
                remedy="Name another parallelism; a step whose code names its own keeps it.",
            )
        return other
