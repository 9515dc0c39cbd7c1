"""The second phase of a snapshot (B3)."""

from __future__ import annotations

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Completion(Protocol[T_co]):
    """All I/O of a snapshot, in the background, after the cut."""

    def run(self) -> T_co:
        """Write what the cut froze; raises like the stores do."""
        ...

    def discard(self) -> None:
        """On abort or cancellation; idempotent, also after ``run``. Frozen state stays readable and is part
        of the next snapshot."""
        ...
