"""How much of the rows of one transaction was handed over, and which row it was that was refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connectors.kafka.cluster import DeliveryFailure
from processor.records.rows import RowBlock


class SentRows:
    """See the module. ``source`` is gone through anew for every question."""

    def __init__(self, source: Iterable[RowBlock]) -> None:
        self.source: Final = source
        self.topics: set[str] = set()
        self.rows = 0

    def add(self, block: RowBlock) -> None:
        self.topics.add(block.topic)
        self.rows += len(block)

    def find(self, failure: DeliveryFailure) -> int | None:
        """The number of the row, if exactly one of those handed over is like it."""
        found: list[int] = []
        start = 0
        for block in self.source:
            if block.topic == failure.topic:
                for index, value in enumerate(block.values, start):
                    key = None if block.keys is None else block.keys[index - start]
                    if (value or b"") == (failure.value or b"") and (key or b"") == (failure.key or b""):
                        found.append(index)
            start += len(block)
            if start >= self.rows:
                break
        found = [row for row in found if row < self.rows]
        return found[0] if len(found) == 1 else None
