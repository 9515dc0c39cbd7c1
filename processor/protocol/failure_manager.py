"""Why checkpoints are given up, and how many in a row may be before the attempt fails (A16)."""

from __future__ import annotations

from enum import StrEnum


class GivenUp(StrEnum):
    """Why a checkpoint was not decided."""

    PARTICIPANT_FAILED = "participant-failed"
    """Somebody on the coordinator's side could not take part (A7)."""
    NOT_PREPARED = "not-prepared"
    """Somebody on the coordinator's side did not answer in time."""
    DECLINED = "declined"
    """A subtask could not take its snapshot."""
    EXPIRED = "expired"
    """Not all acknowledgements came in time."""
    OUTDATED = "outdated"
    """A subtask built on files that are no longer kept for it."""
    SUBSUMED = "subsumed"
    """A newer one is complete, or was given up, which all subtasks take to end the older ones too (R26)."""

    @property
    def before_barriers(self) -> bool:
        """Whether no subtask had heard of the checkpoint yet."""
        return self in (GivenUp.PARTICIPANT_FAILED, GivenUp.NOT_PREPARED)

    @property
    def counts(self) -> bool:
        """Whether it is a failure; being overtaken is none."""
        return self is not GivenUp.SUBSUMED


class FailureManager:
    """Counts consecutive failures, those before and after the barriers apart; one published checkpoint resets
    the count."""

    def __init__(self, tolerated: int) -> None:
        self._tolerated = tolerated
        self._before_barriers = 0
        self._after_barriers = 0

    @property
    def consecutive(self) -> int:
        return self._before_barriers + self._after_barriers

    def failed(self, reason: GivenUp) -> bool:
        """Count one; True when the attempt must fail."""
        if not reason.counts:
            return False
        if reason.before_barriers:
            self._before_barriers += 1
        else:
            self._after_barriers += 1
        return self.consecutive > self._tolerated

    def text(self) -> str:
        """The failures in a row, for people."""
        return f"{self._after_barriers} in a row, and {self._before_barriers} before their barriers"

    def succeeded(self) -> None:
        self._before_barriers = self._after_barriers = 0
