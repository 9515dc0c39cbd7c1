"""The restore matrix: a job stopped with a savepoint and started from it, over every pair of shapes.

A cell is a job, the savepoint's format, and on either side of it the backend, the parallelism, and whether the steps
behind a keyed one are in its chain or in chains of their own. Faults come before, while and after it is restored.

    python -m tests.simulation.matrix               all cells, some minutes
    python -m tests.simulation.matrix --pairwise    so many that any two choices meet in one
    python -m tests.simulation.matrix --cell 17 --trace
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from random import Random
from typing import Final

from connectors.formats.text import Text
from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from processor import Job
from processor.audit.expectation import keyed_count
from processor.plan.graph import JobGraph
from processor.runtime.start_options import StartOptions
from processor.simulation.case import Case, Script
from processor.simulation.operator import Operator
from processor.simulation.run import Result, run_seed
from tests.simulation.chosen import faults_of, workers_of
from tests.simulation.jobs import (
    JOBS,
    MANY_RECORDS,
    SAVEPOINT,
    counted_in_output,
    first_word,
    key_of,
    make_case,
    numbered,
    unaligned,
    word,
)
from tests.simulation.kinds import KINDS, Collect, CountInEveryKind, Tell
from tests.simulation.shape import Shape, all_shapes, laid_out

BEFORE_MS: Final = (300, 6_000)
"""How long the job runs before it is stopped."""

UNALIGNED: Final = 0.3
"""Of the cells; a savepoint is aligned nevertheless."""

PROGRESS_S: Final = 10.0


def every_state(chance: Random) -> Case:
    """Each kind of keyed state, between steps with operator state of both kinds in front of it and behind it; spread
    on the way in every way there is."""
    job = Job("every-state")
    held = job.read("read", KafkaSource("in", Text())).transform("collect", Collect)
    dealt = held.rebalance("spread").partition_by("deal", number_of)
    counted = dealt.key_by("by-key", key_of).process("count", CountInEveryKind)
    counted.transform("tell", Tell).write("write", KafkaSink("out", Text(), key=first_word))
    in_every_kind = keyed_count(
        keys=lambda key, value: [f"{word(value, 2)}/{kind}" for kind in KINDS], counted=counted_in_output
    )
    inputs = numbered(chance, "read", records=MANY_RECORDS)
    return make_case(job, chance, audits=[in_every_kind], inputs=inputs)


def number_of(value: str) -> int:
    return int(value.split()[1])


JOBS_RESTORED: Final = {
    "every-state": every_state,
    **{name: JOBS[name] for name in ("timers", "expiring", "broadcast", "connect")},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    number: int
    """Its seed, too."""
    job: str
    native: bool
    before: Shape
    after: Shape

    def __str__(self) -> str:
        form = "native" if self.native else "canonical"
        return f"{self.number}: {self.job} {self.before} {form} {self.after}"

    @property
    def choices(self) -> tuple[object, ...]:
        return self.job, self.native, *self.before.choices, *self.after.choices


def all_cells() -> Sequence[Cell]:
    """Numbered from 1."""
    shapes = all_shapes()
    chosen = product(JOBS_RESTORED, (False, True), shapes, shapes)
    return [
        Cell(number=number, job=job, native=native, before=before, after=after)
        for number, (job, native, before, after) in enumerate(chosen, start=1)
    ]


def pairwise(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Some of them, so that any two choices that meet in a cell meet in one of these; each time what adds most."""
    shuffled = Random("pairs").sample(cells, len(cells))  # so that some of these are no special ones
    open_pairs = {pair for cell in cells for pair in _pairs(cell)}
    taken = []
    while open_pairs:
        best = max(shuffled, key=lambda cell: len(open_pairs & _pairs(cell)))
        open_pairs -= _pairs(best)
        taken.append(best)
    return taken


def _pairs(cell: Cell) -> set[tuple[object, ...]]:
    return set(combinations(enumerate(cell.choices), 2))


def script_of(cell: Cell, layouts: Mapping[Shape, JobGraph], before_ms: int) -> Script:
    """Of the cell's operator."""

    def script(operator: Operator) -> None:
        operator.start(graph=layouts[cell.before], backend=cell.before.backend)
        operator.wait(before_ms)
        origin = operator.stop_with_savepoint(SAVEPOINT, native=cell.native)
        operator.start(StartOptions(origin=origin), graph=layouts[cell.after], backend=cell.after.backend)
        operator.after_faults()
        operator.drain()
        operator.stop_with_drain()
        operator.quiet()

    return script


def case_of(cell: Cell) -> Case:
    chance = Random(f"{cell.number}/cell")
    case = JOBS_RESTORED[cell.job](chance)
    layouts = {shape: laid_out(case.graph, shape) for shape in (cell.before, cell.after)}
    case = replace(case, script=script_of(cell, layouts, chance.randrange(*BEFORE_MS)))
    return unaligned(case, chance) if chance.random() < UNALIGNED else case


def run_cell(cell: Cell, *, level: str = "heavy", keep_trace: bool = False) -> Result:
    """One cell, audited."""
    seed = cell.number
    return run_seed(
        case_of(cell), seed, faults_of(seed, level), workers=workers_of(seed), keep_trace=keep_trace
    )


def _results(cells: Sequence[Cell], processes: int, level: str) -> Iterator[tuple[Cell, Result]]:
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        yield from zip(cells, pool.imap(partial(run_cell, level=level), cells, chunksize=4), strict=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.matrix", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--pairwise", action="store_true", help="only so many that any two choices meet")
    parser.add_argument("--cell", type=int, help="this one only")
    parser.add_argument("--level", default="heavy", help="of faults: heavy, light, none")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--trace", action="store_true", help="with --cell: print who did what when")
    asked = parser.parse_args(arguments)
    cells = all_cells()
    if asked.cell is not None:
        result = run_cell(cells[asked.cell - 1], level=asked.level, keep_trace=asked.trace)
        print("\n".join((*result.trace, str(cells[asked.cell - 1]), *result.problems)))
        return 0 if result.good else 1
    if asked.pairwise:
        cells = pairwise(cells)
    return _run_all(cells, asked.processes, asked.level)


def _run_all(cells: Sequence[Cell], processes: int, level: str) -> int:
    began = told = time.monotonic()
    failed = faults = 0
    for number, (cell, result) in enumerate(_results(cells, processes, level), start=1):
        faults += sum(result.faults.values())
        if not result.good:
            failed += 1
            print(f"{cell} FAILED; again by:\n  python -m tests.simulation.matrix --cell {cell.number}")
            print("  " + "\n  ".join(result.problems), flush=True)
        if time.monotonic() - told > PROGRESS_S:
            told = time.monotonic()
            print(f"  {number} of {len(cells)} cells, {faults} faults, {failed} failed", flush=True)
    seconds = time.monotonic() - began
    print(f"{len(cells)} cells, {faults} faults, {failed} failed, {seconds:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
