"""The job whose savepoints are kept as fixtures, and what they hold. It stays as it is: a later release has to read
what this one wrote.

    python -m tests.unit.savepoint.fixture_job tests/fixtures/savepoints/NAME      makes them anew, for a new format
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from processor.operators.aggregates import Count
from processor.operators.aggregating_state import AggregatingState
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.savepoint import Savepoint
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.state.reducing_state import ReducingState
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun
from tests.unit.state.fakes import BACKENDS, OWN_FILES
from tests.unit.task.kit import ListSource, MemorySink

FAR_MS = 4_000_000_000_000
LONG = timedelta(days=365_000)
WORDS = ["apple", "axe", "bee", "cat", "bee-", "ace", "dog", ""]
POLLS = 12


class Seen(msgspec.Struct, frozen=True):
    """A value with what makes trouble: null, empty, more than 32 bits, an alternative."""

    count: int
    last: str | None
    lengths: tuple[int, ...] = ()
    big: int | float = 2**40


class Keep(KeyedProcess[str, str, str]):
    """Keeps what it sees of words by their first letter; forgets a letter at the word ``letter-``."""

    seen = ValueState(Seen)
    newest = ValueState(str, expires_after=LONG)
    lengths = ListState(int)
    words = MapState(str, int)
    longest = ReducingState(int, max)
    count = AggregatingState(Count())

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        if value.endswith("-"):
            self.seen.clear()
            self.words.clear()
            return
        seen = self.seen.get() or Seen(0, None)
        self.seen.set(Seen(seen.count + 1, value or None, (*seen.lengths, len(value))))
        self.newest.set(value)
        self.lengths.append(len(value))
        self.words.set(value, (self.words.get(value) or 0) + 1)
        self.longest.add(len(value))
        self.count.add(value)
        context.timers.at_processing_time(FAR_MS + len(value))


def keeping(run: JobRun) -> Job:
    job = Job("kept for ever")
    words = job.read("read", run.source).key_by("by-letter", lambda word: word[:1])
    words.process("keep", Keep).write("out", MemorySink(run.outside))
    return job


def ran(root: Path, words: Sequence[str], *, backend: str, parallelism: int, **options: Any) -> JobRun:
    """The job over these words behind what it starts from, stopped."""
    source = ListSource({"words/0": list(words)}, bounded=False)
    run = JobRun(
        root / "jobs",
        source=source,
        build=keeping,
        parallelism=parallelism,
        checkpoint={"interval": "10ms"},
        backend={"backend": backend.split()[0], "directory": root / "local"},
        own_files=backend == OWN_FILES,
    )
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        run.signals.asked = polls > POLLS

    source.on_poll = poll
    assert run.run(**options) == 0
    return run


def check_contents(savepoint: Savepoint) -> None:
    """Raises AssertionError unless it holds what the job kept of WORDS."""
    assert dict(savepoint.read("keep", "seen", Seen)) == {
        "a": Seen(3, "ace", (5, 3, 3)),
        "c": Seen(1, "cat", (3,)),
        "d": Seen(1, "dog", (3,)),
        "": Seen(1, None, (0,)),
    }
    assert dict(savepoint.read("keep", "newest")) == {"a": "ace", "b": "bee", "c": "cat", "d": "dog", "": ""}
    assert dict(savepoint.read("keep", "lengths")) == {"a": [5, 3, 3], "b": [3], "c": [3], "d": [3], "": [0]}
    assert dict(savepoint.read("keep", "words")) == {
        "a": {"apple": 1, "axe": 1, "ace": 1},
        "c": {"cat": 1},
        "d": {"dog": 1},
        "": {"": 1},
    }
    assert dict(savepoint.read("keep", "longest")) == {"a": 5, "b": 3, "c": 3, "d": 3, "": 0}
    assert dict(savepoint.read("keep", "count")) == {"a": 3, "b": 1, "c": 1, "d": 1, "": 1}
    timers = sorted((str(timer.key), timer.time_ms - FAR_MS) for timer in savepoint.timers("keep"))
    assert timers == [("", 0), ("a", 3), ("a", 5), ("b", 3), ("c", 3), ("d", 3)]


def make(folder: Path) -> None:
    """Write the savepoints of this release."""
    for backend in BACKENDS:
        with tempfile.TemporaryDirectory() as root:
            run = ran(Path(root), WORDS, backend=backend, parallelism=2)
            entry = run.log.read_all().newest()
            assert entry is not None
            run.savepoint(entry, folder / f"native-{backend.replace(' ', '-')}", native=True)
            if backend == "memory":
                run.savepoint(entry, folder / "canonical")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
