"""Event time of a source subtask, out of what was seen in each split. Pure: time comes in as an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from processor.ids import SplitId
from processor.records.elements import MAX_TIME_MS, MIN_TIME_MS


@dataclass(slots=True)
class _Split:
    largest_ms: int
    """Largest event time seen, MIN_TIME_MS before the first record."""
    active_ms: int
    """Monotonic time of the last record, or since when the split might have given one."""
    ended: bool = False


class SplitWatermarks:
    """Bounded disorder per split: a split promises that nothing older than its largest event time less
    ``disorder_ms`` follows; the subtask promises the minimum over its splits.

    A split without records for ``idle_after_ms`` is left out until its next record, and one that has ended
    for good. A split that has given no record yet, and is not idle, holds event time back: nobody knows where
    it stands. The watermark never goes back, whatever a split that wakes up brings: those records are late.
    """

    def __init__(self, *, disorder_ms: int, idle_after_ms: int | None = None) -> None:
        self._disorder_ms = disorder_ms
        self._idle_after_ms = idle_after_ms
        self._splits: dict[SplitId, _Split] = {}
        self._watermark_ms = MIN_TIME_MS

    def assign(self, split: SplitId, now_ms: int, largest_ms: int | None = None) -> None:
        """Begin with a split; ``largest_ms`` is what a checkpoint says was seen in it (R27)."""
        seen = MIN_TIME_MS if largest_ms is None else largest_ms
        self._splits[split] = _Split(largest_ms=seen, active_ms=now_ms)

    def saw(self, split: SplitId, largest_ms: int, now_ms: int) -> None:
        """A batch of the split came, ``largest_ms`` its largest event time."""
        state = self._splits[split]
        state.active_ms = now_ms
        if largest_ms > state.largest_ms:
            state.largest_ms = largest_ms

    def ended(self, split: SplitId) -> None:
        """The split is read to its end: nothing waits for it any more."""
        self._splits[split].ended = True

    def resumed(self, now_ms: int) -> None:
        """The subtask did not read for a while (back-pressure): no split was silent in that time."""
        for state in self._splits.values():
            state.active_ms = now_ms

    def advance(self, now_ms: int) -> int | None:
        """The watermark, MIN_TIME_MS while nothing is known; None: idle, all splits are silent or ended."""
        active = [state for state in self._splits.values() if not self._silent(state, now_ms)]
        if not active:
            return None
        slowest = min(state.largest_ms for state in active)
        self._watermark_ms = max(self._watermark_ms, slowest - self._disorder_ms)
        return self._watermark_ms

    def next_idle_ms(self, now_ms: int) -> int | None:
        """When, on the monotonic clock, the next split turns idle if nothing comes; None: none will."""
        if self._idle_after_ms is None:
            return None
        return min(
            (
                state.active_ms + self._idle_after_ms
                for state in self._splits.values()
                if not self._silent(state, now_ms)
            ),
            default=None,
        )

    def largest(self) -> Mapping[SplitId, int]:
        """What a checkpoint keeps: the largest event time per split that has given a record."""
        return {
            split: state.largest_ms
            for split, state in self._splits.items()
            if MIN_TIME_MS < state.largest_ms < MAX_TIME_MS
        }

    def _silent(self, state: _Split, now_ms: int) -> bool:
        if state.ended:
            return True
        return self._idle_after_ms is not None and now_ms - state.active_ms >= self._idle_after_ms
