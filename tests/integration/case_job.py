"""A job of the simulation, as `processor run tests.integration.case_job:build` finds it: in the environment."""

from __future__ import annotations

import os
from typing import Final

from processor import Job
from processor.plan.graph import JobGraph
from tests.integration.simulated_jobs import case_of
from tests.simulation.shape import Shape, laid_out

CASE: Final = "CASE_JOB"
"""Variable: the job's name, its seed, and how its steps are laid out, such as memory-3-apart, or a hyphen."""

NO_SHAPE: Final = "-"


class CaseJob(Job):
    """A job whose graph is there already."""

    def __init__(self, graph: JobGraph) -> None:
        super().__init__(graph.name)
        self._graph = graph

    def graph(self) -> JobGraph:
        return self._graph


def build() -> Job:
    name, seed, shape = os.environ[CASE].split()
    graph = case_of(name, int(seed)).graph
    return CaseJob(graph if shape == NO_SHAPE else laid_out(graph, Shape.parse(shape)))
