"""What one job can be laid out as: over which store, in how many subtasks, in which chains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Self

from processor.ids import StepName
from processor.plan.graph import EdgeKind, JobGraph
from processor.settings.model import StateBackendName

BACKENDS: Final = (StateBackendName.MEMORY, StateBackendName.ROCKSDB)
PARALLELISMS: Final = (1, 2, 3, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    backend: StateBackendName
    parallelism: int
    chained: bool
    """Whether what can be chained is, or what stands behind a keyed step is in a chain of its own."""

    def __str__(self) -> str:
        """A word that ``parse`` reads."""
        return f"{self.backend}-{self.parallelism}-{'chained' if self.chained else 'apart'}"

    @classmethod
    def parse(cls, word: str) -> Self:
        backend, parallelism, chains = word.split("-")
        return cls(
            backend=StateBackendName(backend), parallelism=int(parallelism), chained=chains == "chained"
        )

    @property
    def choices(self) -> tuple[object, ...]:
        return self.backend, self.parallelism, self.chained


def all_shapes() -> list[Shape]:
    return [
        Shape(backend=backend, parallelism=parallelism, chained=chained)
        for backend, parallelism, chained in product(BACKENDS, PARALLELISMS, (True, False))
    ]


def laid_out(graph: JobGraph, shape: Shape) -> JobGraph:
    """The job's steps in this shape. Out of a chain are taken those steps for which records keep the order of their
    keys on the way to them."""
    other = shape.parallelism % max(PARALLELISMS) + 1
    parallelism: dict[StepName, int] = dict.fromkeys(graph.steps, shape.parallelism)
    for edge in graph.edges if not shape.chained else ():
        if edge.kind is EdgeKind.FORWARD and edge.keyed:
            parallelism[edge.target] = other
        elif edge.kind is EdgeKind.FORWARD:
            parallelism[edge.target] = parallelism[edge.origin]
    return replace(
        graph,
        steps={name: replace(step, parallelism=parallelism[name]) for name, step in graph.steps.items()},
    )
