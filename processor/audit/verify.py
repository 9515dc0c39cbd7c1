"""Looks at every invariant that the evidence allows (reliability: prefix fold to savepoint seam)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from processor.audit.comparison import comparison
from processor.audit.expectation import Audit
from processor.audit.finding import Finding, not_looked_at
from processor.audit.held_counts import held_counts
from processor.audit.monotone import monotone_finding, positions_of
from processor.audit.nothing_hangs import nothing_hangs_finding
from processor.audit.prefix_fold import NAME as PREFIX_FOLD
from processor.audit.prefix_fold import PrefixFold
from processor.audit.report import AuditReport
from processor.audit.seam import seam_finding
from processor.audit.state import NAME as STATE
from processor.audit.state import state_finding
from processor.audit.whole_transactions import NAME as WHOLE_TRANSACTIONS
from processor.audit.whole_transactions import Sample, TransactionSpan, whole_transactions_finding
from processor.contracts.file_store import FileStore
from processor.contracts.topic_reader import TopicReader
from processor.errors import ProcessorError
from processor.ids import JobName, SplitId
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry, Published

HANG_LIMIT_S = 30.0
"""How long an open transaction may hold readers back before it counts as hanging: a restart takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What somebody saw who was there all the time (invariant 3)."""

    spans: Sequence[TransactionSpan]
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that is looked at."""

    job: JobName
    audit: Audit
    log: LogView
    published: Published | None
    files: FileStore
    inputs: TopicReader
    outputs: TopicReader
    targets: tuple[str, ...]
    """Output topics as the brokers call them."""
    starts: Mapping[SplitId, int] = field(default_factory=dict)
    """Input before these offsets has its output elsewhere: the job was started from a savepoint into other
    topics. A split that is not named starts at its first record."""
    retained: int = 2
    """Checkpoints whose files are kept: the newest and its parent at least."""
    running: bool = False
    """The job runs on: output may go beyond the newest checkpoint known."""
    witness: Witness | None = None
    hang_limit_s: float = HANG_LIMIT_S


def verify(evidence: Evidence, progress: Callable[[str], None] = lambda what: None) -> AuditReport:
    """Look at everything; ``progress`` is told what is next. Raises what the readers raise."""
    findings: list[Finding] = []
    newest = evidence.log.newest()
    progress("reading input and output")
    findings.append(_prefix_fold(evidence, newest))
    progress("reading the state of the retained checkpoints")
    findings.append(_state(evidence))
    if evidence.witness is None:
        findings.append(not_looked_at(WHOLE_TRANSACTIONS, "needs a reader that was there all the time"))
    else:
        findings.append(whole_transactions_finding(evidence.witness.spans, evidence.witness.samples))
    findings.append(monotone_finding(evidence.log, evidence.published))
    progress("waiting for open transactions")
    splits = _output_splits(evidence)
    findings.append(nothing_hangs_finding(evidence.outputs, splits, within_s=evidence.hang_limit_s))
    findings.append(seam_finding(evidence.log))
    return AuditReport(job=evidence.job, findings=tuple(findings))


def _output_splits(evidence: Evidence) -> tuple[SplitId, ...]:
    return tuple(split for target in evidence.targets for split in evidence.outputs.splits(target))


def _prefix_fold(evidence: Evidence, newest: CheckpointEntry | None) -> Finding:
    if newest is None:
        return not_looked_at(PREFIX_FOLD, "the job has decided no checkpoint")
    whole = newest
    while whole.records_in_flight and not whole.stop:
        # What is in flight is read and not out. The fold is known at the newest ancestor without; what has come out
        # behind it is ahead of it, and right. Of a job that was stopped everything is out.
        parent = evidence.log.parent_of(whole)
        if parent is None:
            return not_looked_at(PREFIX_FOLD, "every checkpoint in the log holds records in flight")
        whole = parent
    positions = positions_of(whole, evidence.audit.source)
    missing = _no_longer_kept(evidence, positions)
    if missing:
        return not_looked_at(PREFIX_FOLD, missing)
    fold = PrefixFold(comparison(evidence.audit), running=evidence.running or whole is not newest)
    fold.read_input(evidence.inputs, evidence.starts, positions)
    fold.read_output(evidence.outputs, _output_splits(evidence))
    return fold.finding()


def _state(evidence: Evidence) -> Finding:
    audit, state = evidence.audit, evidence.audit.state
    if state is None or audit.keys is None:
        return not_looked_at(STATE, "the audit names no state that holds counts")
    restorable = _restorable(evidence.log, evidence.retained)
    # The state of a checkpoint with records in flight lags behind its positions by what they would have done.
    branch = {entry.checkpoint: entry for entry in restorable if not entry.records_in_flight}
    if not branch and restorable:
        return not_looked_at(STATE, "every retained checkpoint holds records in flight")
    positions = {checkpoint: positions_of(entry, audit.source) for checkpoint, entry in branch.items()}
    for each in positions.values():
        missing = _no_longer_kept(evidence, each)
        if missing:
            return not_looked_at(STATE, missing)
    try:
        return state_finding(
            audit.keys,
            evidence.inputs,
            positions,
            lambda checkpoint: held_counts(branch[checkpoint], evidence.files, state),
        )
    except ProcessorError as error:
        if not evidence.running:
            raise
        return not_looked_at(STATE, f"the running job moved on meanwhile: {error.message}")


def _restorable(log: LogView, retained: int) -> list[CheckpointEntry]:
    """The newest checkpoint and its ancestors, as many as are kept with their files (R7); entries of others
    stay in the log for longer than their files do."""
    found: list[CheckpointEntry] = []
    entry = log.newest()
    while entry is not None and len(found) < retained:
        found.append(entry)
        entry = log.parent_of(entry)
    return found


def _no_longer_kept(evidence: Evidence, positions: Mapping[SplitId, int]) -> str:
    """Why the fold cannot be computed, "" when it can."""
    first = evidence.inputs.starts(tuple(positions))
    gone = [split for split, offset in first.items() if offset > 0 and positions[split] > 0]
    if not gone:
        return ""
    return f"input before offset {first[gone[0]]} of {gone[0]} is no longer kept, so the fold is not known"
