"""Entries of a decision log as text for people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import assert_never

from processor.cli.table import aligned
from processor.errors import JobError
from processor.ids import NO_CHECKPOINT
from processor.protocol.entries import CheckpointEntry, Entry, Published, Rewind, Seal, SubtaskSnapshot
from processor.settings.units import size_text


def list_text(entries: Sequence[Entry], published: Published | None) -> str:
    """One line an entry. ``published`` is what the note beside the log says."""
    if not entries:
        return "the decision log is empty"
    head = ("PLACE", "ATTEMPT", "ENTRY", "DECIDED", "STATE", "OUTPUT", "NOTES")
    return "\n".join(aligned([head, *(_row(entry, published) for entry in entries)]))


def chosen(entries: Sequence[Entry], number: int | None, job: str) -> CheckpointEntry:
    """The newest checkpoint, or the newest of that number. Raises JobError naming those there are."""
    checkpoints = [entry for entry in entries if isinstance(entry, CheckpointEntry)]
    if not checkpoints:
        raise JobError(
            f"job '{job}' has no decided checkpoint.", remedy="See 'processor checkpoints list' for its log."
        )
    entry = found(entries, number)
    if entry is not None:
        return entry
    kept = ", ".join(str(entry.checkpoint) for entry in checkpoints)
    raise JobError(f"job '{job}' has no checkpoint {number}.", remedy=f"Choose one that is kept: {kept}.")


def found(entries: Sequence[Entry], number: int | None) -> CheckpointEntry | None:
    """The newest checkpoint, or the newest of that number, if it is kept."""
    return next(
        (
            entry
            for entry in reversed(entries)
            if isinstance(entry, CheckpointEntry) and number in (None, entry.checkpoint)
        ),
        None,
    )


def show_text(entry: CheckpointEntry, published: Published | None) -> str:
    """Everything the entry says, in the order in which it matters."""
    facts = [
        ("checkpoint", str(entry.checkpoint)),
        ("parent", "none" if entry.parent == NO_CHECKPOINT else str(entry.parent)),
        ("decided", _time(entry.taken_ms)),
        ("place in the log", str(entry.place)),
        ("attempt", str(entry.attempt)),
        ("incarnation", entry.incarnation),
        ("maximum parallelism", str(entry.shape.max_parallelism)),
    ]
    if notes := _notes(entry, published):
        facts.append(("notes", notes))
    parts = ["\n".join(aligned(facts))]
    for title, rows in (
        ("positions", _positions(entry)),
        ("state", _state(entry)),
        ("in flight", _in_flight(entry)),
        ("output", _output(entry)),
        ("expected markers", [(str(who), str(marker)) for who, marker in entry.expected]),
    ):
        if rows:
            parts.append("\n".join([f"{title}:", *(f"  {line}" for line in aligned(rows))]))
    return "\n\n".join(parts)


def _row(entry: Entry, published: Published | None) -> tuple[str, ...]:
    place, attempt = str(entry.place), str(entry.attempt)
    match entry:
        case Seal():
            return (place, attempt, "seal", "-", "-", "-", f"incarnation {entry.incarnation}")
        case Rewind():
            notes = f"to {entry.origin}, away from checkpoint {entry.parent}, request {entry.token}"
            return (place, attempt, "rewind", "-", "-", "-", notes)
        case CheckpointEntry():
            state = size_text(sum(_state_bytes(subtask) for subtask in entry.subtasks))
            rows = sum(outbox.rows for subtask in entry.subtasks for outbox in subtask.outboxes)
            what = f"checkpoint {entry.checkpoint}"
            return (
                place,
                attempt,
                what,
                _time(entry.taken_ms),
                state,
                f"{rows} rows",
                _notes(entry, published) or "-",
            )
        case _:
            assert_never(entry)


def _notes(entry: CheckpointEntry, published: Published | None) -> str:
    notes = []
    if published is not None and published.checkpoint == entry.checkpoint:
        notes.append("published")
    if entry.parent == NO_CHECKPOINT:
        notes.append("first of its branch")
    if entry.savepoint:
        notes.append(f"savepoint {entry.savepoint}")
    if entry.stop:
        notes.append("last of its attempt")
    if entry.drained:
        notes.append("drained")
    return ", ".join(notes)


def _positions(entry: CheckpointEntry) -> list[tuple[str, ...]]:
    return [
        (str(source.step), str(split), f"next {position.next}", _end(position.end))
        for subtask in entry.subtasks
        for source in subtask.sources
        for split, position in sorted(source.positions.items())
    ]


def _end(end: int | None) -> str:
    return "" if end is None else f"of {end}"


def _state(entry: CheckpointEntry) -> list[tuple[str, ...]]:
    return [
        (
            f"{state.step}[{subtask.subtask.index}]",
            f"key groups {state.key_groups.start}-{state.key_groups.stop - 1}"
            if state in subtask.keyed
            else "of the subtask",
            size_text(sum(file.bytes for file in state.files())),
            ", ".join(f"{name}: {kind}" for name, kind in state.states.items()) or "-",
            state.file.name,
        )
        for subtask in entry.subtasks
        for state in (*subtask.keyed, *subtask.operators)
    ]


def _in_flight(entry: CheckpointEntry) -> list[tuple[str, ...]]:
    return [
        (
            str(subtask.subtask),
            f"{channel.records} records",
            size_text(channel.file.bytes),
            str(channel.edge),
            channel.file.name,
        )
        for subtask in entry.subtasks
        for channel in subtask.channels
    ]


def _output(entry: CheckpointEntry) -> list[tuple[str, ...]]:
    return list(_output_rows(entry))


def _output_rows(entry: CheckpointEntry) -> Iterator[tuple[str, ...]]:
    for publisher, outboxes in entry.outboxes().items():
        for outbox in outboxes:
            yield (
                f"{publisher.sink}[{publisher.subtask}]",
                f"{outbox.rows} rows",
                size_text(outbox.file.bytes),
                f"cut at checkpoint {outbox.cut}",
                outbox.file.name,
            )


def _state_bytes(subtask: SubtaskSnapshot) -> int:
    return sum(file.bytes for file in subtask.state_files())


def _time(wall_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall_ms / 1_000))
