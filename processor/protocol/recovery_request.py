"""What a recovery starts from: the job as it is, and what the operator asked for."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from processor.ids import Incarnation, JobName
from processor.invariant import invariant
from processor.protocol.entries import JobShape, SinkRecord
from processor.protocol.recovery_messages import RecoveryAction, RecoveryReply

FRESH = "fresh"
"""The origin of a branch that starts from nothing."""

R = TypeVar("R")
Recovery = Generator[RecoveryAction, RecoveryReply, R]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """What the operator asked for beside "go on where you were"."""

    origin: str | None = None
    """FRESH, a path, or None: go on."""
    token: str | None = None
    """Name of the rewind; None: the origin's own identity (R3)."""
    take_over: Incarnation | None = None
    accept_duplicates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """The job as it is about to run."""

    job: JobName
    shape: JobShape
    sinks: tuple[SinkRecord, ...]


A = TypeVar("A", bound=RecoveryReply)


def ask(action: RecoveryAction, reply_type: type[A]) -> Recovery[A]:
    reply = yield action
    invariant(isinstance(reply, reply_type), f"{type(action).__name__} is answered by {reply_type.__name__}")
    assert isinstance(reply, reply_type)
    return reply
