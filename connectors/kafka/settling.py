"""Whether every partition has heard how the transactions of one identity ended (R32, design page 0020).

A coordinator that ends a transaction tells each partition in it, but for those that nobody leads at that moment:
them it passes over, for good. What was written there stays open, and the same producer's next transaction takes
it in: rows that were aborted come out with it, and rows that were committed are aborted if it is.

So before rows are sent it is made sure that nothing is open. While every partition was led, nothing can have been
passed over; else it is looked at, up to where each partition went when the earlier producer was shut out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from connectors.kafka.cluster import Cluster, LogEnd, Partition
from processor.contracts.clock import Clock
from processor.errors import Retriable
from processor.records.rows import RowBlock

LEADER_NEWS_MS: Final = 30_000
"""A coordinator may hear of a new leader later than everybody else, and pass its partition over until then. One
that is so long behind is a coordinator no more: brokers lose their place after 9 seconds of silence."""

LOOK_PAUSE_MS: Final = 5
LOOK_PAUSE_MAX_MS: Final = 200
"""Between two looks: doubled from the first to the longest."""

LEADERLESS_TRIES_MAX: Final = 12
"""Of one look while leaders change, a second and a half in all: a topic just made is led a moment later."""

LOOKS_MAX: Final = 100_000
"""Bound beside the time-out, should a clock stand still."""

CHANGED: Final[Mapping[Partition, int]] = MappingProxyType({})
"""Leaders that are others than those of now."""

ENDING_KEY: Final = b"processor: ends an open transaction"
"""Key of the row that is written, and aborted, where a transaction was left open."""


class Settling:
    """What one publisher knows of the partitions it writes to. Used by one thread."""

    def __init__(self, cluster: Cluster, clock: Clock, topics: Collection[str]) -> None:
        self._cluster = cluster
        self._clock = clock
        self.topics: Final = set(topics)
        """Whatever else is sent to comes in here."""
        self._now: Mapping[Partition, int] = {}
        self._looked: Mapping[Partition, int] = {}
        """Leader epochs before it was looked for what is open."""
        self._settled: Mapping[Partition, int] | None = None
        """Leader epochs when everything sent before had ended; None until that was seen."""
        self._doubtful_until_ms = 0

    def glance(self) -> bool:
        """One look, after earlier producers were shut out: whether no partition was without a leader since all was
        settled. Losing the leader and getting another one are two changes; handing it over is one.

        Raises Unavailable or Retriable while a partition has no leader.
        """
        now = self._now = _epochs(self._ends(self._partitions(), committed=True))
        before = self._settled
        if before is None or now.keys() != before.keys() or not self._in_short():
            return False
        if any(epoch - before[at] > 1 for at, epoch in now.items()):
            return False
        self._settled = now
        return True

    def leaders(self) -> str:
        """Who leads while all is settled, in short, to be kept with a marker; empty where that is not known."""
        return self._in_short() if self._now == self._settled else ""

    def led_by(self, leaders: str) -> bool:
        """Whether no leader has changed since a marker was sent with this ``leaders``. If so, whatever was sent
        since then has ended too: it was sent under the same leaders."""
        same = leaders != "" and leaders == self._in_short()
        self._settled = self._now if same else CHANGED
        return same

    def left_open(self, timeout_ms: int) -> tuple[Partition, ...]:
        """Partitions in which something is still open that was written before this call, of whomever: after so
        long. Raises Unavailable or Retriable while a partition has no leader."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        # What was written lies below these: it is below the high watermark once its producer was told so.
        ends = self._ends(self._partitions(), committed=False)
        self._looked = _epochs(ends)
        behind, pause_ms = tuple(ends), LOOK_PAUSE_MS
        for _ in range(LOOKS_MAX):
            stable = self._ends(tuple(ends), committed=True)
            behind = tuple(at for at, end in ends.items() if stable[at].offset < end.offset)
            if not behind:
                if self._settled is not None and self._looked != self._settled:
                    self._doubtful_until_ms = self._clock.monotonic_ms() + LEADER_NEWS_MS
                self._now = self._settled = self._looked
                return ()
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return behind
            self._cluster.pause(min(pause_ms, left_ms))
            pause_ms = min(pause_ms * 2, LOOK_PAUSE_MAX_MS)
        return behind

    def ended(self) -> None:
        """What this identity had left open at the last look has been taken into a transaction that ends. Its rows
        were taken by the leaders, and its coordinator knew of them: there is no doubt about these."""
        self._now = self._settled = self._looked
        self._doubtful_until_ms = 0

    def _ends(self, partitions: Sequence[Partition], *, committed: bool) -> Mapping[Partition, LogEnd]:
        pause_ms = LOOK_PAUSE_MS
        for _ in range(LEADERLESS_TRIES_MAX):
            try:
                return self._cluster.ends(partitions, committed=committed)
            except Retriable:  # who leads has just changed; silence has had its time already
                self._cluster.pause(pause_ms)
                pause_ms = min(pause_ms * 2, LOOK_PAUSE_MAX_MS)
        return self._cluster.ends(partitions, committed=committed)

    def _in_short(self) -> str:
        """Empty while it proves nothing. Epochs only grow: as many with the same sum are the same."""
        epochs = self._now.values()
        if self._clock.monotonic_ms() < self._doubtful_until_ms or any(epoch < 0 for epoch in epochs):
            return ""
        return f"{len(epochs)}.{sum(epochs)}"

    def _partitions(self) -> list[Partition]:
        """As they are now: topics grow. Those that are gone have taken with them what was open there."""
        return [
            Partition(topic, number)
            for topic, found in self._cluster.describe(sorted(self.topics)).items()
            for number in range(found.partitions)
        ]


def ending_rows(partitions: Collection[Partition]) -> list[RowBlock]:
    """A row for each of these partitions, to be aborted: the abort ends what was open there."""
    numbers: dict[str, list[int]] = {}
    for at in partitions:
        numbers.setdefault(at.topic, []).append(at.number)
    return [
        RowBlock(topic=topic, values=[None] * len(of), keys=[ENDING_KEY] * len(of), partitions=of)
        for topic, of in numbers.items()
    ]


def _epochs(ends: Mapping[Partition, LogEnd]) -> Mapping[Partition, int]:
    return {at: end.leader_epoch for at, end in ends.items()}
