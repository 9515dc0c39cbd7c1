"""What the person who starts a job asks for, beside settings: where to begin, and what to accept."""

from __future__ import annotations

from dataclasses import dataclass

from processor.runtime.renaming import Renaming


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """By default a job goes on from its newest checkpoint, or starts afresh when it has none."""

    fresh: bool = False
    """Rewind to the sources' start positions and empty state (R3)."""
    origin: str | None = None
    """Rewind to this savepoint or checkpoint directory (R3). Never together with ``fresh``."""
    claim: bool = False
    """The checkpoint directory that ``origin`` names is given up to this job: its log is sealed, its files taken over
    and removed there (R22)."""
    request: str | None = None
    """Name of the rewind: the same name does not rewind twice. None: the origin's identity (R3)."""
    take_over: str | None = None
    """The incarnation whose markers may be taken over although the log is of another one (R2)."""
    accept_duplicates: bool = False
    """Allow a rewind behind output that is already published into the same topics (R3)."""
    dropped_state: frozenset[str] = frozenset()
    """Steps that the job no longer has, and whose state it may be started without (C5)."""
    renamed: tuple[Renaming, ...] = ()
    """Steps and states that the checkpoint knows under other names (C5)."""
