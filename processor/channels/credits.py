"""How many bytes may be on their way on a channel: the sender's account and the receiver's.

Counted are the bytes of batches from the moment they are sent until the consumer has taken them. Marks are not: they
are few, and one that waited could make a barrier wait for itself.
"""

from __future__ import annotations

from typing import Final

from processor.invariant import invariant

BATCH_OVERHEAD_BYTES: Final = 512
"""What a batch costs beside its bytes: else a window would hold any number of batches of one small record."""


def cost(batch_bytes: int) -> int:
    """What a batch takes from the window; both ends count it alike."""
    return batch_bytes + BATCH_OVERHEAD_BYTES


class SendWindow:
    """The sender's account. The window is soft by what one step of the producer emits, as that of MemoryChannel."""

    def __init__(self, window_bytes: int) -> None:
        invariant(window_bytes > 0, "a window takes at least a byte")
        self._window_bytes = window_bytes
        self.in_flight_bytes = 0
        """Costs of what was sent and not granted back."""

    def open(self) -> bool:
        return self.in_flight_bytes < self._window_bytes

    def sent(self, cost_bytes: int) -> None:
        self.in_flight_bytes += cost_bytes

    def granted(self, cost_bytes: int) -> None:
        """Raises ValueError for more than is on its way."""
        if not 0 < cost_bytes <= self.in_flight_bytes:
            raise ValueError(f"credit of {cost_bytes} bytes for {self.in_flight_bytes} on their way")
        self.in_flight_bytes -= cost_bytes


class ReceiveWindow:
    """The receiver's account: grants back what was taken, half a window at a time.

    A sender whose window is full has at least half of it not yet taken, or has got it granted back: so it never waits
    for a grant that is not due.
    """

    def __init__(self, window_bytes: int) -> None:
        self._due_bytes = max(1, window_bytes // 2)
        self._taken_bytes = 0

    def taken(self, cost_bytes: int) -> int:
        """A batch was taken; returns what is to be granted now, 0: nothing yet."""
        self._taken_bytes += cost_bytes
        if self._taken_bytes < self._due_bytes:
            return 0
        due, self._taken_bytes = self._taken_bytes, 0
        return due
