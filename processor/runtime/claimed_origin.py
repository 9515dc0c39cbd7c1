"""A job's checkpoints given up to another job: sealed, taken over, and removed where they were (R22).

What is claimed is a checkpoint directory, never a savepoint: that is its owner's. Its log is sealed first, so that
its job can decide nothing more, and what was newest stays so. Each file gets a second name in the store of the job
that claims it, or is copied where that is on another disk; once a decided checkpoint lists the new names, the old
ones go. The log stays, for the same command line run again has to find by it that it was here before (R3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from processor.contracts.file_store import FileStore, LinkingFiles
from processor.errors import JobError, LogConflict
from processor.ids import Attempt, FileRef, Incarnation
from processor.protocol.entries import CheckpointEntry, Seal, SubtaskSnapshot
from processor.protocol.recovery_messages import OriginFound
from processor.runtime.origin import Origin, Token, copy_file, open_origin
from processor.runtime.savepoint_progress import SavepointProgress
from processor.savepoint.opened import Savepoint, open_savepoint
from processor.storage.decision_log import DecisionLog, Taken
from processor.storage.directory import JobDirectory, JobStore
from processor.storage.layout import FILES_FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedOrigin:
    """See ``Origin``."""

    origin: Origin
    directory: JobStore
    """Where it is."""

    @property
    def entry(self) -> CheckpointEntry:
        return self.origin.entry

    @property
    def found(self) -> OriginFound:
        return self.origin.found

    def restore_into(
        self, files: FileStore, attempt: Attempt, token: Token, progress: SavepointProgress
    ) -> tuple[SubtaskSnapshot, ...]:
        """Take all state over into another store, under new names. Raises DamagedFile by name."""

        def bring(ref: FileRef, name: str) -> FileRef:
            if isinstance(files, LinkingFiles) and isinstance(self.directory, JobDirectory):
                self.directory.files.verify(ref)
                taken = replace(ref, name=name)
                if files.link_in(self.directory.path / FILES_FOLDER / ref.name, taken):
                    return taken
            return copy_file(self.directory.files, ref, files, name, progress.copied)

        return self.origin.brought(bring, attempt, token)

    def release(self) -> int:
        """Remove all files there; how many there were. What a crash leaves, the next call takes.

        Raises Unavailable.
        """
        names = self.directory.files.names("")
        for name in names:
            self.directory.files.delete(name)
        return len(names)


def claim_origin(
    path: str, reach: JobStore, *, ours: Incarnation | None, key_groups: int, token: Token
) -> ClaimedOrigin:
    """Seal the log at the path, and open its newest checkpoint. ``ours``: of the job that claims it.

    Raises JobError when there is nothing to claim; LogConflict when somebody starts that job at this moment; what
    ``open_origin`` raises.
    """
    opened = open_savepoint(path, token=token, disk=reach.disk, stores=reach.stores)
    newest = opened.view.newest_seal()
    if newest is None:
        raise JobError(
            f"'{path}' is a savepoint, and none is ever claimed: it is its owner's, and stays.",
            remedy="Leave --claim out, and remove the savepoint yourself when it is no longer needed.",
        )
    if opened.entry.incarnation == ours:
        raise JobError(
            f"'{path}' is the checkpoint directory of this job itself.",
            remedy="Leave --from and --claim out: the job goes on from its newest checkpoint.",
        )
    if opened.directory.files.names(""):  # else it was taken over by an earlier start
        _seal(opened, newest, path, token)
    # Only now: before, a newer checkpoint could have been decided.
    return ClaimedOrigin(
        origin=open_origin(path, reach, key_groups=key_groups, token=token), directory=opened.directory
    )


def _seal(opened: Savepoint, newest: Seal, path: str, token: Token) -> None:
    seal = replace(newest, place=opened.view.next_place, attempt=Attempt(newest.attempt + 1), nonce=token())
    if not isinstance(DecisionLog(opened.directory.log).take(seal), Taken):
        raise LogConflict(
            f"the log of '{path}' was written to while it was being sealed: its job runs.",
            remedy="Stop that job, then start this one again.",
        )
