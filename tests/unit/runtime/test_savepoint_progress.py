"""Writing a large savepoint says now and then how far it is, and a small one says nothing."""

from __future__ import annotations

import logging

from processor.runtime.savepoint_progress import SAY_EACH_MS, SavepointProgress
from processor.telemetry.log import Log
from tests.unit.operators.kit import SetClock


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def test_how_much_is_written_is_said_every_so_often():
    lines, clock = Lines(), SetClock()
    logger = logging.Logger("progress")
    logger.addHandler(lines)
    progress = SavepointProgress(Log(logger), clock)
    for _ in range(5):
        progress.converted(4_000)
    assert lines.records == []
    clock.now_ms += SAY_EACH_MS
    progress.converted(4_000)
    progress.converted(4_000)
    assert [record.getMessage() for record in lines.records] == ["writing the savepoint"]
    assert "24,000 entries" in str(vars(lines.records[0]))
