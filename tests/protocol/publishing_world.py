"""The world of the publishing model: what is kept to, what may happen, and what a state consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

ROOT = 0
"""The checkpoint that every log of the model begins with. It has no rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is kept. Each False is an ablation."""

    seal: bool = True
    """R1: an attempt takes a place of the log first; from then on entries of older ones are refused."""
    seal_before_reading: bool = True
    """R1: the log is read after sealing it, not before."""
    token: bool = True
    """R3: a rewind whose token the newest rewind has is not carried out again."""
    publish_before_rewind: bool = True
    """R3: what the old branch decided is published before the branch is left."""
    stop_if_unreadable_is_out: bool = True
    """R8: going back from a checkpoint that a marker names stops the job."""
    one_identity: bool = True
    """R10: every attempt publishes under the same transactional id."""
    compare: bool = True
    """R11: rows are left out when the marker says that they are out."""
    read_after_taking_over: bool = True
    """R11: the marker is read after earlier publishers were shut out."""
    new_producer: bool = True
    """R12: every transaction has a producer of its own."""
    one_after_another: bool = True
    """R13: the next checkpoint is decided when the one before is published everywhere."""
    opening: bool = True
    """R14: markers of the new attempt are written for every identity before it runs."""
    nonce: bool = True
    """R15: an answer that does not hold the nonce just written is no answer."""
    nonce_after_taking_over: bool = True
    """R15: the nonce is written after earlier publishers were shut out."""
    rows_in_marker: bool = True
    """R16: a checkpoint that is out in part is continued at the next row."""
    all_rows_before_done: bool = True
    """R16: a marker with fewer rows than the checkpoint has is not the end of it."""
    identities_of_entry: bool = True
    """R18: a checkpoint is published under the identities of its entry, whatever the new parallelism."""
    open_all_since_restored: bool = True
    """R18: the identities of every entry and seal since the restored checkpoint are opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What of the world is in one exploration; everything within it is looked at."""

    parallelism: tuple[int, ...]
    """Of each attempt, oldest first: as many attempts as numbers. One sink, so one identity a subtask."""
    parallelism_before: int = 1
    """Of the root checkpoint."""
    checkpoints: int = 1
    """Decided by each attempt, at most."""
    rows: int = 1
    """Of each identity in each checkpoint. A transaction holds any number of those that are left."""
    unreadable: bool = True
    """An attempt may find the newest checkpoint unreadable; the next one may find it readable."""
    requests: tuple[str, ...] = ()
    """Token of the rewind that each attempt was started with, "" for none."""
    stale_reads: bool = False
    """A read of the marker may be answered from any earlier time, unless the nonce shows it."""
    torn: bool = False
    """Adding rows, adding the marker and committing are three steps; commit requests arrive again later."""


class Entry(NamedTuple):
    """One entry of the log. A rewind stands for its branch's first, empty checkpoint too (R4)."""

    kind: str
    attempt: int
    checkpoint: int
    parent: int
    identities: int
    """As bits, like every set of identities here."""
    token: str = ""


MarkerSeen = tuple[int, int, int] | None
"""(attempt, checkpoint, rows), or none was ever written."""


class Transaction(NamedTuple):
    """Rows ``first <= row < rows`` of a checkpoint; ``marked`` once the marker was added."""

    attempt: int
    checkpoint: int
    first: int
    rows: int
    marked: bool


class Identity(NamedTuple):
    """One publisher identity as the outside system has it."""

    owner: int
    """The attempt whose producer initialised last, 0 for none."""
    open: Transaction | None
    late: bool
    """A commit request of the owner's producer is still under way."""
    markers: tuple[MarkerSeen, ...]
    """Newest last; earlier ones only where reads may be stale."""
    out: tuple[tuple[int, int], ...]
    """(checkpoint, row) in the order in which a reader sees them."""


class Process(NamedTuple):
    """One attempt that has begun and not stopped."""

    phase: str
    """publish (in recovery), rewind, open, back, run, own (publishing what it decided itself)."""
    target: int
    """The checkpoint to publish, to open with, or to run from."""
    todo: int
    """Identities still to be done in this phase, the one under work included."""
    at: int
    """The identity under work, -1 between two."""
    step: str
    """What comes next there: init, nonce, read, early, send, mark, commit; "" between two."""
    first: int
    """Row to send next."""
    since: int
    """Place in the markers' history when the nonce was written: no answer with the nonce is older."""
    seen: MarkerSeen
    """The marker read before taking over, in the ablation that does so."""
    knows: int
    """How many entries of the log it has read."""
    decided: int


State = tuple[tuple[Entry, ...], tuple[Identity, ...], tuple[Process | None, ...]]
"""Log, identities, attempts that have begun: None for one that has stopped."""

Change = tuple[str, Process | None, tuple[Entry, ...], Identity | None]
"""What happened, and the process, the log and the identity under work afterwards (None: as it was)."""


class WrongStep(Exception):
    """A step was taken that must not be possible: somebody stopped loudly without a reason."""
