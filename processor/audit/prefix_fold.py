"""Invariant 1: what can be read is the fold of the input up to the newest published checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from processor.audit.comparison import Comparison
from processor.audit.expectation import Bytes
from processor.audit.finding import Finding, judged
from processor.audit.fold import Deviation
from processor.contracts.topic_reader import RawHeaders, TopicChunk, TopicReader
from processor.ids import SplitId

NAME = "1 prefix fold"
EXAMPLES_MAX = 5

Take = Callable[[SplitId, Bytes, Bytes, RawHeaders | None], None]


class PrefixFold:
    """Reads the input, then the output, split by split, and compares."""

    def __init__(self, comparison: Comparison, *, running: bool) -> None:
        """``running``: the job runs on, so output of input behind the newest decided checkpoint is right."""
        self._comparison = comparison
        self._running = running
        self._records_in = 0
        self._unreadable = 0
        self._examples: list[str] = []

    def read_input(
        self, reader: TopicReader, starts: Mapping[SplitId, int], positions: Mapping[SplitId, int]
    ) -> None:
        """What lies between ``starts`` and ``positions`` must be in the output, what is behind may be.

        First all that must, over all splits: a key may lie in several.
        """
        compare = self._comparison
        for chunk in reader.read(positions):
            cut = _index(chunk, starts.get(chunk.split, 0))
            _feed(chunk, 0, cut, compare.before)
            _feed(chunk, cut, len(chunk.offsets), compare.expect)
            self._records_in += len(chunk.offsets) - cut
        for chunk in reader.read(reader.committed_ends(tuple(positions)), positions):
            _feed(chunk, 0, len(chunk.offsets), compare.allow)

    def read_output(self, reader: TopicReader, splits: Sequence[SplitId]) -> None:
        """All that can be read of the output; it must hold nothing else."""
        meet = self._comparison.meet
        for chunk in reader.read(reader.committed_ends(splits)):
            columns = zip(chunk.offsets, chunk.keys, chunk.values, chunk.headers, strict=True)
            for offset, key, value, headers in columns:
                try:
                    deviation = meet(key, value, headers)
                except Exception as error:  # the author's function met a record it cannot read
                    self._unreadable += 1
                    self._example(
                        f"{chunk.split} offset {offset} cannot be read by the audit: {error!r:.120}"
                    )
                    continue
                if deviation is not None and not (deviation is Deviation.AHEAD and self._running):
                    self._example(f"{chunk.split} offset {offset} is {deviation}: {value!r:.120}")

    def finding(self) -> Finding:
        figures = self._comparison.figures()
        met = figures.deviations
        ahead = met.get(Deviation.AHEAD, 0)
        invented = met.get(Deviation.INVENTED, 0) + self._unreadable
        duplicates, disorder = met.get(Deviation.DUPLICATE, 0), met.get(Deviation.OUT_OF_ORDER, 0)
        wrong = figures.losses + duplicates + disorder + invented + (0 if self._running else ahead)
        return judged(
            NAME,
            wrong == 0,
            {
                "records in": self._records_in,
                "expected out": figures.expected,
                "found": figures.met,
                "losses": figures.losses,
                "duplicates": duplicates,
                "out of order": disorder,
                "invented": invented,
                "ahead": ahead,
            },
            (*self._examples, *(f"lost: {example}" for example in figures.lost_examples)),
        )

    def _example(self, text: str) -> None:
        if len(self._examples) < EXAMPLES_MAX:
            self._examples.append(text)


def _index(chunk: TopicChunk, offset: int) -> int:
    """How many records of the chunk lie before ``offset``."""
    if chunk.offsets[-1] < offset:
        return len(chunk.offsets)
    return next(i for i, at in enumerate(chunk.offsets) if at >= offset)


def _feed(chunk: TopicChunk, start: int, stop: int, take: Take) -> None:
    split = chunk.split
    for i in range(start, stop):
        take(split, chunk.keys[i], chunk.values[i], chunk.headers[i])
