"""Jobs of the cases: each as small as the fault that its users met allows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from connectors.formats import AnyJson, Avro, Json, Raw, Text
from connectors.kafka import KafkaSink, KafkaSource, Latest, UntilEnd
from processor import Context, Job, KeyedProcess, SideOutput, Skip, ValueState

ORDER_SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}],
}


class Event(msgspec.Struct, frozen=True):
    n: int
    at_ms: int = 0


class ThreeWays(KeyedProcess[str, Event, str]):
    """Each record is told of at once, by a timer, and on the side."""

    last = ValueState(int)
    aside = SideOutput(str)

    def on_record(self, value: Event, /, context: Context[str, str]) -> None:
        context.emit(f"record {value.n}")
        self.aside.emit(f"side {value.n}")
        context.timers.at_event_time(value.at_ms)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        context.emit(f"timer {time_ms}")


def three_ways() -> Job:
    job = Job("case-three-ways")
    events = job.read("read", KafkaSource("in", Json(Event))).event_time(
        lambda event: event.at_ms, disorder=timedelta(0)
    )
    told = events.key_by("key", lambda event: "one").process("tell", ThreeWays)
    told.write("write", KafkaSink("out", Text()))
    told.side(ThreeWays.aside).write("write-side", KafkaSink("side", Text()))
    return job


def numbers() -> Job:
    """Numbers as they are; what is no number is left out and counted."""
    job = Job("case-numbers")
    job.read("read", KafkaSource("in", Json(int)), on_error=Skip()).write(
        "write", KafkaSink("out", Json(int))
    )
    return job


def strict_numbers() -> Job:
    """Numbers as they are; what is no number stops the job."""
    job = Job("case-strict-numbers")
    job.read("read", KafkaSource("in", Json(int))).write("write", KafkaSink("out", Json(int)))
    return job


def forgiving_numbers() -> Job:
    """Where the position is not kept any more, it goes on at the earliest record."""
    job = Job("case-numbers")
    source = KafkaSource("in", Json(int), out_of_retention="earliest")
    job.read("read", source).write("write", KafkaSink("out", Json(int)))
    return job


def bounded() -> Job:
    job = Job("case-bounded")
    source = KafkaSource("in", Json(int), until=UntilEnd())
    job.read("read", source).write("write", KafkaSink("out", Json(int)))
    return job


def latest() -> Job:
    job = Job("case-latest")
    job.read("read", KafkaSource("in", Json(int), start=Latest())).write("write", KafkaSink("out", Json(int)))
    return job


class Remember(KeyedProcess[str, Event, list[int | None]]):
    kept = ValueState(int)

    def on_record(self, value: Event, /, context: Context[str, list[int | None]]) -> None:
        seen = [self.kept.get()]
        self.kept.set(value.n)
        seen.append(self.kept.get())
        self.kept.clear()
        seen.append(self.kept.get())
        self.kept.set(value.n + 1)
        seen.append(self.kept.get())
        context.emit(seen)


def remember() -> Job:
    job = Job("case-remember")
    events = job.read("read", KafkaSource("in", Json(Event)))
    events.key_by("key", lambda event: "one").process("remember", Remember).write(
        "write", KafkaSink("out", AnyJson())
    )
    return job


def tombstones() -> Job:
    """Bytes, with tombstones, keys and headers, as they are."""
    job = Job("case-tombstones")
    job.read("read", KafkaSource.with_tombstones("in", Raw())).write(
        "write", KafkaSink.with_tombstones("out", Raw())
    )
    return job


def avro() -> Job:
    job = Job("case-avro")
    source: KafkaSource[dict[str, Any] | None] = KafkaSource.with_tombstones("in", Avro(ORDER_SCHEMA))
    job.read("read", source).write("write", KafkaSink.with_tombstones("out", Avro(ORDER_SCHEMA)))
    return job


class KeyIs(msgspec.Struct, frozen=True):
    """A record that says what its key is: text, a number, bytes, or none."""

    kind: str

    def key(self) -> str | int | bytes:
        keys: dict[str, Any] = {"zero": 0, "empty text": "", "empty bytes": b"", "none": None}
        key: str | int | bytes = keys[self.kind]
        return key


class CountOne(KeyedProcess[str | int | bytes, KeyIs, str]):
    seen = ValueState(int)

    def on_record(self, value: KeyIs, /, context: Context[str | int | bytes, str]) -> None:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(f"{context.key!r} {count}")


def falsy_keys() -> Job:
    job = Job("case-falsy-keys")
    records = job.read("read", KafkaSource("in", Json(KeyIs)))
    counted = records.key_by("key", KeyIs.key, on_error=Skip()).process("count", CountOne)
    counted.write("write", KafkaSink("out", Text()))
    return job


def _refuse_five(number: int) -> int:
    if number == 5:
        raise ValueError("five is too much")
    return number


def refuses_five() -> Job:
    job = Job("case-refuses-five")
    job.read("read", KafkaSource("in", Json(int))).map("check", _refuse_five).write(
        "write", KafkaSink("out", Json(int))
    )
    return job


def skips_five() -> Job:
    job = Job("case-skips-five")
    job.read("read", KafkaSource("in", Json(int))).map("check", _refuse_five, on_error=Skip()).write(
        "write", KafkaSink("out", Json(int))
    )
    return job
