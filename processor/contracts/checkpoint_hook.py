"""What of an author's takes part in checkpoints beside the coordinator (A7)."""

from __future__ import annotations


class CheckpointHook:
    """Something outside of the records that belongs to a job's checkpoints: the version of a model that is in use,
    a lease, a note for an operator. ``job.hook("model", ModelVersion)``.

    All methods are called from one background thread, one at a time, and may block: no barrier goes out before
    ``take`` has returned, and the checkpoint's time-out counts meanwhile. What ``take`` raises gives the
    checkpoint up. ``completed`` and ``aborted`` are news: after a crash they may be missing, and what they raise
    is logged.
    """

    def take(self, checkpoint: int) -> bytes:
        """A checkpoint begins: what is to be kept with it, up to HOOK_BYTES_MAX."""
        return b""

    def restore(self, data: bytes) -> None:
        """Before anything runs: what the restored checkpoint kept. Not called when it kept nothing."""

    def completed(self, checkpoint: int) -> None:
        """The checkpoint is decided, and all of its output is out."""

    def aborted(self, checkpoint: int) -> None:
        """The checkpoint was given up; whatever it took is of no use."""


HOOK_BYTES_MAX = 2**20
"""Of what one hook keeps: it is part of every entry of the decision log."""
