"""Jobs that are wrong, each in one way: none of them may begin to run."""

from __future__ import annotations

from typing import Any

from connectors.formats import AnyJson, Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Count, Guarantee, Job, KeyedProcess, SourceStream, ValueState


class Opaque:
    """A class that no codec knows."""


class CountThem(KeyedProcess[str, Any, int]):
    seen = ValueState(int)

    def on_record(self, value: Any, /, context: Context[str, int]) -> None:
        context.emit(1)


class Untyped:
    """An aggregate that does not say what its totals are."""

    def create(self):
        return 0

    def add(self, total: Any, value: Any) -> Any:
        return total + 1

    def merge(self, one: Any, other: Any) -> Any:
        return one + other

    def result(self, total: Any) -> Any:
        return total


class Weak(KafkaSink[Any]):
    """Promises less than exactly-once."""

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.AT_LEAST_ONCE


def _read(name: str) -> tuple[Job, SourceStream[int]]:
    job = Job(name)
    return job, job.read("read", KafkaSource("in", Json(int)))


def wrong_type() -> Job:
    job, numbers = _read("wrong-type")
    stream: Any = numbers
    stream.write("write", KafkaSink("out", Json(str)))
    return job


def missing_state_type() -> Job:
    job, numbers = _read("missing-type")
    untyped: Any = Untyped()
    numbers.key_by("key", str).aggregate("total", untyped).write("write", KafkaSink("out", AnyJson()))
    return job


def missing_record_type() -> Job:
    job, numbers = _read("missing-record-type")
    opaque = numbers.map("hide", lambda number: Opaque())
    opaque.key_by("key", lambda value: "one").process("count", CountThem).write(
        "write", KafkaSink("out", Json(int))
    )
    return job


def one_name_twice() -> Job:
    job, numbers = _read("one-name-twice")
    numbers.map("step", lambda n: n + 1).filter("step", lambda n: n > 1).write(
        "write", KafkaSink("out", Json(int))
    )
    return job


def missing_key() -> Job:
    job, numbers = _read("missing-key")
    stream: Any = numbers
    stream.aggregate("count", Count()).write("write", KafkaSink("out", AnyJson()))
    return job


def weaker_sink() -> Job:
    job, numbers = _read("weaker-sink")
    numbers.write("write", Weak("out", Json(int)))
    return job


def builds_nothing() -> Job:
    return None  # type: ignore[return-value]
