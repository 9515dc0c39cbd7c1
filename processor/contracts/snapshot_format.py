"""Between keyed state and the file that keeps a snapshot of it.

State hands over entries in blocks; a format encodes, frames and checks them and makes the file durable
(``storage/snapshot_file``). State and storage do not know each other: the runtime hands a format to a
backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from processor.contracts.file_store import FileStore, FileWriter
from processor.errors import JobError
from processor.ids import FileRef, KeyGroupRange, StepName
from processor.records.batch import Key

BLOCK_ENTRIES_MAX = 4_000
"""Entries state puts into one block. Encoding one holds the interpreter for about half a millisecond."""

TIMER_TABLES = ("timers/event", "timers/processing")
"""Tables of a snapshot that hold timers: one entry a timer, its key and its time in ms. A key comes once for
each of its timers. No declared state can have such a name."""

TIMER_DESCRIPTION = "timer at ms"
"""Of what they hold, where states have their schema."""

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


class TableLayout(StrEnum):
    """How the entries of a table lie in a database (``state/rocksdb_keys``)."""

    VALUES = "values"
    MAPS = "maps"
    TIMERS = "timers"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTable:
    """One table of a database."""

    name: str
    kind: str
    """Description of the type of its values."""
    number: int
    """Its keys begin with it."""
    layout: TableLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseDescription:
    """What belongs to the sorted files of a database, so that it can be opened."""

    step: StepName
    max_parallelism: int
    key_groups: KeyGroupRange
    tables: tuple[DatabaseTable, ...]
    small_files: Mapping[str, bytes]
    """Those that are written anew for every checkpoint, by the names the database gives them."""


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
        self,
        files: FileStore,
        ref: FileRef,
        wanted: KeyGroupRange,
        codecs: Mapping[str, Any],
        *,
        others: bool = False,
    ) -> Iterator[SnapshotEntries]:
        """Entries whose key group is in ``wanted``, block by block in the order written.

        ``codecs`` gives the type of each table's values; ``msgspec.Raw`` leaves them encoded. A table without a
        codec is left out with ``others``, and a JobError without. Raises DamagedFile by name; JobError for values
        that do not fit their type. Nothing read may be trusted before the iterator has ended.
        """
        ...

    def write_database(self, writer: FileWriter, description: DatabaseDescription) -> FileRef:
        """The file that goes along with the sorted files of a database. Raises Unavailable; then it is given up."""
        ...

    def read_database(self, files: FileStore, ref: FileRef) -> DatabaseDescription:
        """What ``write_database`` wrote. Raises DamagedFile by name."""
        ...


def undeclared(table: str, step: str, file: str) -> JobError:
    """The error for a snapshot with a table that the job does not have."""
    return JobError(
        f"the snapshot '{file}' holds state '{table}' of step '{step}', which the job no longer declares.",
        remedy="Declare it again, or start from a savepoint that does not have it.",
    )


def unfitting(table: str, kind: str, step: str, file: str, why: object) -> JobError:
    """The error for values that were written as ``kind`` and do not fit the type declared now."""
    return JobError(
        f"state '{table}' of step '{step}' was written as {kind} (file '{file}') and cannot be read as the type "
        f"declared now: {why}.",
        remedy="Declare a type that can read the old values, or give the new state another name.",
    )
