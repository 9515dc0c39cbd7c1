"""Runs one seed of a case, and says what it found."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

from processor.simulation.case import Case
from processor.simulation.faults import Faults
from processor.simulation.injection import NO_LIMIT, Limit
from processor.simulation.simulation import STEPS_MAX, Simulation
from processor.simulation.verdict import problems
from processor.simulation.world import StepLimitReached

TRACE_END_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one seed."""

    seed: int
    job: str
    problems: tuple[str, ...]
    """Empty when everything held."""
    steps: int
    simulated_ms: int
    faults: Mapping[str, int]
    """How many of each kind happened."""
    cells: Mapping[tuple[str, str, str], int]
    """Struck points: (point, victim, act)."""
    passed_points: Mapping[str, int]
    met: Mapping[str, int]
    """What faults have led to between workers and their coordinator, in words."""
    numbered: int
    """Faults that were drawn, those that a limit kept away included."""
    digest: str
    trace: tuple[str, ...] = field(default=(), repr=False)

    @property
    def good(self) -> bool:
        return not self.problems


def run_seed(
    case: Case,
    seed: int,
    faults: Faults,
    *,
    limit: Limit = NO_LIMIT,
    steps_max: int = STEPS_MAX,
    keep_trace: bool = False,
    over_rocksdb: bool = False,
    workers: int = 1,
) -> Result:
    """One run and its audits. What goes wrong is in the result; nothing is raised. ``over_rocksdb``: most of its
    processes keep their state there, and their checkpoints are its own files."""
    collecting = gc.isenabled()
    gc.disable()  # the collector would unwind at moments of its own what a run has left
    try:
        simulation = Simulation(
            case,
            seed,
            faults,
            limit=limit,
            steps_max=steps_max,
            keep_trace=keep_trace,
            over_rocksdb=over_rocksdb,
            workers=workers,
        )
        found = _run(simulation)
    finally:
        if collecting:
            gc.enable()
    world, injection = simulation.world, simulation.injection
    return Result(
        seed=seed,
        job=simulation.job,
        problems=tuple(found),
        steps=world.steps,
        simulated_ms=world.now_ms,
        faults=dict(injection.by_kind),
        cells=dict(injection.cells),
        passed_points={point.value: times for point, times in injection.passed.items()},
        met=dict(injection.met),
        numbered=injection.numbered,
        digest=world.trace.digest,
        trace=world.trace.lines,
    )


def _run(simulation: Simulation) -> list[str]:
    try:
        simulation.run()
        return problems(simulation)
    except StepLimitReached as hanging:
        return [f"it hangs: {hanging}", *(f"loud: {end.error!r}" for end in simulation.loud())]
    except Exception as error:
        return ["".join(traceback.format_exception(error))]
