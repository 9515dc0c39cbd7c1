"""Kills a process that takes checkpoints, again and again, and looks at what is left after each.

    python -m tests.unit.state.killed_checkpoints --kills 60 [--seed S]

After each kill every retained checkpoint restores, over a backend of the seed's choice, and equals the fold; after a
start that ended well nothing is on the store but what retained checkpoints list. The exit code is 0 only then.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from processor.ids import Attempt
from processor.protocol.decisions import LogView
from processor.storage.decision_log import DecisionLog
from processor.storage.retention import kept, refuse_condemned
from tests.unit.state.checkpointing import RETAINED, States, backend_of, fold, keyed, look_into, position

ACTS_MAX: Final = 700
"""The process lives for up to so many changes of the disk: some die in their restore, some after many checkpoints."""

END_S: Final = 120


def run_and_kill(root: Path, seed: int, acts: int) -> None:
    """Start the process, and kill it right after so many acts, or where it is by then."""
    process = subprocess.Popen(command(root, seed, 0), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    told = process.stdout.read(acts)
    ended = process.poll()
    process.kill()
    process.stdout.close()
    error = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    if ended is not None or len(told) < acts:
        raise AssertionError(f"seed {seed}: the process ended by itself: {error}")


def run_to_the_end(root: Path, seed: int, checkpoints: int) -> None:
    done = subprocess.run(command(root, seed, checkpoints), capture_output=True, timeout=END_S, check=False)
    if done.returncode:
        raise AssertionError(f"seed {seed}: {done.stderr.decode()}")


def command(root: Path, seed: int, checkpoints: int) -> list[str]:
    return [sys.executable, "-m", "tests.unit.state.checkpointing", str(root), str(seed), str(checkpoints)]


def check_retained(root: Path, chance: Random) -> Counter[str]:
    """Restore every checkpoint that is kept; how many of each form there were. Raises what is wrong."""
    forms: Counter[str] = Counter()
    directory = look_into(root)
    view = DecisionLog(directory.log).read_all()
    for entry in kept(view, RETAINED):
        refuse_condemned(view, entry)
        backend = backend_of(chance.choice(("memory", "rocksdb")), root / "looked")
        states = States(backend, directory, Attempt(10**9), chance.choice((len(entry.subtasks), 1)))
        try:
            states.open(list(keyed(entry)))
            assert states.content() == fold(position(entry)), f"checkpoint {entry.checkpoint}"
        finally:
            states.close()
        forms.update("entries" if file.database is None else "files" for file in keyed(entry))
    return forms


def garbage(root: Path) -> set[str]:
    """Files that no retained checkpoint lists."""
    directory = look_into(root)
    view: LogView = DecisionLog(directory.log).read_all()
    listed = {ref.name for entry in kept(view, RETAINED) for ref in entry.files()}
    present = set(directory.files.names(""))
    assert listed <= present
    return present - listed


def sweep(root: Path, kills: int, seed: int) -> Counter[str]:
    """So many kills; what was looked at. Raises AssertionError, or what a restore raised."""
    chance = Random(seed)
    seen: Counter[str] = Counter()
    for kill in range(kills):
        run_and_kill(root, chance.randrange(2**32), int(ACTS_MAX ** chance.random()))
        left = garbage(root)
        seen.update(kills=1, garbage=len(left), **check_retained(root, chance))
        if kill % 10 == 9 or kill == kills - 1:
            run_to_the_end(root, chance.randrange(2**32), RETAINED + 1)
            left = garbage(root)
            assert not left, f"left for ever: {sorted(left)[:5]}"
            seen.update(check_retained(root, chance))
    local = [path for path in (root / "local").rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert not local, f"left on the local disk: {local[:5]}"
    return seen


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as root:
        seen = sweep(Path(root), given.kills, given.seed)
    print(f"seed {given.seed}: " + ", ".join(f"{count} {what}" for what, count in sorted(seen.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
