"""Damages checkpoints and savepoints one file at a time, and starts their job again.

    python -m tests.damage.sweep --count 500 [--seed S]

Every file there is, in turn, with every act in turn; the seed chooses the rest. Each is refused by the name of the
file, or the job goes on, from where rule R8 says, and all of its output is right. Prints how many of each, and exits
1 if any went otherwise.
"""

from __future__ import annotations

import argparse
import io
import logging
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, cycle
from pathlib import Path
from random import Random

from processor.errors import ProcessorError
from processor.savepoint import open_savepoint, verify_files
from processor.telemetry.log import ROOT_LOGGER, TextFormatter
from tests.damage.acts import Act, kind_of, names_of, perform
from tests.damage.rules import Went, complaint
from tests.damage.scenes import Scene, scenes

_TRIES_MAX = 20
"""Until an act has changed anything: zeros may be put where there were zeros."""


@dataclass(kw_only=True)
class Tally:
    """What was done and what came of it."""

    done: Counter[tuple[str, Act]] = field(default_factory=Counter)
    refused: int = 0
    gone_on: int = 0
    missed: list[str] = field(default_factory=list)

    def text(self) -> str:
        kinds = sorted({kind for kind, _ in self.done})
        lines = [f"{'':12}" + "".join(f"{act:>9}" for act in Act)]
        lines += [f"{kind:12}" + "".join(f"{self.done[kind, act]:>9}" for act in Act) for kind in kinds]
        total = sum(self.done.values())
        lines.append(
            f"{total} damaged: {self.refused} refused by name, {self.gone_on} gone on rightly, "
            f"{len(self.missed)} missed"
        )
        return "\n".join(lines)


def sweep(made: Sequence[Scene], count: int, seed: int) -> Tally:
    """So many damages to copies of the scenes."""
    tally, chance = Tally(), Random(seed)
    turns = _turns(made, chance)
    while sum(tally.done.values()) < count:
        scene, name, act = next(turns)
        with tempfile.TemporaryDirectory(prefix="damage-") as folder:
            _one(scene, name, act, Path(folder), chance, tally)
    return tally


def _turns(made: Sequence[Scene], chance: Random) -> Iterator[tuple[Scene, str, Act]]:
    """Kinds of files in turn, each time with another file of that kind or another act; for ever."""
    kinds: dict[str, list[tuple[Scene, str, Act]]] = {}
    for scene in made:
        for name in names_of(scene.directory):
            kinds.setdefault(kind_of(name), []).extend((scene, name, act) for act in Act)
    for each in kinds.values():
        chance.shuffle(each)
    of_kinds = [cycle(kinds[kind]) for kind in sorted(kinds)]
    return chain.from_iterable(zip(*of_kinds, strict=False))


def _one(scene: Scene, name: str, act: Act, folder: Path, chance: Random, tally: Tally) -> None:
    directory = scene.copied_to(folder)
    for _ in range(_TRIES_MAX):
        touched = perform(act, directory, name, scene.older, chance)
        if touched:
            break
    else:
        return  # there is nothing that it could be swapped with or replaced by
    went = _start(scene, folder, directory)
    wrong = complaint(scene, act, touched, went)
    if scene.savepoint and not wrong:
        wrong = _overlooked(directory, touched)
    tally.done[kind_of(name), act] += 1
    tally.refused += bool(went.refused)
    tally.gone_on += not went.refused
    if wrong:
        tally.missed.append(f"{scene.name} {scene.backend}: {', '.join(touched)} {act}: {wrong}")


def _start(scene: Scene, folder: Path, directory: Path) -> Went:
    options = {"origin": str(directory), "accept_duplicates": True} if scene.savepoint else {}
    with _warnings() as said:
        try:
            run = scene.again(folder)
            code = run.run(**options)
        except ProcessorError as error:
            return Went(refused=error.message, said=said.getvalue(), wrong="")
        except Exception as error:  # a traceback of ours is no refusal
            return Went(refused="", said="", wrong=f"fell over {type(error).__name__}: {error}")
    wrong = scene.words.wrong(run.outside.rows()) if code == 0 else f"ended with {code}"
    return Went(refused="", said=said.getvalue(), wrong=wrong)


def _overlooked(directory: Path, touched: Sequence[str]) -> str:
    """What looking into a damaged savepoint left out."""
    try:
        said = "\n".join(verify_files(open_savepoint(str(directory))).damage)
    except ProcessorError as error:
        said = error.message
    return "" if said else f"was not seen by who looked into it: {', '.join(touched)}"


@contextmanager
def _warnings() -> Iterator[io.StringIO]:
    """What the product warns of meanwhile."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setFormatter(TextFormatter(debug=False))
    logger = logging.getLogger(ROOT_LOGGER)
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Damages checkpoints and savepoints, and starts their job again."
    )
    parser.add_argument("--count", type=int, default=60, help="damages in all")
    parser.add_argument("--seed", type=int, help="of what is damaged where")
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="damage-") as folder:
        tally = sweep(scenes(Path(folder), seed), chosen.count, seed)
    for missed in tally.missed:
        print(f"MISSED {missed}")
    print(tally.text())
    return 1 if tally.missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
