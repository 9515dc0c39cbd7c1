"""Savepoints opened without the job: what they hold, read, compared and verified."""

from processor.savepoint.difference import Changed, difference
from processor.savepoint.opened import HeldState, HeldTimer, Savepoint, open_savepoint
from processor.savepoint.verification import Verified, verify_files

__all__ = [
    "Changed",
    "HeldState",
    "HeldTimer",
    "Savepoint",
    "Verified",
    "difference",
    "open_savepoint",
    "verify_files",
]
