"""What a channel carries: batches, and the marks that stand between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from processor.ids import Attempt, CheckpointId
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """The mark of one checkpoint in the data: everything before it belongs to the checkpoint."""

    attempt: Attempt
    checkpoint: CheckpointId
    kind: CheckpointKind
    overtakes: bool = False
    """The sender did not wait until it was aligned: nobody behind it need wait for the time-out again."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with a smaller timestamp is expected on this input, except late ones."""

    time_ms: int

    @property
    def last(self) -> bool:
        """Nothing follows but the end of the input."""
        return self.time_ms >= MAX_TIME_MS


@dataclass(frozen=True, slots=True)
class Idle:
    """This input is silent; event time does not wait for it until its next watermark."""


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """Nothing follows on this input."""


Element = Batch[Any] | Watermark | Barrier | Idle | EndOfInput

MIN_TIME_MS = -(2**62)
"""Before every timestamp: the watermark of an input that has not said anything."""

MAX_TIME_MS = 2**62
"""After every timestamp: the watermark at the end of a bounded input."""
