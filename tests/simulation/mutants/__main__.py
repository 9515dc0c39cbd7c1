"""Hunts mutants: whether the simulation catches what it claims to catch.

    python -m tests.simulation.mutants --seeds 2000
    python -m tests.simulation.mutants R12_one_producer_for_all_transactions --seeds 100
    python -m tests.simulation.mutants --known

Every mutant is tried with the seeds 1, 2, 3, ..., each with the job and the faults that it chooses, until one shows
it. ``--known`` begins with the seed that showed it last time, so that most need one run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.hunt import Hunt, Hunted, Shown, first_seeds, hunt_all, known, remember


def main(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(arguments)
    names = asked.names or list(MUTANTS)
    for name in names:
        if name not in MUTANTS:
            print(f"there is no mutant {name!r}; there are: {', '.join(MUTANTS)}")
            return 2
    began = time.monotonic()
    before: Mapping[str, Shown] = known() if asked.known else {}
    hunts = [
        Hunt(name=name, runs=[*_tried(before, name), *first_seeds(MUTANTS[name], asked.seeds)])
        for name in names
    ]
    found: dict[str, Hunted] = {}
    print("| mutant | seeds | job | caught by |\n|---|---:|---|---|", flush=True)
    for hunted in hunt_all(hunts, asked.processes):
        found[hunted.name] = hunted
        print(_line(hunted), flush=True)
    if asked.record:
        remember(found.values())
    bad = [hunted for hunted in found.values() if not hunted.good]
    for hunted in sorted(bad, key=lambda hunted: hunted.name):
        what = f"shows nothing: {hunted.slip}" if hunted.slip else f"SURVIVED {hunted.seeds} seeds"
        print(f"{hunted.name} {what}")
    print(f"{len(found) - len(bad)} of {len(found)} mutants caught, {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


def _tried(before: Mapping[str, Shown], name: str) -> list[Shown]:
    return [before[name]] if name in before else []


def _line(hunted: Hunted) -> str:
    job = hunted.shown.job if hunted.shown is not None else ""
    return f"| {hunted.name} | {hunted.seeds} | {job} | {hunted.by or 'SURVIVED'} |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.mutants", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="of mutants; all when none is given")
    parser.add_argument("--seeds", type=int, default=2_000, help="until a mutant has survived")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--known", action="store_true", help="begin with the seed that showed it last time")
    parser.add_argument("--record", action="store_true", help="keep the seeds that show them")
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
