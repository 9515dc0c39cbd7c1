"""Cuts a failing seed down: fewer faults, until none can be left out.

    python -m tests.simulation.shrink --seed 25 --job event-time

Faults are numbered in the order in which they happen. First only the first ones are let happen, as few as still
make it fail; then they are left out one after another, from the last. Prints what runs what is left.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from processor.simulation.injection import Limit
from processor.simulation.run import Result
from tests.simulation.chosen import LEVELS, command, job_of, run
from tests.simulation.jobs import JOBS

RUNS_MAX = 400


class Shrinking:
    def __init__(self, seed: int, job: str, level: str) -> None:
        self._seed = seed
        self._job = job
        self._level = level
        self.runs = 0

    def fails(self, limit: Limit) -> Result | None:
        self.runs += 1
        result = run(self._seed, job=self._job, level=self._level, limit=limit)
        return None if result.good else result

    def smallest(self) -> tuple[Limit, Result] | None:
        """None when the seed does not fail."""
        whole = self.fails(Limit())
        if whole is None:
            return None
        limit, result = self._fewest_first(whole)
        print(f"fails with the first {limit.first} of {whole.numbered} faults", flush=True)
        for number in range(limit.first or 0, 0, -1):
            if self.runs >= RUNS_MAX:
                break
            tried = replace(limit, without=limit.without | {number})
            found = self.fails(tried)
            if found is not None:
                limit, result = tried, found
        return limit, result

    def _fewest_first(self, whole: Result) -> tuple[Limit, Result]:
        """By halving, which is exact when more faults never mend what fewer broke; else it is a good guess."""
        low, high, result = 0, whole.numbered, whole
        while low < high:
            middle = (low + high) // 2
            found = self.fails(Limit(first=middle))
            if found is None:
                low = middle + 1
            else:
                high, result = middle, found
        return Limit(first=high), result


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.shrink")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--job", choices=list(JOBS))
    parser.add_argument("--level", choices=LEVELS, default="heavy")
    asked = parser.parse_args(arguments)
    job = asked.job or job_of(asked.seed)
    shrinking = Shrinking(asked.seed, job, asked.level)
    found = shrinking.smallest()
    if found is None:
        print(f"seed {asked.seed} of job {job} does not fail")
        return 1
    limit, result = found
    left = (limit.first or 0) - len(limit.without)
    print(f"{left} faults are left, after {shrinking.runs} runs: {dict(result.faults)}")
    for problem in result.problems:
        print("  " + problem.replace("\n", "\n  "))
    print(command(asked.seed, job=job, level=asked.level, limit=limit))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
