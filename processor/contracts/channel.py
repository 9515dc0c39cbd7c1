"""The link between two subtasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from processor.records.elements import Barrier, Element


class ChannelSender(Protocol):
    def ready(self) -> bool:
        """Whether a batch may be sent now; False is back-pressure. Marks may always be sent: there are
        few, and one that had to wait could make a barrier wait for itself."""
        ...

    def send(self, element: Element) -> None: ...


class ChannelReceiver(Protocol):
    def peek(self) -> Element | None: ...

    def take(self) -> Element:
        """The next element; only when ``peek`` shows one."""
        ...

    def barriers(self) -> Sequence[Barrier]:
        """The barriers that are on their way, in order, whatever is in front of them."""
        ...

    def overtake(self, barrier: Barrier) -> tuple[Element, ...]:
        """Take one of ``barriers`` out of its turn; returns what was in front of it, which stays."""
        ...
