"""Runs seeds under a mutant until one of them shows it."""

from __future__ import annotations

import gc
import json
import multiprocessing
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from processor.simulation.run import Result, run_seed
from tests.simulation.chosen import case_of, faults_of, job_of
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.mutant import Mutant, applied

LEVEL: Final = "heavy"
STEPS_MAX: Final = 80_000
"""A run that hangs is known sooner; what is sound needs a third of that."""

COLLECT_EVERY: Final = 20
SHOWN_CHARS: Final = 90

CAUGHT_FILE: Final = Path(__file__).with_name("caught.json")
"""For each mutant a seed that shows it, written by ``make mutants``."""

SLIPS: Final = ("NameError", "AttributeError", "TypeError", "UnboundLocalError", "ImportError")
"""Errors of a mutant that is no program: such a one shows nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A seed, and the job it was run with: what a seed chooses changes when there are more jobs."""

    seed: int
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunted:
    """What became of one mutant."""

    name: str
    seeds: int
    """How many were run, the one that shows it included."""
    shown: Shown | None = None
    """None: it survived."""
    by: str = ""
    """The invariant that caught it."""
    slip: str = ""
    """Nothing is shown: the mutant is not a program, or the seed fails without it."""

    @property
    def good(self) -> bool:
        return self.shown is not None and not self.slip


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """One mutant, and the runs to try it with, in order."""

    name: str
    runs: Sequence[Shown]


def first_seeds(mutant: Mutant, seeds: int) -> list[Shown]:
    """Seeds 1 to so many, each with the mutant's job or the one it chooses."""
    return [Shown(seed=seed, job=mutant.job or job_of(seed)) for seed in range(1, seeds + 1)]


def hunt(hunted: Hunt) -> Hunted:
    """In a process of its own: what a mutant leaves behind meets nobody else."""
    mutant = MUTANTS[hunted.name]
    for number, tried in enumerate(hunted.runs, 1):
        with applied(mutant):
            result = run_with(mutant, tried)
        if not result.good:
            slip = next((slip for slip in SLIPS if any(slip in problem for problem in result.problems)), "")
            if not slip and not run_with(mutant, tried).good:
                slip = "the seed fails without the mutant, too"
            return Hunted(
                name=hunted.name,
                seeds=number,
                shown=tried,
                by=caught_by(result),
                slip=f"{slip}: {result.problems[0]}" if slip else "",
            )
        if number % COLLECT_EVERY == 0:
            gc.collect()
    return Hunted(name=hunted.name, seeds=len(hunted.runs))


def run_with(mutant: Mutant, tried: Shown) -> Result:
    """One run with the faults that the mutant asks for, or those of the seed."""
    faults = mutant.faults or faults_of(tried.seed, LEVEL)
    return run_seed(
        case_of(tried.seed, tried.job),
        tried.seed,
        faults,
        steps_max=STEPS_MAX,
        over_rocksdb=mutant.over_rocksdb,
        workers=mutant.workers,
    )


def hunt_all(hunts: Iterable[Hunt], processes: int) -> Iterator[Hunted]:
    """In the order in which they are done."""
    gc.collect()
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(hunt, hunts, chunksize=1)


def known() -> Mapping[str, Shown]:
    """What CAUGHT_FILE says."""
    if not CAUGHT_FILE.exists():
        return {}
    return {name: Shown(**shown) for name, shown in json.loads(CAUGHT_FILE.read_text()).items()}


def remember(found: Iterable[Hunted]) -> None:
    """Write CAUGHT_FILE anew with what was found; of mutants that were not hunted it keeps what it says."""
    kept = {name: shown for name, shown in known().items() if name in MUTANTS}
    kept |= {hunted.name: hunted.shown for hunted in found if hunted.shown is not None and hunted.good}
    lines = {name: asdict(shown) for name, shown in sorted(kept.items())}
    CAUGHT_FILE.write_text(json.dumps(lines, indent=1) + "\n")


def caught_by(result: Result) -> str:
    """The first problem in a few words."""
    problem = result.problems[0]
    failed = re.findall(r"^(\d+ .*?)\s+FAILED", problem, re.MULTILINE | re.IGNORECASE)
    if failed:
        return ", ".join(failed)
    if "Traceback" in problem:
        problem = f"the audit cannot be made: {problem.strip().splitlines()[-1]}"
    return problem.replace("loud without a reason: ", "8 loud: ").replace("\n", " ")[:SHOWN_CHARS]
