"""Reading the decision log: what it says about attempts, branches, and the checkpoint to go on from.

A view of entries as they were read; it decides nothing that is not written in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from processor.ids import (
    NO_CHECKPOINT,
    Attempt,
    CheckpointId,
    Incarnation,
    JobName,
    Marker,
    Place,
    PublisherId,
)
from processor.protocol.entries import CheckpointEntry, Entry, Published, Rewind, Seal, SinkRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """Entries in the order of their places; some below the newest may have been forgotten (R7)."""

    entries: tuple[Entry, ...]

    @property
    def empty(self) -> bool:
        return not self.entries

    @property
    def incarnation(self) -> Incarnation | None:
        """The same in every entry; None for an empty log (R2)."""
        return self.entries[0].incarnation if self.entries else None

    @property
    def next_place(self) -> Place:
        return Place(self.entries[-1].place + 1 if self.entries else 1)

    @property
    def newest_attempt(self) -> Attempt:
        return Attempt(max((entry.attempt for entry in self.entries), default=0))

    def sealed(self, attempt: Attempt) -> bool:
        return any(isinstance(entry, Seal) and entry.attempt == attempt for entry in self.entries)

    @property
    def newest_id(self) -> CheckpointId:
        """The highest checkpoint id in any entry, of any branch."""
        ids = [entry.checkpoint for entry in self.checkpoints()]
        ids += [entry.parent for entry in self.entries if isinstance(entry, Rewind)]
        return CheckpointId(max(ids, default=NO_CHECKPOINT))

    def checkpoints(self) -> tuple[CheckpointEntry, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, CheckpointEntry))

    def newest_rewind(self) -> Rewind | None:
        rewinds = [entry for entry in self.entries if isinstance(entry, Rewind)]
        return rewinds[-1] if rewinds else None

    def newest_seal(self) -> Seal | None:
        seals = [entry for entry in self.entries if isinstance(entry, Seal)]
        return seals[-1] if seals else None

    def branch(self) -> tuple[CheckpointEntry, ...]:
        """Decided checkpoints of the newest branch: those after the newest rewind (R3)."""
        rewind = self.newest_rewind()
        start = rewind.place if rewind is not None else 0
        return tuple(entry for entry in self.checkpoints() if entry.place > start)

    def newest(self) -> CheckpointEntry | None:
        """The newest decided checkpoint of the newest branch."""
        branch = self.branch()
        return branch[-1] if branch else None

    def parent_of(self, entry: CheckpointEntry) -> CheckpointEntry | None:
        """None when it has none, or when it is no longer kept."""
        for candidate in reversed(self.branch()):
            if candidate.checkpoint == entry.parent and candidate.place < entry.place:
                return candidate
        return None

    def publishers_since(self, place: Place, job: JobName) -> tuple[PublisherId, ...]:
        """Identities of every seal and entry from ``place`` to the newest (R18).

        The seal in force at ``place`` counts too: it is the last one before.
        """
        found: set[PublisherId] = set()
        in_force: Seal | None = None
        for entry in self.entries:
            if isinstance(entry, Seal):
                if entry.place <= place:
                    in_force = entry
                else:
                    found.update(_publishers(entry.sinks, job))
            elif isinstance(entry, CheckpointEntry) and entry.place >= place:
                found.update(publisher for publisher, _ in entry.expected)
                found.update(entry.outboxes())
        if in_force is not None:
            found.update(_publishers(in_force.sinks, job))
        return tuple(sorted(found))


def _publishers(sinks: tuple[SinkRecord, ...], job: JobName) -> set[PublisherId]:
    return {publisher for sink in sinks for publisher in sink.publishers(job)}


def is_published(entry: CheckpointEntry, published: Published | None) -> bool:
    """Whether everything of the entry is known to be out: recorded, or there was nothing (R4)."""
    if not entry.outboxes():
        return True
    return (
        published is not None
        and published.incarnation == entry.incarnation
        and published.checkpoint >= entry.checkpoint
    )


def rows_of(entry: CheckpointEntry) -> Mapping[PublisherId, int]:
    """Rows each identity has in a checkpoint; identities without rows are left out."""
    return {publisher: sum(o.rows for o in files) for publisher, files in entry.outboxes().items()}


def expected_of(entry: CheckpointEntry) -> Mapping[PublisherId, Marker]:
    return dict(entry.expected)
