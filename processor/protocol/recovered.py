"""What a recovery hands to the attempt that runs next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from processor.ids import Attempt, CheckpointId, Incarnation, Marker, Place, PublisherId
from processor.protocol.entries import CheckpointEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """Sealed, published, opened: ready to restore and run."""

    attempt: Attempt
    incarnation: Incarnation
    next_place: Place
    entry: CheckpointEntry
    """The checkpoint to restore; there always is one (R4)."""
    next_checkpoint: CheckpointId
    """Above every id in any entry of the log."""
    markers: Mapping[PublisherId, Marker]
    """What every identity's marker is after its opening (R14)."""

    @property
    def checkpoint(self) -> CheckpointId:
        return self.entry.checkpoint
