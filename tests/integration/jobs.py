"""Jobs of the kill tests. Their data carries its own truth: where each record came from.

Input of both, on topic ``in``: ``{"p": partition, "s": number within it, "k": key}``. Output on ``out``.
"""

from __future__ import annotations

import json
from collections.abc import Hashable

import msgspec

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Job, KeyedProcess, ValueState
from processor.audit import Audit, CountedState, keyed_count, pass_through


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


def count_copy() -> Job:
    """The same under a name of its own, as copies of a job are to run (R2)."""
    return _count("kills-count-copy")


def _count(name: str) -> Job:
    job = Job(name)
    records = job.read("read", KafkaSource("in", Json(Numbered)))
    counted = records.key_by("by-key", lambda record: record.k).process("count", CountKeys)
    counted.write("write", KafkaSink("out", Json(Counted)))
    job.audit(counts())
    return job


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


def _partition(key: bytes | None, value: bytes | None) -> Hashable:
    return _read(value)["p"]


def _number(key: bytes | None, value: bytes | None) -> Hashable:
    return _read(value)["s"]


def _read(value: bytes | None) -> dict[str, int]:
    """By the standard library: the product decodes with something else."""
    read: dict[str, int] = json.loads(value or b"")
    return read
