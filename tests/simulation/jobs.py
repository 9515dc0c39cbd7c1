"""The jobs that are simulated, each with input that carries its own truth and with what its output must be."""

from __future__ import annotations

from collections.abc import Hashable
from random import Random

from connectors.formats.text import Text
from connectors.kafka.plugin import plugin as kafka_plugin
from connectors.kafka.settings import ClusterSettings, KafkaSettings
from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from processor.audit.expectation import Audit, pass_through
from processor.simulation.case import Case, Input
from processor.simulation.operator import run_and_stop
from processor.stream.job import Job
from tests.simulation.table import PLUGIN, LogSource, TablePlugin, TableSettings, TableSink


def table_copy(chance: Random) -> Case:
    """Every record from a log into a table."""
    job = Job("table-copy")
    job.read("read", LogSource("in")).write("write", TableSink("out"))
    return Case(
        graph=job.graph(),
        plugins={PLUGIN: (TablePlugin(), TableSettings(rows_max=chance.choice((1, 4, 50))))},
        inputs=numbered(chance, "read", parts=3, records=chance.randint(5, 60)),
        parts={"read": 3},
        script=run_and_stop,
        audits=[copied()],
        parallelism=chance.choice((1, 2, 3)),
    )


def copy(chance: Random) -> Case:
    """Every record of a topic into another."""
    job = Job("copy")
    job.read("read", KafkaSource("in", Text())).write("write", KafkaSink("out", Text()))
    return Case(
        graph=job.graph(),
        plugins={"kafka": (kafka_plugin, kafka_section(chance))},
        inputs=numbered(chance, "read", parts=3, records=chance.randint(5, 60)),
        parts={"read": 3, "write": 2},
        script=run_and_stop,
        audits=[copied()],
        parallelism=chance.choice((1, 2, 3)),
    )


def kafka_section(chance: Random) -> KafkaSettings:
    """Small transactions, and time-outs that faults reach."""
    publish_timeout_ms = chance.choice((1_000, 4_000))
    chosen = {
        "publish_rows_max": chance.choice((2, 7, 50)),
        "publish_timeout": publish_timeout_ms,
        "transaction_timeout": publish_timeout_ms + chance.choice((500, 5_000)),
        "take_over_timeout": chance.choice((500, 3_000)),
        "marker_timeout": chance.choice((200, 1_000)),
        "request_timeout": chance.choice((500, 2_000)),
    }
    return KafkaSettings(main=ClusterSettings().model_copy(update=chosen))


def numbered(chance: Random, step: str, *, parts: int, records: int) -> list[Input]:
    """Records ``part number key``, each part numbered from 0."""
    reached = [0] * parts
    made = []
    for _ in range(records):
        part = chance.randrange(parts)
        key = f"k{chance.randrange(5)}"
        made.append(
            Input(step=step, part=part, key=key.encode(), value=f"{part} {reached[part]} {key}".encode())
        )
        reached[part] += 1
    return made


def copied() -> Audit:
    """Within each input part and key every number once, in order."""
    return pass_through(
        group=lambda key, value: (word(value, 0), word(value, 2)), item=lambda key, value: word(value, 1)
    )


def word(value: bytes | None, index: int) -> Hashable:
    return (value or b"").decode().split()[index]
