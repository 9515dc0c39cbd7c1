"""A job that writes whatever row its input describes: also such as a broker refuses for ever (R30)."""

from __future__ import annotations

import msgspec

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Fail, Job, Skip


class Described(msgspec.Struct, frozen=True):
    """A row to be written: ``n`` tells rows apart."""

    n: int
    key: str | None = "key"
    header_bytes: int = 0
    at_ms: int = 1_700_000_000_000
    partition: int | None = None


def _write(name: str, policy: Fail | Skip) -> Job:
    job = Job(name)
    rows = job.read("read", KafkaSource("in", Json(Described)))
    rows.write(
        "write",
        KafkaSink(
            "out",
            Json(Described),
            key=lambda row: row.key,
            headers=lambda row: [("large", b"x" * row.header_bytes)] if row.header_bytes else [],
            timestamp=lambda row: row.at_ms,
            partition=lambda row: row.partition,
        ),
        on_error=policy,
    )
    return job


def failing() -> Job:
    return _write("rows-failing", Fail())


def skipping() -> Job:
    return _write("rows-skipping", Skip())
