"""Publishes what is decided, for one identity: take over, compare, send, until everything is out (R11).

The decisions are protocol/publishing; this performs them. Any process may run it, as often as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from processor.contracts.clock import Clock
from processor.contracts.sink import Publisher, TransactionLimits
from processor.errors import (
    DamagedFile,
    Fenced,
    HeldUp,
    LogConflict,
    PublishRefused,
    Retriable,
    TooLarge,
    Unavailable,
)
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import Marker, PublisherId
from processor.invariant import invariant
from processor.protocol.entries import OutboxFile
from processor.protocol.messages import Publication
from processor.protocol.publishing import (
    Done,
    Sealed,
    Send,
    StopLoudly,
    StopQuietly,
    Verdict,
    Wanted,
    judge_opening,
    judge_publication,
)
from processor.protocol.recovery_messages import Opening
from processor.records.rows import RowBlock
from processor.storage.outbox import StoredRows
from processor.storage.outbox_files import OutboxFiles

PAUSE_FIRST_MS = 20
PAUSE_MAX_MS = 2_000
"""Between two tries of a publish: doubled from the first to the longest."""


def _nobody_counts(publisher: PublisherId) -> None:
    """The default of ``PublishTools.failed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTools:
    """What publishing needs beside the publisher itself."""

    outboxes: OutboxFiles
    sealed: Sealed
    timeout_ms: int
    """How long to repeat before the publish counts as unanswered (R25)."""
    clock: Clock
    pause: Callable[[int], None]
    """Waits that many milliseconds, or less when the attempt ends; then it raises."""
    faults: FaultHook
    failed: Callable[[PublisherId], None] = _nobody_counts
    """Told of every try that did not go through and is repeated."""
    gives_way: bool = False
    """One identity is published after another: HeldUp is raised at once, for the turn of another may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What an operator has decided about outboxes that could not be published by themselves (R14, R30)."""

    vouched: bool = False
    """Where no marker is found, nothing is out."""
    leave_out: range = range(0)
    """Rows, counted from 0, that the marker moves past without sending them."""


BY_THE_RULES = Settlement()


def publish(
    publisher: Publisher,
    publication: Publication,
    wanted: Wanted,
    tools: PublishTools,
    settlement: Settlement = BY_THE_RULES,
) -> Marker:
    """Publish all rows of one identity for one decided checkpoint; returns the marker that says so.

    Raises: Unavailable after the time-out (nothing is lost, publish again); HeldUp, if the tools say so; Fenced;
    LogConflict; PublishRefused with the number of the outbox row, from 0; DamagedFile.
    """
    tries = _Tries(publication.publisher, tools)
    limits = publisher.limits
    while True:
        from_row, sent = 0, limits.rows_max
        try:
            seen = publisher.take_over()
            verdict = judge_publication(
                seen,
                wanted=wanted,
                expected=publication.expected,
                sealed=tools.sealed,
                vouched=settlement.vouched,
            )
            start = _from_row(verdict, publication.publisher)
            if start is None:
                return wanted.marker(wanted.rows)
            from_row = start
            chunk = _chunk(tools.outboxes, publication.outboxes, from_row, limits, settlement.leave_out)
            sent = len(chunk)
            publisher.send(wanted.marker(chunk.until), chunk)
        except TooLarge as error:
            if sent <= 1:
                raise _refused(publication.publisher, wanted, from_row, error.message) from error
            # Half of what was sent, which bytes_max may have kept far below rows_max. Each try has the whole
            # time-out: a chunk that is too slow would otherwise be tried in full again by the next publish.
            limits = replace(limits, rows_max=sent // 2)
            tries.progressed()
            tries.again(error)
        except Retriable as error:
            tries.again(error)
        except PublishRefused as error:
            raise _refused(publication.publisher, wanted, from_row + error.row, error.message) from error
        else:
            if chunk.until == wanted.rows:
                return wanted.marker(chunk.until)
            tries.progressed()
            tools.faults(FaultPoint.CHUNK_PUBLISHED)


def _refused(publisher: PublisherId, wanted: Wanted, row: int, why: str) -> PublishRefused:
    return PublishRefused(
        f"row {row + 1} of the {wanted.rows} that checkpoint {wanted.checkpoint} has for {publisher} is refused "
        f"for good: {why}",
        row=row,
        remedy="Mend the outside system and start again; or leave the row out with 'processor outbox skip "
        f"--sink {publisher.sink} --subtask {publisher.subtask} --row {row + 1}'.",
    )


def open_identity(publisher: Publisher, opening: Opening, tools: PublishTools) -> Marker:
    """Write the marker of a new attempt, so that no older one can publish any more (R14)."""
    tries = _Tries(opening.publisher, tools)
    while True:
        try:
            seen = publisher.take_over()
            verdict = judge_opening(
                seen,
                opening=opening.wanted,
                sealed=tools.sealed,
                unrecorded=opening.unrecorded,
                newest_id=opening.newest_id,
                accepted=opening.accepted,
                unreadable=opening.unreadable,
            )
            if isinstance(verdict, StopLoudly) and verdict.damaged:
                raise DamagedFile(
                    f"{opening.publisher}: {verdict.reason} The damage: {opening.damage}",
                    remedy="Restore the file; or start from a savepoint with --from and --accept-duplicates.",
                )
            _from_row(verdict, opening.publisher)
            marker = opening.wanted.marker(opening.wanted.rows)
            publisher.send(marker, ())
            return marker
        except Retriable as error:
            tries.again(error)


def refresh_identity(
    publisher: Publisher, identity: PublisherId, marker: Marker, tools: PublishTools
) -> None:
    """Write the marker of an idle identity again, as it is (R14). Raises like ``publish``."""
    tries = _Tries(identity, tools)
    wanted = Wanted(
        incarnation=marker.incarnation,
        attempt=marker.attempt,
        checkpoint=marker.checkpoint,
        rows=marker.rows,
    )
    while True:
        try:
            seen = publisher.take_over()
            verdict = judge_publication(seen, wanted=wanted, expected=marker, sealed=tools.sealed)
            if _from_row(verdict, identity) is not None:
                raise LogConflict(
                    f"{identity}: the outside system holds {seen} instead of {marker}.",
                    remedy="Find out who else publishes under this identity.",
                )
            publisher.send(marker, ())
        except Retriable as error:
            tries.again(error)
        else:
            return


def _from_row(verdict: Verdict, publisher: PublisherId) -> int | None:
    """Where to send from; None when everything is out. Raises for the verdicts that stop."""
    match verdict:
        case Send(from_row=from_row):
            return from_row
        case Done():
            return None
        case StopQuietly(newer=newer):
            raise Fenced(f"attempt {newer} has taken over {publisher}")
        case StopLoudly(reason=reason, choose=choose):
            remedy = (
                "See what is there, then settle it with 'processor outbox publish' (send it) or 'processor outbox "
                "skip' (it is out already)."
                if choose
                else "Restore the newest copy of the checkpoint directory, or find out who else runs this job."
            )
            raise LogConflict(f"{publisher}: {reason}", remedy=remedy)
        case _:
            assert_never(verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """Rows of one transaction: from some row to before ``until``. Decoded anew each time one goes through them."""

    parts: tuple[StoredRows, ...]
    until: int

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[RowBlock]:
        for part in self.parts:
            yield part.decode()


def _chunk(
    files: OutboxFiles,
    outboxes: tuple[OutboxFile, ...],
    from_row: int,
    limits: TransactionLimits,
    leave_out: range,
) -> _Chunk:
    """Rows from ``from_row`` over all outboxes, numbered one after another, up to a limit; at least one.

    At rows to leave out the chunk ends, and its marker moves past them.
    """
    if from_row in leave_out:
        return _Chunk(parts=(), until=leave_out.stop)
    rows_max = limits.rows_max
    if from_row < leave_out.start:
        rows_max = min(rows_max, leave_out.start - from_row)
    parts: list[StoredRows] = []
    rows, size = 0, 0
    for part in _rows_from(files, outboxes, from_row):
        taken = part.first(rows_max - rows)
        parts.append(taken)
        rows += len(taken)
        size += taken.size_bytes
        if rows >= rows_max or size >= limits.bytes_max:
            break
    invariant(rows > 0, "an outbox has the rows that its entry counts")
    until = from_row + rows
    return _Chunk(parts=tuple(parts), until=leave_out.stop if until in leave_out else until)


def _rows_from(files: OutboxFiles, outboxes: tuple[OutboxFile, ...], from_row: int) -> Iterator[StoredRows]:
    first = 0
    for outbox in outboxes:
        last = first + outbox.rows
        if last > from_row:
            yield from files.read(outbox.file, max(from_row - first, 0))
        first = last


class _Tries:
    """Pauses between tries, and gives up at the time-out."""

    def __init__(self, publisher: PublisherId, tools: PublishTools) -> None:
        self._publisher = publisher
        self._tools = tools
        self._deadline_ms = tools.clock.monotonic_ms() + tools.timeout_ms
        self._pause_ms = PAUSE_FIRST_MS

    def progressed(self) -> None:
        """A transaction went through, or is made smaller: the time-out is for each, not for all of them."""
        self._deadline_ms = self._tools.clock.monotonic_ms() + self._tools.timeout_ms
        self._pause_ms = PAUSE_FIRST_MS

    def again(self, error: Retriable) -> None:
        self._tools.failed(self._publisher)
        if self._tools.gives_way and isinstance(error, HeldUp):
            raise error
        if self._tools.clock.monotonic_ms() + self._pause_ms >= self._deadline_ms:
            raise Unavailable(
                f"{self._publisher} could not be published within {self._tools.timeout_ms} ms: {error}",
                remedy="Nothing is lost: it is published when the outside system answers again.",
            ) from error
        self._tools.pause(self._pause_ms)
        self._pause_ms = min(self._pause_ms * 2, PAUSE_MAX_MS)
