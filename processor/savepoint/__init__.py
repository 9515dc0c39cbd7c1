"""Savepoints without the job: what they hold, read, compared, verified, changed, and made from nothing."""

from processor.savepoint.difference import Changed, difference
from processor.savepoint.exported import ExportFormat, export, rows_of
from processor.savepoint.new_savepoint import NewSavepoint
from processor.savepoint.opened import HeldState, HeldTimer, Savepoint, open_savepoint
from processor.savepoint.rewriting import Change, rewrite_savepoint
from processor.savepoint.verification import Verified, verify_files

__all__ = [
    "Change",
    "Changed",
    "ExportFormat",
    "HeldState",
    "HeldTimer",
    "NewSavepoint",
    "Savepoint",
    "Verified",
    "difference",
    "export",
    "open_savepoint",
    "rewrite_savepoint",
    "rows_of",
    "verify_files",
]
