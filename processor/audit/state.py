"""Invariant 2: the counts in every retained checkpoint are the fold of the input up to its positions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from processor.audit.expectation import KeysFunction
from processor.audit.finding import Finding, judged
from processor.contracts.topic_reader import TopicReader
from processor.ids import CheckpointId, SplitId

NAME = "2 state"
EXAMPLES_MAX = 5

Counts = Mapping[Hashable, int]
ReadCounts = Callable[[CheckpointId], Iterable[tuple[Hashable, int]]]
"""The keys and counts that a checkpoint holds. Raises DamagedFile."""


def state_finding(
    keys: KeysFunction,
    reader: TopicReader,
    checkpoints: Mapping[CheckpointId, Mapping[SplitId, int]],
    read_counts: ReadCounts,
) -> Finding:
    """Fold the input up to the positions of each checkpoint and compare with what it holds."""
    wrong = 0
    entries = 0
    notes: list[str] = []
    for checkpoint, positions in checkpoints.items():
        expected = _counts(keys, reader, positions)
        held: dict[Hashable, int] = {}
        for key, count in read_counts(checkpoint):
            entries += 1
            if key in held:
                wrong += 1
                _note(notes, f"checkpoint {checkpoint} holds the key {key!r:.60} twice")
            held[key] = count
        for key in expected.keys() | held.keys():
            if expected.get(key, 0) != held.get(key, 0):
                wrong += 1
                _note(
                    notes,
                    f"checkpoint {checkpoint} holds {held.get(key, 0)} for key {key!r:.60}, "
                    f"the input gives {expected.get(key, 0)}",
                )
    figures = {"checkpoints": len(checkpoints), "entries": entries, "wrong": wrong}
    return judged(NAME, wrong == 0, figures, tuple(notes))


def _counts(keys: KeysFunction, reader: TopicReader, positions: Mapping[SplitId, int]) -> Counts:
    counts: dict[Hashable, int] = {}
    for chunk in reader.read(positions):
        for key, value in zip(chunk.keys, chunk.values, strict=True):
            for counted in keys(key, value):
                counts[counted] = counts.get(counted, 0) + 1
    return counts


def _note(notes: list[str], text: str) -> None:
    if len(notes) < EXAMPLES_MAX:
        notes.append(text)
