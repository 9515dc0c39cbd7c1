"""Runs seeds, shows how far it is, and reports what was met.

    python -m tests.simulation.seeds --seeds 1000
    python -m tests.simulation.seeds --first 17 --seeds 1 --trace
    python -m tests.simulation.seeds --seeds 10000 --processes 2 --report tests/simulation/report.md

One seed in a hundred is run twice, and must give the same trace.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from processor.fault_points import FaultPoint
from processor.simulation.faults import VICTIM, Act
from processor.simulation.injection import NO_LIMIT, Limit, applies
from processor.simulation.run import Result
from tests.simulation.chosen import LEVELS, command, job_of, run
from tests.simulation.jobs import JOBS

TWICE_EVERY = 100
COLLECT_EVERY = 20
PROGRESS_S = 10.0
CHUNK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    seed: int
    job: str
    level: str
    limit: Limit = NO_LIMIT
    keep_trace: bool = False
    workers: int | None = None
    """Instead of those that the seed stands for."""


@dataclass(slots=True)
class Summary:
    """Everything of many seeds added up."""

    level: str
    seeds: int = 0
    steps: int = 0
    simulated_ms: int = 0
    jobs: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    cells: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    failing: list[tuple[Result, str]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def add(self, task: Task, result: Result) -> None:
        self.seeds += 1
        self.steps += result.steps
        self.simulated_ms += result.simulated_ms
        self.jobs[task.job] += 1
        self.faults.update(result.faults)
        self.cells.update(result.cells)
        self.passed.update(result.passed_points)
        self.met.update(result.met)
        if not result.good:
            self.failing.append(
                (
                    result,
                    command(
                        task.seed, job=task.job, level=task.level, limit=task.limit, workers=task.workers
                    ),
                )
            )

    def line(self) -> str:
        seconds = max(0.001, time.monotonic() - self.began)
        return (
            f"{self.seeds} seeds, {self.steps} steps, {sum(self.faults.values())} faults, "
            f"{self.simulated_ms / 3_600_000:.1f} simulated hours, {self.seeds / seconds:.1f} seeds/s, "
            f"{len(self.failing)} failed"
        )

    def report(self) -> Iterator[str]:
        """Markdown."""
        yield f"# Simulation: {self.line()}"
        yield ""
        yield f"Level of faults: {self.level}."
        yield from _table("job", "seeds", self.jobs)
        yield from _table("fault", "times", self.faults)
        yield from _table("between workers", "times", self.met)
        acts = [(VICTIM[act], act.value) for act in Act]
        yield ""
        yield "| point | passed | " + " | ".join(f"{victim}: {act}" for victim, act in acts) + " |"
        yield "|---|" + "---:|" * (len(acts) + 1)
        for point in FaultPoint:
            struck = " | ".join(
                str(self.cells.get((point.value, VICTIM[act], act.value), 0))
                if applies(point, act)
                else "n/a"
                for act in Act
            )
            yield f"| {point} | {self.passed.get(point.value, 0)} | {struck} |"
        missing = self.missing()
        yield ""
        yield f"Never struck: {', '.join(missing)}." if missing else "Every cell that applies was struck."

    def missing(self) -> list[str]:
        """Cells that apply and were not hit."""
        return [
            f"{act} at {point}"
            for point in FaultPoint
            for act in Act
            if applies(point, act) and not self.cells.get((point.value, VICTIM[act], act.value))
        ]


def _table(what: str, number: str, counted: Counter[str]) -> Iterator[str]:
    yield ""
    yield f"| {what} | {number} |"
    yield "|---|---:|"
    for name, times in sorted(counted.items()):
        yield f"| {name} | {times} |"


def run_task(task: Task) -> tuple[Task, Result]:
    """In a worker process. Every so often the seed runs twice."""
    chosen = partial(run, task.seed, job=task.job, level=task.level, limit=task.limit, workers=task.workers)
    result = chosen(keep_trace=task.keep_trace)
    if task.seed % TWICE_EVERY == 0:
        again = chosen()
        if again.digest != result.digest:
            object.__setattr__(
                result,
                "problems",
                (*result.problems, f"a second run differs: {again.digest}, {result.digest}"),
            )
    if task.seed % COLLECT_EVERY == 0:
        gc.collect()
    return task, result


def results(tasks: Sequence[Task], processes: int) -> Iterator[tuple[Task, Result]]:
    gc.collect()
    gc.freeze()  # what was imported is not looked at again
    if processes <= 1:
        yield from map(run_task, tasks)
        return
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        yield from pool.imap_unordered(run_task, tasks, chunksize=CHUNK)


def main(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(arguments)
    limit = Limit(
        first=asked.faults_first,
        without=frozenset(int(number) for number in asked.faults_without.split(",") if number),
    )
    tasks = [
        Task(
            seed=seed,
            job=asked.job or job_of(seed),
            level=asked.level,
            limit=limit,
            keep_trace=asked.trace,
            workers=asked.workers,
        )
        for seed in range(asked.first, asked.first + asked.seeds)
    ]
    summary = Summary(asked.level)
    told = time.monotonic()
    for task, result in results(tasks, asked.processes):
        summary.add(task, result)
        for line in result.trace:
            print(line)
        if not result.good:
            print(f"seed {task.seed} of job {task.job} FAILED; again by:\n  {summary.failing[-1][1]}")
            for problem in result.problems:
                print("  " + problem.replace("\n", "\n  "))
        if time.monotonic() - told > PROGRESS_S:
            told = time.monotonic()
            print(f"  {summary.line()}", flush=True)
        if asked.minutes and time.monotonic() - summary.began > asked.minutes * 60:
            break
    text = "\n".join(summary.report())
    if asked.report:
        Path(asked.report).write_text(text + "\n")
    elif asked.seeds > 1:
        print(text)
    print(summary.line())
    if asked.seeds > 1:
        print(f"{len(summary.missing())} cells of point and act were not struck")
    for _, again in summary.failing:
        print(f"FAILED: {again}")
    return 1 if summary.failing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.seeds", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--minutes", type=float, help="stop after so long, and report what has run")
    parser.add_argument("--first", type=int, default=1, help="the first one")
    parser.add_argument("--job", choices=list(JOBS), help="this job instead of the seed's")
    parser.add_argument("--level", choices=LEVELS, default="heavy", help="of faults")
    parser.add_argument("--workers", type=int, help="processes that share the job, instead of the seed's")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--trace", action="store_true", help="print who did what when")
    parser.add_argument("--report", help="a file for the report, instead of the terminal")
    parser.add_argument("--faults-first", type=int, help="let only so many faults happen")
    parser.add_argument("--faults-without", default="", help="numbers of faults that do not happen: 3,7")
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
