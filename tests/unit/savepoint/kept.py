"""A job that keeps counts and timers, stopped: its directory is what the tests look into."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

from processor.ids import MAX_PARALLELISM_DEFAULT
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.stream.job import Job
from processor.stream.stream import Stream
from tests.unit.runtime.kit import JobRun
from tests.unit.task.kit import ListSource, MemorySink

FAR_MS = 4_000_000_000_000
"""A processing time that does not come while a test runs."""


FOR_EVER = timedelta(days=36_500)


class Seen(msgspec.Struct, frozen=True):
    """What is kept for each key."""

    count: int
    last: str


class Count(KeyedProcess[str, str, str]):
    """Counts words by their first letter; forgets a letter at the word ``letter-``."""

    seen = ValueState(Seen)
    length = ValueState(int)
    words = MapState(str, int)
    """How often each word has come."""
    lengths = ListState(int)
    latest = ValueState(Seen, expires_after=FOR_EVER)
    recent = ListState(Seen, expires_after=FOR_EVER)
    recent_words = MapState(str, int, expires_after=FOR_EVER)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        if value.endswith("-"):
            self.seen.clear()
            self.words.clear()
            return
        seen = self.seen.get()
        self.seen.set(Seen(1 if seen is None else seen.count + 1, value))
        self.length.set(len(value))
        self.words.set(value, (self.words.get(value) or 0) + 1)
        self.lengths.append(len(value))
        self.latest.set(Seen(1, value))
        self.recent.append(Seen(1, value))
        self.recent_words.set(value, len(value))
        context.timers.at_processing_time(FAR_MS + ord(value[0]))


def counting(run: JobRun, max_parallelism: int = MAX_PARALLELISM_DEFAULT, *, chained: bool = True) -> Job:
    """``chained``: the step that counts and what is behind it run in one thread."""
    job = Job("words", max_parallelism=max_parallelism)
    words = job.read("read", run.source)
    counted: Stream[str] = words.key_by("by-letter", lambda word: word[0]).process("count", Count)
    if not chained:
        counted = counted.filter("all", lambda word: True, parallelism=4)
    counted.write("out", MemorySink(run.outside))
    return job


def stopped(root: Path, *rounds: Sequence[str]) -> Path:
    """The directory of the job after it has read so many words, stopped after each round."""
    source = ListSource({"lines/0": []}, bounded=False)
    run = JobRun(root, source=source, build=counting, parallelism=2, checkpoint={"interval": "10m"})
    for words in rounds:
        source.records["lines/0"] += words
        polls = 0

        def on_poll() -> None:
            nonlocal polls
            polls += 1
            run.signals.asked = polls > 20

        run.signals.asked = False
        source.on_poll = on_poll
        assert run.run() == 0
    return run.directory.path
