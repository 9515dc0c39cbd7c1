"""A job whose second step is slow for as long as a file is there: records pile up in front of it."""

from __future__ import annotations

import os
import select
from pathlib import Path

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Job
from tests.integration.jobs import Counted, CountKeys, Numbered, counts

SLOW_WHILE = "SLOW_WHILE_THIS_FILE_IS_THERE"
"""Variable of the environment with the file's path."""

RECORD_S = 0.02
"""How long the slow step works on one record."""


class CountSlowly(CountKeys):
    def __init__(self) -> None:
        self._while = Path(os.environ.get(SLOW_WHILE, "/nowhere"))

    def on_record(self, value: Numbered, /, context: Context[int, Counted]) -> None:
        if self._while.exists():
            select.select((), (), (), RECORD_S)  # the work of it: nothing waits for anything here
        super().on_record(value, context)


def count() -> Job:
    """Counts by key in one subtask, behind as many readers as the setting says."""
    job = Job("slow-count")
    records = job.read("read", KafkaSource("in", Json(Numbered)))
    counted = records.key_by("by-key", lambda record: record.k).process("count", CountSlowly, parallelism=1)
    counted.write("write", KafkaSink("out", Json(Counted)), parallelism=1)
    job.audit(counts())
    return job
