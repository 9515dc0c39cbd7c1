"""Recomputes what a job must have written, with a plain fold, and holds it against what is there."""

from processor.audit.expectation import Audit, AuditKind, CountedState, keyed_count, pass_through

__all__ = ["Audit", "AuditKind", "CountedState", "keyed_count", "pass_through"]
