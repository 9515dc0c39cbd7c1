"""Checkpoints into the canonical format and back: each table of each subtask is one file of Avro.

A conversion reads what a decided checkpoint holds, entry by entry, and knows nothing of backends. What it writes
holds every entry once, without what was removed, and names no key group: so a job may start from it with another
maximum parallelism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import TIMER_DESCRIPTION
from processor.ids import FileRef, KeyGroupRange, StepName, escape_name
from processor.invariant import invariant
from processor.protocol.entries import CheckpointEntry, ReachedEventTime, StateFile, SubtaskSnapshot
from processor.records.key_groups import encode_key
from processor.savepoint.avro_file import write_avro
from processor.savepoint.held import HeldEntries
from processor.savepoint.tables import HeldTable, entries_of, tables_of
from processor.storage.layout import FileKind
from processor.storage.snapshot_file import SnapshotFiles

ReadEntries = Callable[[FileStore, SubtaskSnapshot, HeldTable], Iterator[HeldEntries]]


def avro_name(step: StepName, table: str, token: str) -> str:
    """Where a file lies in a savepoint: people look for it by step and state."""
    return f"{escape_name(step)}/{escape_name(table)}/{token}.{FileKind.AVRO}"


def to_canonical(
    entry: CheckpointEntry,
    source: FileStore,
    target: FileStore,
    token: Callable[[], str],
    converted: Callable[[int], None],
    *,
    read: ReadEntries | None = None,
) -> tuple[SubtaskSnapshot, ...]:
    """Write all state that ``entry.shape`` names, of a checkpoint that has nothing in flight, into ``target``.
    ``converted`` is told of so many entries more: it may take long. ``read`` gives what is to be written of a table.

    Raises DamagedFile by name, JobError, Unavailable.
    """
    invariant(not entry.records_in_flight, "a savepoint is aligned")

    def entries(subtask: SubtaskSnapshot, table: HeldTable) -> Callable[[], Iterator[HeldEntries]]:
        def begin() -> Iterator[HeldEntries]:
            found = (
                entries_of(source, subtask, table, plain=True)
                if read is None
                else read(source, subtask, table)
            )
            for some in found:
                yield some
                converted(len(some.keys))

        return begin

    def written(subtask: SubtaskSnapshot, owned: tuple[StateFile, ...], keyed: bool) -> tuple[StateFile, ...]:
        files = (
            _to_avro(subtask, table, key_groups, target, token, entries(subtask, table))
            for step, key_groups in {held.step: held.key_groups for held in owned}.items()
            for table in tables_of(entry, step, keyed=keyed)
        )
        return tuple(file for file in files if file is not None)

    return tuple(_with(subtask, written) for subtask in entry.subtasks)


def _with(
    subtask: SubtaskSnapshot,
    written: Callable[[SubtaskSnapshot, tuple[StateFile, ...], bool], tuple[StateFile, ...]],
) -> SubtaskSnapshot:
    """With other files of state, of keys and of its own."""
    keyed, operators = written(subtask, subtask.keyed, True), written(subtask, subtask.operators, False)
    return replace(subtask, keyed=keyed, operators=operators, outboxes=())


def _to_avro(
    subtask: SubtaskSnapshot,
    table: HeldTable,
    key_groups: KeyGroupRange,
    target: FileStore,
    token: Callable[[], str],
    entries: Callable[[], Iterator[HeldEntries]],
) -> StateFile | None:
    ref = write_avro(
        lambda: target.create(avro_name(table.step, table.name, token())),
        entries,
        step=table.step,
        table=table.name,
        state=table.state,
        # At another parallelism a list is dealt out anew, at the same each gets what it had: nothing is something.
        even_if_empty=table.redistribution is not None,
    )
    if ref is None:
        return None
    states = {table.name: table.state} if table.state else {}
    return StateFile(step=table.step, file=ref, key_groups=key_groups, states=states, table=table.name)


def from_canonical(
    entry: CheckpointEntry,
    source: FileStore,
    target: FileStore,
    name: Callable[[SubtaskSnapshot], str],
    max_parallelism: int,
    converted: Callable[[int], None],
) -> tuple[SubtaskSnapshot, ...]:
    """Write the state of a canonical savepoint as snapshots of a job with so many key groups; ``name`` names a new
    file, ``converted`` is told of so many entries more. Raises DamagedFile by name, Unavailable."""
    same = max_parallelism == entry.shape.max_parallelism
    everywhere = KeyGroupRange(0, max_parallelism)

    def written(subtask: SubtaskSnapshot, owned: tuple[StateFile, ...], keyed: bool) -> tuple[StateFile, ...]:
        files = []
        for step, groups in {held.step: held.key_groups for held in owned}.items():
            key_groups = groups if same else everywhere
            tables = tables_of(entry, step, keyed=keyed)
            ref = _to_blocks(
                subtask, tables, source, target, name(subtask), key_groups, max_parallelism, converted
            )
            states = {table.name: table.state for table in tables if table.state}
            files.append(StateFile(step=step, file=ref, key_groups=key_groups, states=states))
        return tuple(files)

    subtasks = tuple(_with(subtask, written) for subtask in entry.subtasks)
    return subtasks if same else _event_times_everywhere(subtasks, everywhere)


def _to_blocks(
    subtask: SubtaskSnapshot,
    tables: tuple[HeldTable, ...],
    source: FileStore,
    target: FileStore,
    name: str,
    key_groups: KeyGroupRange,
    max_parallelism: int,
    converted: Callable[[int], None],
) -> FileRef:
    writer = SnapshotFiles().create(
        target.create(name),
        step=tables[0].step,
        max_parallelism=max_parallelism,
        key_groups=key_groups,
        tables=[(table.name, table.state or TIMER_DESCRIPTION) for table in tables],
    )
    try:
        for number, table in enumerate(tables):
            for some in entries_of(source, subtask, table):
                writer.block(number, key_groups, some.keys, _as_in_blocks(some, table))
                converted(len(some.keys))
        return writer.finish()
    finally:
        writer.discard()


def _as_in_blocks(some: HeldEntries, table: HeldTable) -> list[object]:
    if not table.state:
        return list(some.places)
    if table.mapped:
        places = map(encode_key, some.places)
        return list(zip(places, some.values, strict=True))
    return list(some.values)


def _event_times_everywhere(
    subtasks: Iterable[SubtaskSnapshot], everywhere: KeyGroupRange
) -> tuple[SubtaskSnapshot, ...]:
    """Event time is kept by key group, and which keys a group of then had is not known any more: the latest of a step
    counts for all its keys, so that nothing that was late is on time now (R27)."""
    latest: dict[StepName, int] = {}
    subtasks = tuple(subtasks)
    for subtask in subtasks:
        for reached in subtask.event_times:
            latest[reached.step] = max(reached.watermark_ms, latest.get(reached.step, reached.watermark_ms))
    times = tuple(
        ReachedEventTime(step=step, key_groups=everywhere, watermark_ms=time_ms)
        for step, time_ms in sorted(latest.items())
    )
    kept = [replace(subtask, event_times=()) for subtask in subtasks]
    return (replace(kept[0], event_times=times), *kept[1:]) if kept else ()
