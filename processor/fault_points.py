"""The named points of a checkpoint and a recovery at which a fault can be put.

A hook is passed in where the points are; production passes ``no_faults``. A test's hook kills, stops or
raises there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final


class FaultPoint(StrEnum):
    """In the order in which a checkpoint, then a recovery, then a worker process passes them."""

    POLL_BEFORE_PROCESS = "poll-before-process"
    POSITIONS_TAKEN = "positions-taken"
    BARRIER_INJECTED = "barrier-injected"
    CUT_TAKEN = "cut-taken"
    STATE_WRITTEN_OUTBOX_NOT = "state-written-outbox-not"
    ALL_WRITTEN_NOT_ACKNOWLEDGED = "all-written-not-acknowledged"
    ALL_ACKNOWLEDGED = "all-acknowledged"
    ENTRY_SYNCED_NOT_LINKED = "entry-synced-not-linked"
    LINKED_DIRECTORY_NOT_SYNCED = "linked-directory-not-synced"
    ENTRY_TAKEN_NOT_TOLD = "entry-taken-not-told"
    TAKEN_OVER_MARKER_NOT_READ = "taken-over-marker-not-read"
    MARKER_READ = "marker-read"
    HALF_SENT = "half-sent"
    ALL_SENT_NOT_COMMITTED = "all-sent-not-committed"
    COMMIT_SENT_ANSWER_NOT_SEEN = "commit-sent-answer-not-seen"
    CHUNK_PUBLISHED = "chunk-published"
    SOME_SINKS_PUBLISHED = "some-sinks-published"
    PUBLISHED_NOT_RECORDED = "published-not-recorded"
    OLDER_HALF_DELETED = "older-half-deleted"
    RECOVERY_SEALED = "recovery-sealed"
    RECOVERY_BEFORE_PUBLISHING = "recovery-before-publishing"
    RECOVERY_AFTER_PUBLISHING = "recovery-after-publishing"
    RECOVERY_OPENING = "recovery-opening"
    RECOVERY_STATE_HALF_READ = "recovery-state-half-read"
    SAVEPOINT_WRITTEN = "savepoint-written"
    DEPLOY_RECEIVED = "deploy-received"
    BUILT_NOT_TOLD = "built-not-told"
    RELEASING = "releasing"


OF_WORKERS: Final = (FaultPoint.DEPLOY_RECEIVED, FaultPoint.BUILT_NOT_TOLD, FaultPoint.RELEASING)
"""Passed by worker processes of their own: an older attempt may be open still; all is restored, and nobody knows; the
attempt is over, and everything of it is open."""


FaultHook = Callable[[FaultPoint], None]


def no_faults(point: FaultPoint) -> None:
    """The hook of production: nothing happens."""
