"""Between keyed state and the file that keeps a snapshot of it.

State hands over entries in blocks; a format encodes, frames and checks them and makes the file durable
(``storage/snapshot_file``). State and storage do not know each other: the runtime hands a format to a
backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from processor.contracts.file_store import FileStore, FileWriter
from processor.ids import FileRef, KeyGroupRange, StepName
from processor.records.batch import Key

BLOCK_ENTRIES_MAX = 4_000
"""Entries state puts into one block. Encoding one holds the interpreter for about half a millisecond."""

TIMER_TABLES = ("timers/event", "timers/processing")
"""Tables of a snapshot that hold timers: one entry a timer, its key and its time in ms. A key comes once for
each of its timers. No declared state can have such a name."""


REMOVED = "/removed"
"""Behind the name of a table: its keys that are no longer there, in a snapshot that holds only what changed. For a
table of timers each with its time; for others the value means nothing."""


class SnapshotWriter(Protocol):
    """A snapshot being written. Used by one thread; ``finish`` or ``discard`` ends it."""

    def block(self, table: int, groups: KeyGroupRange, keys: Sequence[Key], values: Sequence[object]) -> None:
        """Append entries of one table, given by its place in ``tables``. ``groups`` covers the groups of all
        keys. A value may be a ``msgspec.Raw``: bytes that are encoded already. Raises Unavailable."""
        ...

    def finish(self) -> FileRef:
        """Make it durable. Raises Unavailable."""
        ...

    def discard(self) -> None:
        """Give it up; idempotent."""
        ...


class SnapshotEntries(Protocol):
    """Entries of one table as they are read back: keys and values, one for one."""

    @property
    def table(self) -> str: ...

    @property
    def keys(self) -> Sequence[Key]: ...

    @property
    def values(self) -> Sequence[Any]: ...


class SnapshotFormat(Protocol):
    """How a snapshot of one step in one subtask is laid out in a file."""

    def create(
        self,
        writer: FileWriter,
        *,
        step: StepName,
        max_parallelism: int,
        key_groups: KeyGroupRange,
        tables: Sequence[tuple[str, str]],
    ) -> SnapshotWriter:
        """Begin a snapshot. ``tables`` are names with descriptions of the type of their values; every key
        to come belongs to ``key_groups``."""
        ...

    def read(
        self, files: FileStore, ref: FileRef, wanted: KeyGroupRange, codecs: Mapping[str, Any]
    ) -> Iterator[SnapshotEntries]:
        """Entries whose key group is in ``wanted``, block by block in the order written.

        ``codecs`` gives the type of each table's values; ``msgspec.Raw`` leaves them encoded. Raises
        DamagedFile by name; JobError for a table without a codec and for values that do not fit their type.
        Nothing read may be trusted before the iterator has ended.
        """
        ...
