"""The jobs that are simulated, each with input that carries its own truth and with what its output must be."""

from __future__ import annotations

from collections.abc import Hashable
from random import Random

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
    """Within each input part every number once, in order."""
    return pass_through(group=lambda key, value: word(value, 0), item=lambda key, value: word(value, 1))


def word(value: bytes | None, index: int) -> Hashable:
    return (value or b"").decode().split()[index]
