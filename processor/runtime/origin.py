"""Where a rewind starts from: a savepoint, or the directory of a job; and how a savepoint is written (R3, R23).

A savepoint is laid out like a job's directory with a decision log of one entry. The entry is written last: a
directory without it is not a savepoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from processor.contracts.file_store import FileStore
from processor.errors import JobError, SettingsError
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import Attempt, FileRef, JobName, SubtaskId
from processor.protocol.decisions import is_published
from processor.protocol.entries import CheckpointEntry, StateFile, SubtaskSnapshot
from processor.protocol.recovery_messages import OriginFound
from processor.runtime.savepoint_progress import SavepointProgress
from processor.savepoint.canonical import from_canonical, to_canonical
from processor.savepoint.opened import open_savepoint
from processor.storage.decision_log import DecisionLog, Taken
from processor.storage.directory import JobStore
from processor.storage.layout import FileKind, file_name
from processor.storage.retention import refuse_condemned
from processor.storage.savepoint_places import make_savepoint

Token = Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """An opened savepoint or job directory with the checkpoint to start from."""

    files: FileStore
    entry: CheckpointEntry
    moves: bool
    """A job's directory, in which a newer checkpoint may be found the next time."""
    key_groups: int
    """Of the job that is started: its maximum parallelism."""

    @property
    def found(self) -> OriginFound:
        # By this, the same command line run again knows that it has rewound already (R3): it must not move.
        incarnation, checkpoint = self.entry.incarnation, self.entry.checkpoint
        return OriginFound(
            identity=str(incarnation) if self.moves else f"{incarnation}-{checkpoint}",
            incarnation=self.entry.incarnation,
            checkpoint=self.entry.checkpoint,
            shape=replace(self.entry.shape, max_parallelism=self._max_parallelism),
            drained=self.entry.drained,
        )

    @property
    def _max_parallelism(self) -> int:
        """That of the state once it is copied: from a canonical savepoint into as many key groups as are wanted."""
        return self.key_groups if self.entry.canonical else self.entry.shape.max_parallelism

    def restore_into(
        self, files: FileStore, attempt: Attempt, token: Token, progress: SavepointProgress
    ) -> tuple[SubtaskSnapshot, ...]:
        """Put all state into the store of a job under new names (R22), in a form that its backends read. Raises
        DamagedFile by name."""
        if not self.entry.canonical:
            return self.copy_into(files, attempt, token, progress.copied)
        return from_canonical(
            self.entry,
            self.files,
            files,
            lambda subtask: file_name(attempt, subtask.subtask, token(), FileKind.STATE),
            self._max_parallelism,
            progress.converted,
        )

    def copy_into(
        self, files: FileStore, attempt: Attempt, token: Token, copied_bytes: Callable[[int], None]
    ) -> tuple[SubtaskSnapshot, ...]:
        """Copy all files into another store under new names (R22). Raises DamagedFile by name."""
        return self.brought(
            lambda ref, name: copy_file(self.files, ref, files, name, copied_bytes), attempt, token
        )

    def brought(
        self, bring: Callable[[FileRef, str], FileRef], attempt: Attempt, token: Token
    ) -> tuple[SubtaskSnapshot, ...]:
        """All state, with each file brought under a new name."""

        def copied(subtask: SubtaskId, ref: FileRef, kind: FileKind) -> FileRef:
            return bring(ref, file_name(attempt, subtask, token(), kind))

        def state(subtask: SubtaskId, held: StateFile) -> StateFile:
            parts = held.database
            if parts is not None:
                parts = tuple(
                    replace(part, file=copied(subtask, part.file, FileKind.DATABASE)) for part in parts
                )
            return replace(held, file=copied(subtask, held.file, FileKind.STATE), database=parts)

        return tuple(
            replace(
                each,
                keyed=tuple(state(each.subtask, held) for held in each.keyed),
                operators=tuple(state(each.subtask, held) for held in each.operators),
                channels=tuple(
                    replace(channel, file=copied(each.subtask, channel.file, FileKind.CHANNEL))
                    for channel in each.channels
                ),
                outboxes=(),
            )
            for each in self.entry.subtasks
        )


def open_origin(path: str, reach: JobStore, *, key_groups: int, token: Token) -> Origin:
    """By the disk and the settings that a job's store has. Raises JobError when there is no savepoint and no
    published checkpoint at the path or URI."""
    opened = open_savepoint(path, token=token, disk=reach.disk, stores=reach.stores)
    view, entry = opened.view, opened.entry
    if not is_published(entry, opened.log.published()):
        raise JobError(
            f"checkpoint {entry.checkpoint} in '{path}' has output that is not published yet.",
            remedy="Start its job once, or publish it with 'processor outbox publish'; then start from it.",
        )
    refuse_condemned(view, entry)
    return Origin(
        files=opened.directory.files,
        entry=entry,
        moves=view.newest_seal() is not None,
        key_groups=key_groups,
    )


def write_savepoint(
    entry: CheckpointEntry,
    source: JobStore,
    path: str,
    *,
    job: JobName,
    token: Token,
    faults: FaultHook,
    native: bool,
    progress: SavepointProgress,
    begun: bool = False,
) -> None:
    """A self-contained copy of a published checkpoint, its manifest last (R23): its state in the canonical format, or
    its files as they are (``native``). With ``begun`` an earlier attempt may have begun it, or finished it; its files
    stay: it may be asleep and not dead, and its manifest names them.

    ``path`` may be a URI. Raises SettingsError when the place is in use, Unavailable, DamagedFile.
    """
    target = make_savepoint(path, job, token=token, disk=source.disk, stores=source.stores, begun=begun)
    if begun and _same(DecisionLog(target.log).read_all().newest(), entry):
        return
    if native:
        whole = Origin(files=source.files, entry=entry, moves=True, key_groups=entry.shape.max_parallelism)
        subtasks = whole.copy_into(target.files, entry.attempt, token, progress.copied)
    else:
        subtasks = to_canonical(entry, source.files, target.files, token, progress.converted)
    faults(FaultPoint.SAVEPOINT_WRITTEN)
    outcome = DecisionLog(target.log).take(entry.as_savepoint(subtasks, token()))
    if isinstance(outcome, Taken) or (begun and _same(DecisionLog(target.log).read_all().newest(), entry)):
        return
    raise SettingsError(f"somebody else wrote a savepoint into '{path}' at the same time.")


def _same(found: CheckpointEntry | None, entry: CheckpointEntry) -> bool:
    return found is not None and (found.incarnation, found.checkpoint) == (
        entry.incarnation,
        entry.checkpoint,
    )


def copy_file(
    source: FileStore, ref: FileRef, target: FileStore, name: str, copied_bytes: Callable[[int], None]
) -> FileRef:
    writer = target.create(name)
    try:
        for chunk in source.read(ref):
            writer.write(chunk)
            copied_bytes(len(chunk))
        return writer.finish()
    except BaseException:
        writer.discard()
        raise
