"""A job that reads in several steps is audited as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor.audit.several_inputs import SeveralInputs
from processor.errors import JobError
from processor.ids import Position, SplitId, StepName
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry, SourceState
from tests.unit.audit.test_log_invariants import checkpoint, log, seal
from tests.unit.audit.topics import ListedTopics

LEFT, RIGHT = StepName("left"), StepName("right")


def reading(**splits: str) -> LogView:
    """A log with one checkpoint, in which each step has read two records of a split."""
    entry = checkpoint(2, 1, 1, 0, {"-/0": 0})
    assert isinstance(entry, CheckpointEntry)
    sources = tuple(
        SourceState(step=StepName(step), positions={SplitId(split): Position(next=2)})
        for step, split in splits.items()
    )
    return log(seal(1, 1), replace(entry, subtasks=(replace(entry.subtasks[0], sources=sources),)))


def test_each_split_is_read_by_the_reader_of_its_step():
    one = ListedTopics(topics={"a": [[(b"k", b"1"), (b"k", b"2"), (b"k", b"3")]]}, open={"a/0": 1})
    two = ListedTopics(topics={"b": [[(b"k", b"4"), (b"k", b"5")]]}, first={"b/0": 1})
    both = SeveralInputs({LEFT: one, RIGHT: two}, reading(left="a/0", right="b/0"))
    splits = (SplitId("a/0"), SplitId("b/0"))
    assert both.starts(splits) == {"a/0": 0, "b/0": 1}
    assert both.committed_ends(splits) == {"a/0": 2, "b/0": 2}
    assert both.ends(splits) == {"a/0": 3, "b/0": 2}
    ends = {SplitId("a/0"): 3, SplitId("b/0"): 2}
    assert [value for chunk in both.read(ends) for value in chunk.values] == [b"1", b"2", b"3", b"4", b"5"]
    behind = both.read(ends, {SplitId("a/0"): 2, SplitId("b/0"): 1})
    assert [value for chunk in behind for value in chunk.values] == [b"3", b"5"]
    assert (both.splits("a"), both.splits("c")) == (("a/0",), ())


def test_one_split_of_two_steps_is_refused_by_name():
    topics = ListedTopics(topics={"a": [[]]})
    with pytest.raises(JobError, match=r"'a/0' is read by the steps 'left' and 'right'.*source="):
        SeveralInputs({LEFT: topics, RIGHT: topics}, reading(left="a/0", right="a/0"))
