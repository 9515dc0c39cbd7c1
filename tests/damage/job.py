"""A job with every kind of file in its checkpoints, and what it must have put out by its end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.state.declarations import ValueState
from processor.state.list_state import ListState
from processor.state.map_state import MapState
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun
from tests.unit.task.kit import ListSource, MemorySink

SPLITS = ("lines/0", "lines/1", "lines/2")
RECORDS = 600
"""In each split, from its beginning to its end."""
END_MS = 10**9
"""An event time that comes only when everything is read."""


class Tell(KeyedProcess[str, str, str]):
    """Tells of every word what is kept under its first letter, so that anything wrong there shows; and at the end."""

    count = ValueState(int)
    words = MapState(str, int)
    last = ListState(str)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        count = (self.count.get() or 0) + 1
        self.count.set(count)
        self.words.set(value, (self.words.get(value) or 0) + 1)
        if count % 20 == 0:
            self.last.clear()
        self.last.append(value)
        if count == 1:
            context.timers.at_event_time(END_MS)
        context.emit(f"{value} {count} {self.words.get(value)} {len(self.last.get() or ())}")

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        context.emit(f"{context.key}! {self.count.get()} {sum(n for _, n in self.words.items())} 0")


def letters(word: str) -> str:
    return word[0]


def told(run: JobRun) -> Job:
    """Two keyed subtasks feed on three splits, slower than those are read: barriers find something to overtake."""
    job = Job("told", max_parallelism=16)
    words = job.read("read", run.source).event_time(lambda word: 0, disorder=timedelta(0))
    words.key_by("by-letter", letters).process("tell", Tell, parallelism=2).write(
        "out", MemorySink(run.outside), parallelism=1
    )
    return job


@dataclass(kw_only=True)
class Words:
    """The input: it comes with the polls, or is there as a whole."""

    chance: Random
    source: ListSource = field(init=False)

    def __post_init__(self) -> None:
        self._coming = {split: [self._word() for _ in range(RECORDS)] for split in SPLITS}
        self.source = ListSource(
            {split: [] for split in SPLITS}, bounded=True, ends=dict.fromkeys(SPLITS, RECORDS)
        )

    def _word(self) -> str:
        return self.chance.choice("abcdefgh") + self.chance.choice("xyz")

    def more(self) -> None:
        """A record more in each split."""
        for split, records in self.source.records.items():
            records += self._coming[split][len(records) : len(records) + 1]

    def whole(self) -> ListSource:
        """All of it, in a source of its own."""
        return ListSource(
            {split: list(words) for split, words in self._coming.items()}, bounded=True, ends=self.source.ends
        )

    def wrong(self, rows: Iterable[bytes | None]) -> str:
        """What is wrong with everything that was put out; empty when nothing is."""
        counts: dict[str, list[int]] = defaultdict(list)
        of_word: dict[str, list[int]] = defaultdict(list)
        ends: dict[str, tuple[int, int]] = {}
        for row in rows:
            word, count, words, last = (row or b"").decode().split()
            if word.endswith("!"):
                ends[word[0]] = int(count), int(words)
                continue
            counts[word[0]].append(int(count))
            of_word[word].append(int(words))
            if int(last) != (int(count) % 20 + 1 if int(count) >= 20 else int(count)):
                return f"the list under '{word[0]}' has {last} words after {count}"
        expected = Counter(word for words in self._coming.values() for word in words)
        letter = Counter(word[0] for word in expected.elements())
        if of_word != {word: list(range(1, n + 1)) for word, n in expected.items()}:
            return "words are lost, doubled or out of order"
        if counts != {word: list(range(1, n + 1)) for word, n in letter.items()}:
            return "counts are lost, doubled or out of order"
        if ends != {word: (n, n) for word, n in letter.items()}:
            return "what timers told in the end is wrong"
        return ""
