"""Jobs of the kill tests. Their data carries its own truth: where each record came from.

Input of both, on topic ``in``: ``{"p": partition, "s": number within it, "k": key}``. Output on ``out``.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from datetime import timedelta

import msgspec

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Job, KeyedCoProcess, KeyedProcess, ValueState
from processor.audit import Audit, CountedState, keyed_count, pass_through

RIGHT_FIRST = 1_000_000
"""The numbers of the right input begin here, so that a record says which input it is of."""

WAIT_MS = 100


class Numbered(msgspec.Struct, frozen=True):
    """Record ``s`` of input partition ``p``, with a key that many partitions have."""

    p: int
    s: int
    k: int


class Counted(msgspec.Struct, frozen=True):
    """A numbered record, and how many of its key there were so far."""

    p: int
    s: int
    k: int
    n: int


class CountKeys(KeyedProcess[int, Numbered, Counted]):
    seen = ValueState(int)

    def on_record(self, value: Numbered, /, context: Context[int, Counted]) -> None:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(Counted(value.p, value.s, value.k, count))


class CountBoth(KeyedCoProcess[int, Numbered, Numbered, Counted]):
    """One count for two streams. What comes on the right waits for a timer, or for the left."""

    seen = ValueState(int)
    waiting = ValueState(list[Numbered])

    def on_left(self, value: Numbered, /, context: Context[int, Counted]) -> None:
        self._count_waiting(context)
        self._count(value, context)

    def on_right(self, value: Numbered, /, context: Context[int, Counted]) -> None:
        self.waiting.set([*(self.waiting.get() or []), value])
        context.timers.at_processing_time(context.processing_time_ms + WAIT_MS)

    def on_timer(self, time_ms: int, /, context: Context[int, Counted]) -> None:
        self._count_waiting(context)

    def _count_waiting(self, context: Context[int, Counted]) -> None:
        for value in self.waiting.get() or ():
            self._count(value, context)
        self.waiting.clear()

    def _count(self, value: Numbered, context: Context[int, Counted]) -> None:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(Counted(value.p, value.s, value.k, count))


class CountAtTheEnd(KeyedProcess[int, Numbered, Counted]):
    """Counts when event time has come to an end that no record brings."""

    seen = ValueState(int)
    waiting = ValueState(list[Numbered])

    def on_record(self, value: Numbered, /, context: Context[int, Counted]) -> None:
        self.waiting.set([*(self.waiting.get() or []), value])
        context.timers.at_event_time(RIGHT_FIRST)

    def on_timer(self, time_ms: int, /, context: Context[int, Counted]) -> None:
        seen = self.seen.get() or 0
        for value in self.waiting.get() or ():
            seen += 1
            context.emit(Counted(value.p, value.s, value.k, seen))
        self.seen.set(seen)
        self.waiting.clear()


def copy() -> Job:
    """Every record as it came; all of one input partition go to one output partition."""
    job = Job("kills-copy")
    records = job.read("read", KafkaSource("in", Json(Numbered)))
    records.write("write", KafkaSink("out", Json(Numbered), key=lambda record: str(record.p)))
    job.audit(copied())
    return job


def count() -> Job:
    """Every record with the running count of its key."""
    return _count("kills-count")


class CountTwice(CountKeys):
    """As somebody has changed it."""

    def on_record(self, value: Numbered, /, context: Context[int, Counted]) -> None:
        self.seen.set((self.seen.get() or 0) + 1)
        super().on_record(value, context)


def count_twice() -> Job:
    """The job ``count`` with other code."""
    return _count("kills-count", CountTwice)


def count_copy() -> Job:
    """The same under a name of its own, as copies of a job are to run (R2)."""
    return _count("kills-count-copy")


def _count(name: str, function: type[CountKeys] = CountKeys) -> Job:
    job = Job(name)
    records = job.read("read", KafkaSource("in", Json(Numbered)))
    counted = records.key_by("by-key", lambda record: record.k).process("count", function)
    counted.write("write", KafkaSink("out", Json(Counted)))
    job.audit(counts())
    return job


def connect() -> Job:
    """Topics ``in`` and ``right`` counted together by key."""
    job = Job("kills-connect")
    left = job.read("read", KafkaSource("in", Json(Numbered))).key_by("by-left", lambda record: record.k)
    right = job.read("read-right", KafkaSource("right", Json(Numbered))).key_by(
        "by-right", lambda record: record.k
    )
    counted = left.connect(right).process("count", CountBoth)
    counted.write("write", KafkaSink("out", Json(Counted)))
    job.audit(counted_together())
    return job


def wait() -> Job:
    """Running counts of which nothing comes out before the job is drained."""
    job = Job("kills-wait")
    records = job.read("read", KafkaSource("in", Json(Numbered))).event_time(
        lambda record: record.s, disorder=timedelta(0)
    )
    counted = records.key_by("by-key", lambda record: record.k).process("count", CountAtTheEnd)
    counted.write("write", KafkaSink("out", Json(Counted)))
    job.audit(counted_together())
    return job


def refuse_three(record: Numbered) -> Numbered:
    if record.s == 3:
        raise ValueError("three")
    return record


def raises() -> Job:
    """Has a function that raises."""
    job = Job("raises")
    records = job.read("read", KafkaSource("in", Json(Numbered)))
    refused = records.key_by("by-key", lambda record: record.k).map("refuses", refuse_three)
    refused.write("write", KafkaSink("out", Json(Numbered)))
    return job


def counted_together() -> Audit:
    """Of ``connect`` and ``wait``: for each key 1, 2, 3, … in order, over all input."""
    return replace(counts(), state=None)


def copied() -> Audit:
    """Of ``copy``: within each input partition every number once, in order."""
    return pass_through(group=_partition, item=_number)


def counts() -> Audit:
    """Of ``count``: for each key 1, 2, 3, … in order; the checkpoints hold the counts."""
    return keyed_count(
        keys=lambda key, value: [_read(value)["k"]],
        counted=lambda key, value: (_read(value)["k"], _read(value)["n"]),
        state=CountedState(step="count", name="seen"),
    )


def kept_in_order() -> Audit:
    """Of ``count`` too: records of one input partition and one key leave in the order in which they came."""
    return pass_through(group=lambda key, value: (_read(value)["p"], _read(value)["k"]), item=_number)


def each_kept_in_order() -> Audit:
    """Of ``connect`` too, for either input: the numbers of the right begin at RIGHT_FIRST."""
    return pass_through(
        group=lambda key, value: (_read(value)["s"] >= RIGHT_FIRST, _read(value)["p"], _read(value)["k"]),
        item=_number,
    )


def _partition(key: bytes | None, value: bytes | None) -> Hashable:
    return _read(value)["p"]


def _number(key: bytes | None, value: bytes | None) -> Hashable:
    return _read(value)["s"]


def _read(value: bytes | None) -> dict[str, int]:
    """By the standard library: the product decodes with something else."""
    read: dict[str, int] = json.loads(value or b"")
    return read
