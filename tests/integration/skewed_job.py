"""A job with a step that is slow for as long as a file is there: records pile up in front of it."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path
from typing import Final

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Job
from processor.audit import CountedState, keyed_count
from tests.integration.jobs import Counted, CountKeys, Numbered

SLOW_WHILE = "SLOW_WHILE_THIS_FILE_IS_THERE"
"""Variable of the environment with the file's path."""

RECORD_S = 0.02
"""How long the slow step works on one record."""

HOT: Final = 0
"""The key that most records have."""

OTHERS_SHARE: Final = 10
"""One key of so many stays as it is, all others become the hot one."""


class CountHotSlowly(CountKeys):
    """Writes a byte into the file for every record that was slow work: how far it has come."""

    def __init__(self) -> None:
        self._while = Path(os.environ.get(SLOW_WHILE, "/nowhere"))

    def on_record(self, value: Numbered, /, context: Context[int, Counted]) -> None:
        if skewed(value.k) == HOT:
            self._work()
        super().on_record(value, context)

    def _work(self) -> None:
        try:
            there = os.open(self._while, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            return
        os.write(there, b".")
        os.close(there)
        select.select((), (), (), RECORD_S)  # the work of it: nothing waits for anything here


def skewed(key: int) -> int:
    return HOT if key % OTHERS_SHARE else key


def build() -> Job:
    """Counts by key. Nine of ten records go to one subtask, which alone is slow."""
    job = Job("skewed-count")
    records = job.read("read", KafkaSource("in", Json(Numbered)))
    counted = records.key_by("by-key", lambda record: skewed(record.k)).process("count", CountHotSlowly)
    counted.write("write", KafkaSink("out", Json(Counted)))
    job.audit(
        keyed_count(
            keys=lambda key, value: [skewed(_read(value)["k"])],
            counted=lambda key, value: (skewed(_read(value)["k"]), _read(value)["n"]),
            state=CountedState(step="count", name="seen"),
        )
    )
    return job


def _read(value: bytes | None) -> dict[str, int]:
    read: dict[str, int] = json.loads(value or b"")
    return read
